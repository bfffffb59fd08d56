// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns the candidates of a step into the next beam and the finished hypotheses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/beam/beam_options.hpp>
#include <sluice/search/beam/detail/beam_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice::inline v0::detail::beam_loop {

template <class Beam>
double score(Beam const& options, BeamState const& s, BeamState::Entry const& entry) {
  return options.penalty.score(entry.log_prob, s.history.length(entry.node));
}

/// The candidate's node in the history: a new one, or the existing one if it had ended before.
template <class = void>
History::Node node_of(BeamState& s, BeamState::Pick const& pick) {
  auto const parent = s.beam[static_cast<std::size_t>(pick.parent)].node;
  return pick.carried ? parent : s.history.add(parent, pick.token, pick.token_log_prob);
}

/// Moves the candidate to the next beam.
template <class Beam>
void extend(Beam const& options, BeamState& s, BeamState::Pick const& pick) {
  auto const node = node_of(s, pick);
  auto value = pick.value;
  if (pick.ended && !pick.carried && options.finished == FinishedHypotheses::stay)
    value = options.penalty.score(pick.log_prob, s.history.length(node));
  auto const from = s.beam[static_cast<std::size_t>(pick.parent)].slot;
  s.next.push_back({pick.log_prob, value, node, pick.token, from, -1, pick.ended});
}

/// Moves the candidate to the finished hypotheses.
template <class Beam>
void end(Beam const& options, BeamState& s, BeamState::Pick const& pick) {
  auto const node = node_of(s, pick);
  auto const tokens = s.history.length(node);
  s.out.push_back({node, pick.log_prob, options.penalty.score(pick.log_prob, tokens), true});
  if (tokens > 1) s.best_finished = (std::max)(s.best_finished, pick.log_prob);
}

/// Takes the candidates, best first, while there is room.
template <class Beam>
void choose(Beam const& options, BeamState& s) {
  auto const finished = options.finished;
  auto const& picks = s.picks;
  s.next.clear();
  auto const ended_before = s.out.size();
  std::size_t first = 0;
  if (finished == FinishedHypotheses::leave_first) {
    while (first < picks.size() && picks[first].ended) end(options, s, picks[first++]);
    s.room = options.width - static_cast<std::int32_t>(s.out.size());
  }
  if (finished == FinishedHypotheses::set_aside) s.top_ended |= !picks.empty() && picks[0].ended;

  auto room = s.room;
  // At the maximum length, only candidates that fit into the beam may join the finished ones.
  auto const width = static_cast<std::size_t>(options.width);
  auto const limit = s.last() && finished == FinishedHypotheses::set_aside ? width : picks.size();
  auto const places = options.surplus || options.early_stopping.rule != EarlyStopping::Rule::count
                          ? (std::numeric_limits<std::size_t>::max)()
                          : static_cast<std::size_t>(options.early_stopping.needed(options.width));
  auto const guarded = options.guard_prefix && s.prefix.size() > 0 && s.generated == s.prefix.size();
  for (auto i = first; i < (std::min)(limit, picks.size()); ++i) {
    auto const& pick = picks[i];
    if (guarded && pick.ended && i > 0) {
      if (i < width) --room;
      continue;
    }
    if (pick.ended && finished == FinishedHypotheses::shrink) end(options, s, pick);
    else if (pick.ended && finished == FinishedHypotheses::set_aside) {
      if (i < width && s.out.size() < places) end(options, s, pick);
    } else if (static_cast<std::int32_t>(s.next.size()) < room) {
      extend(options, s, pick);
    }
  }
  if (finished == FinishedHypotheses::shrink) s.room -= static_cast<std::int32_t>(s.out.size() - ended_before);
}

/// Pruning::below_finished, applied to the next beam.
template <class Beam>
void drop_below_finished(Beam const& options, BeamState& s, double threshold) {
  if (!(threshold < Pruning::off)) return;
  auto best = -std::numeric_limits<double>::infinity();
  for (auto const& ended : s.out) best = (std::max)(best, ended.score);
  for (auto const& entry : s.next)
    if (entry.ended) best = (std::max)(best, score(options, s, entry));
  std::erase_if(s.next, [&](BeamState::Entry const& entry) {
    return (entry.ended ? score(options, s, entry) : entry.log_prob) < best - threshold;
  });
}

/// Prunes the next beam by the thresholds.
template <class Beam>
void prune(Beam const& options, BeamState& s) {
  if (options.pruning.by_total() && !s.next.empty()) {
    auto const bar = (std::max)(s.next[0].value, s.best_finished) - options.pruning.margin();
    std::erase_if(s.next, [&](BeamState::Entry const& entry) { return !(entry.value > bar); });
  }
  drop_below_finished(options, s, options.pruning.below_finished);
}

}  // namespace sluice::inline v0::detail::beam_loop
