// SPDX-License-Identifier: Apache-2.0
/// \file
/// Converts a DeviceBeam's memory to hypotheses, on the host.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/history.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// A DeviceBeam's data for one sentence, copied to host memory.
struct BeamSnapshot {
  detail::BeamSentence now;
  std::span<MergeLine const> lines;           // [live]
  std::span<detail::BeamEnded const> ended;   // [ended], best first
  std::span<detail::BeamNode const> history;  // [depth, width]

  std::int32_t depth() const { return now.generated - now.prefix; }  ///< tokens of live hypotheses after the prefix
};

/// Writes what BeamSearch::finish would write.
SLUICE_LAZY void write_beam_result(BeamSearch const& search, Vocabulary const& vocabulary, BeamSnapshot const& from,
                                   Result& result) {
  BeamSearch::State s;
  s.vocabulary = &vocabulary;
  s.bounds = {from.now.min, from.now.max};
  s.history.clear(from.now.prefix);
  s.over = from.now.running == 0 && from.now.valid != 0;
  std::vector<detail::BeamNode> path;
  auto const follow = [&](std::int32_t depth, std::int32_t rank) {  // to the hypothesis of `depth` tokens
    path.clear();
    while (depth-- > 0) {
      auto const at = static_cast<std::size_t>(depth) * static_cast<std::size_t>(search.width);
      path.push_back(from.history[at + static_cast<std::size_t>(rank)]);
      rank = path.back().parent;
    }
    auto node = History::root;
    for (; !path.empty(); path.pop_back()) node = s.history.add(node, path.back().token, path.back().log_prob);
    return node;
  };
  for (auto const& ended : from.ended) {
    auto const parent = follow(ended.depth, ended.last.parent);
    auto const node = s.history.add(parent, ended.last.token, ended.last.log_prob);
    s.out.push_back({node, ended.log_prob, ended.score, ended.finished != 0});
  }
  for (std::size_t rank = 0; !s.over && rank < from.lines.size(); ++rank) {
    auto const node = follow(from.depth(), static_cast<std::int32_t>(rank));
    s.beam.push_back({.log_prob = from.lines[rank].base, .node = node});
  }
  search.finish(s, result);
  if (from.now.valid == 0)
    result.fail(
        Failure::not_a_number,
        "the model's scores hold a NaN or +infinity, or leave the range of floats when divided by the temperature");
}

}  // namespace sluice::inline v0::cuda::detail
