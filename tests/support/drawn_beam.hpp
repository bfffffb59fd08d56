// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam searches with random options.
#pragma once

#include <sluice/search/beam_options.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/length.hpp>

#include <cstdint>
#include <random>
#include <stdexcept>

namespace sluice::test {

/// A beam search that passes check().
inline BeamSearch any_beam(std::mt19937_64& random, std::int32_t prefix) {
  auto const below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
  for (;;) {
    BeamSearch search{.width = 1 + below(5)};
    search.n_best = 1 + below(7);
    if (random() % 32 == 0) search.width = search.n_best = 17 + below(6);
    search.length.max = prefix == 0 ? below(8) : prefix + 1 + below(6);
    search.length.min = random() % 2 == 0 ? below(9) : 0;
    search.penalty = {.kind = static_cast<LengthPenalty::Kind>(random() % 3), .alpha = below(5) / 2.0 - 0.5};
    if (random() % 4 == 0) search.penalty.word_penalty = below(5) / 4.0 - 0.5;
    search.finished = random() % 2 == 0 ? FinishedHypotheses::set_aside : static_cast<FinishedHypotheses>(random() % 4);
    search.early_stopping.rule =
        random() % 2 == 0 ? EarlyStopping::Rule::count : static_cast<EarlyStopping::Rule>(random() % 5);
    if (random() % 4 == 0) search.early_stopping.finished = 1 + below(9);
    search.early_stopping.ended_first = random() % 4 == 0;
    if (random() % 4 == 0) search.early_stopping.patience = 0.3 + below(20) / 10.0;
    search.at_maximum = static_cast<AtMaximum>(random() % 5);
    search.surplus = random() % 2 == 0, search.prefix_scored = random() % 3 > 0;
    search.guard_prefix = search.finished == FinishedHypotheses::set_aside && random() % 2 == 0;
    search.one_end = random() % 3 == 0;
    if (random() % 4 == 0) search.candidates = search.width + below(6);
    if (random() % 5 == 0) search.sibling_penalty = (1 + below(4)) / 4.0;
    if (random() % 2 == 0) search.stage = Stage::before_softmax;
    auto& pruning = search.pruning;
    if (random() % 4 == 0) pruning.absolute_threshold = below(20) / 4.0;
    if (random() % 6 == 0) pruning.relative_threshold = 0.1;
    if (random() % 6 == 0) pruning.relative_local_threshold = 0.3;
    if (random() % 4 == 0) pruning.max_per_parent = 1 + below(4);
    if (random() % 4 == 0) pruning.below_finished = below(8) / 4.0;
    try {
      search.check();
      return search;
    } catch (std::invalid_argument const&) {
    }
  }
}

}  // namespace sluice::test
