// SPDX-License-Identifier: Apache-2.0
/// \file
/// When a beam search ends before its beam is empty and before the maximum length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/beam/beam_options.hpp>
#include <sluice/search/beam/detail/beam_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail::beam_loop {

/// The inputs of the rules after a step.
struct Standing {
  std::span<BeamState::Entry const> beam;   // best first; includes finished hypotheses that stay; not empty
  std::span<BeamState::Ended const> ended;  // finished hypotheses that have left it
  History const& history;
  std::int32_t generated, max;  // tokens
  bool top_ended;
};

/// Rule::count. With FinishedHypotheses::stay, the finished hypotheses are in the beam itself.
template <class Beam>
bool enough_ended(Beam const& options, Standing const& now) {
  auto count = now.ended.size();
  if (options.finished == FinishedHypotheses::stay) {
    count = static_cast<std::size_t>(
        std::count_if(now.beam.begin(), now.beam.end(), [](auto const& entry) { return entry.ended; }));
    if (count == now.beam.size()) return true;
  }
  return static_cast<std::int32_t>(count) >= options.early_stopping.needed(options.width);
}

/// The worst score among the `rank` best finished ones, which a live hypothesis would have to beat.
template <class = void>
double worst_of_best(Standing const& now, std::int32_t rank, std::vector<double>& scores) {
  scores.clear();
  for (auto const& ended : now.ended) scores.push_back(ended.score);
  auto const worst = scores.begin() + (rank - 1);
  std::nth_element(scores.begin(), worst, scores.end(), [](double a, double b) { return a > b; });
  return *worst;
}

/// Rule::exact.
template <class Beam>
bool none_can_pass(Beam const& options, Standing const& now, double bar) {
  auto const& penalty = options.penalty;
  return std::all_of(now.beam.begin(), now.beam.end(), [&](auto const& entry) {
    auto const top = entry.ended ? penalty.score(entry.log_prob, now.history.length(entry.node))
                                 : penalty.bound(entry.log_prob, now.generated + 1, now.max);
    return top <= bar;
  });
}

/// Rule::heuristic and Rule::never_early.
template <class Beam>
bool best_falls_short(Beam const& options, Standing const& now, double bar) {
  auto const hopeful = options.early_stopping.rule == EarlyStopping::Rule::never_early && options.penalty.alpha > 0;
  return options.penalty.score(now.beam[0].log_prob, hopeful ? now.max : now.generated) <= bar;
}

/// \param scores  scratch
template <class Beam>
bool stops(Beam const& options, Standing const& now, std::vector<double>& scores) {
  auto const count = static_cast<std::int32_t>(now.ended.size());
  auto const full = [&](std::int32_t rank) { return count >= rank; };
  switch (options.early_stopping.rule) {
    case EarlyStopping::Rule::count: return enough_ended(options, now);
    case EarlyStopping::Rule::top_ended: return now.top_ended && full(options.n_best);
    case EarlyStopping::Rule::exact:
      return full(options.n_best) && none_can_pass(options, now, worst_of_best(now, options.n_best, scores));
    case EarlyStopping::Rule::heuristic:
    case EarlyStopping::Rule::never_early:
      return full(options.width) && best_falls_short(options, now, worst_of_best(now, options.width, scores));
  }
  return false;
}

}  // namespace sluice::inline v0::detail::beam_loop
