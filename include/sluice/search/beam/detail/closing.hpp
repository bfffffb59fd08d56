// SPDX-License-Identifier: Apache-2.0
/// \file
/// The end of a beam search: its last beam, and the hypotheses returned.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>
#include <sluice/search/beam/beam_options.hpp>
#include <sluice/search/beam/detail/beam_state.hpp>
#include <sluice/search/beam/detail/survivors.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice::inline v0::detail::beam_loop {

/// Ends the sentence: moves hypotheses of the last beam to the finished ones, as the options say.
template <class Beam>
void close(Beam const& options, BeamState& s) {
  auto const fixed_length = s.vocabulary->eos.empty();
  auto const full = s.generated >= s.bounds.max;
  auto joined = false;
  auto const join = [&](BeamState::Entry const& entry, bool finished) {
    s.out.push_back({entry.node, entry.log_prob, score(options, s, entry), finished});
  };
  for (auto const& entry : s.next) {
    if (entry.ended) {
      if (options.finished == FinishedHypotheses::stay || full) join(entry, true);
    } else if (full && (fixed_length || options.at_maximum == AtMaximum::truncate ||
                        (options.at_maximum == AtMaximum::best_unfinished && !joined))) {
      join(entry, fixed_length);
      joined = true;
    }
  }
  s.beam.clear();
}

/// Calls f(ended) for every hypothesis to report: the finished ones and, before the sentence is over, the live ones.
template <class Beam, class F>
void for_each_told(Beam const& options, BeamState const& s, F&& f) {
  for (auto const& ended : s.out) f(ended);
  if (s.bounds.max == 0) f(BeamState::Ended{.node = History::root});
  if (!s.over)
    for (auto const& entry : s.beam)
      f(BeamState::Ended{entry.node, entry.log_prob, score(options, s, entry), entry.ended, true});
}

/// The n best of them, in order; live ones come last.
template <class Beam>
std::vector<BeamState::Ended> told(Beam const& options, BeamState const& s) {
  std::vector<BeamState::Ended> all;
  for_each_told(options, s, [&](BeamState::Ended ended) {
    ended.order = all.size();
    all.push_back(ended);
  });
  std::sort(all.begin(), all.end(), [](BeamState::Ended const& a, BeamState::Ended const& b) {
    if (a.alive != b.alive) return b.alive;
    return a.score != b.score ? a.score > b.score : a.order < b.order;
  });
  if (all.size() > static_cast<std::size_t>(options.n_best)) all.erase(all.begin() + options.n_best, all.end());
  return all;
}

template <class = void>
Hypothesis& add_hypothesis(BeamState const& s, BeamState::Ended const& ended, Result& result) {
  auto& h = result.hypotheses.emplace_back();
  s.history.write(ended.node, h);
  h.log_prob = ended.log_prob, h.score = ended.score, h.finished = ended.finished;
  return h;
}

template <class Beam>
void fail_if_empty(Beam const& options, BeamState const& s, Result& result) {
  if (s.over && result.hypotheses.empty()) say_why_empty(options.at_maximum, result);
}

/// Lists all of them, as the beam ranks them. The caller applies Prefix::complete().
template <class Beam>
void tell(Beam const& options, BeamState const& s, Result& result) {
  result.hypotheses.clear();
  for (auto const& ended : told(options, s)) add_hypothesis(s, ended, result);
  fail_if_empty(options, s, result);
}

/// The common beginning of the live hypotheses and of the finished ones that may still be returned.
template <class Beam>
void settle(Beam const& options, BeamState& s, std::vector<Token>& tokens) {
  s.nodes.clear();
  for (auto const& entry : s.beam) s.nodes.push_back(entry.node);
  for (std::size_t i = 0; i < s.out.size(); ++i) {
    auto const mine = s.out[i].score;
    std::ptrdiff_t before = 0;  // finished hypotheses listed before it
    for (std::size_t j = 0; j < s.out.size(); ++j)
      before += s.out[j].score > mine || (j < i && !(s.out[j].score < mine)) ? 1 : 0;
    if (before < options.n_best) s.nodes.push_back(s.out[i].node);
  }
  s.history.write(s.history.common(s.nodes), tokens);
}

}  // namespace sluice::inline v0::detail::beam_loop
