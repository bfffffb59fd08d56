// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of --stats.
#pragma once

#include <sluice/core/statistics.hpp>
#include <sluice/output/clusters/clustered_projection.hpp>

#include <translate/blocks.hpp>
#include <translate/model.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace translate {

/// An object with an entry a line.
/// \param seconds  that went by; those of the parts are sums over all threads
inline std::string to_json(sluice::Statistics const& s, sluice::ClusteredStatistics const& clusters,
                           BlockCounts const& blocks, CacheUse const& cache, double seconds) {
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
      {"seconds",
       {{"total", seconds},
        {"encode", s.seconds.encode},
        {"model", s.seconds.model},
        {"output", s.seconds.output},
        {"search", s.seconds.search},
        {"beside", s.seconds.beside}}}};
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
