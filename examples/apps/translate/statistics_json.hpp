// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of --stats.
#pragma once

#include <sluice/core/statistics.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/output/precision.hpp>

#include <translate/blocks.hpp>
#include <translate/model.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace translate {

/// A precision and the instructions that multiply in it.
inline nlohmann::ordered_json to_json(sluice::Precision precision) {
  constexpr std::array names{"float32", "bfloat16", "int8"};
  return {{"name", names[static_cast<std::size_t>(precision)]}, {"by", sluice::instruction_set(precision)}};
}

/// An object with an entry a line.
/// \param seconds  that went by; those of the parts are sums over all threads
/// \param resumed  lines that an earlier run had done, of which nothing else is counted
inline std::string to_json(sluice::Statistics const& s, sluice::ClusteredStatistics const& clusters,
                           BlockCounts const& blocks, CacheUse const& cache, ModelOptions const& made, double seconds,
                           std::optional<std::size_t> resumed = {}) {
  nlohmann::ordered_json all{
      {"sentences", s.sentences},
      {"tokens", s.tokens},
      {"steps", s.steps},
      {"model_calls", s.model_calls},
      {"rows", s.rows},
      {"fed", s.fed},
      {"expansions", s.expansions},
      {"forks", s.forks},
      {"encoder_calls", s.encoder_calls},
      {"encoded", s.encoded},
      {"rows_histogram", s.rows_histogram},
      {"cache", {{"pages", cache.pages}, {"peak_pages", cache.peak_pages}, {"bytes", cache.bytes}}},
      {"precision", {{"layers", to_json(made.layers)}, {"output", to_json(made.output)}}},
      {"seconds",
       {{"total", seconds},
        {"encode", s.seconds.encode},
        {"model", s.seconds.model},
        {"output", s.seconds.output},
        {"search", s.seconds.search},
        {"beside", s.seconds.beside}}}};
  if (resumed) all["resumed"] = *resumed;
  if (clusters.unions > 0)
    all["clusters"] = {{"lines", clusters.lines},   {"unions", clusters.unions},   {"full", clusters.full},
                       {"active", clusters.active}, {"audited", clusters.audited}, {"agreed", clusters.agreed},
                       {"bias", clusters.bias}};
  if (blocks.rounds() > 0) {
    auto guesses = nlohmann::ordered_json::array();
    for (auto const& [judged, kept] : blocks.guesses()) guesses.push_back({{"judged", judged}, {"kept", kept}});
    all["blocks"] = {{"rounds", blocks.rounds()},
                     {"tokens", blocks.tokens()},
                     {"mean", blocks.mean()},
                     {"sizes", blocks.sizes()},
                     {"guesses", guesses}};
  }
  std::string text;
  for (auto const& [key, value] : all.items())
    text.append(text.empty() ? "{\n" : ",\n").append("  \"" + key + "\": " + value.dump());
  return text + "\n}\n";
}

}  // namespace translate
