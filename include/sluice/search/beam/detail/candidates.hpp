// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns the lines of a step into the candidates of a beam.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/search/beam/beam_options.hpp>
#include <sluice/search/beam/detail/beam_state.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice::inline v0::detail::beam_loop {

/// The maximum number of candidates considered per step.
template <class Beam>
std::int32_t looked_at(Beam const& options, BeamState const& s) {
  auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
  if (options.finished == FinishedHypotheses::shrink) return s.room;
  if (options.finished != FinishedHypotheses::set_aside) return options.width;
  // Every live hypothesis may end in any eos token.
  return options.candidates != 0 ? options.candidates : options.width * (1 + ends);
}

/// Whether the next token can only be eos.
template <class Beam>
bool forced(Beam const& options, BeamState const& s) {
  return s.last() && !s.vocabulary->eos.empty() &&
         (options.at_maximum == AtMaximum::force_eos || options.at_maximum == AtMaximum::force_eos_free);
}

/// The order of candidates: ties go to the one found first.
inline bool better(BeamState::Pick const& a, BeamState::Pick const& b) {
  return a.value != b.value ? a.value > b.value : a.order < b.order;
}

/// Adds the children that one line lists, or the ends that were requested as probes.
/// \param bar  for the last token's log-probability
template <class Beam>
void add_children(Beam const& options, BeamState& s, std::int32_t rank, Line const& line, double bar) {
  auto const& parent = s.beam[static_cast<std::size_t>(rank)];
  auto penalty = 0.0;
  auto const add = [&](Token token, float log_prob, bool eos) {
    auto const gain = static_cast<double>(log_prob);
    auto const order = static_cast<std::int32_t>(s.picks.size());
    if (gain > -std::numeric_limits<double>::infinity())
      s.picks.push_back(
          {parent.value + gain - penalty, parent.log_prob + gain, rank, order, token, log_prob, eos, false});
    penalty += options.sibling_penalty;
  };
  if (forced(options, s)) {
    for (std::size_t i = 0; i < line.probes.size(); ++i) add(s.vocabulary->eos[i], line.probes[i], true);
    return;
  }
  for (auto const candidate : line.best)
    if (static_cast<double>(candidate.log_prob) > bar)
      add(candidate.token, candidate.log_prob, s.is_eos(candidate.token));
}

/// Adds the candidates of the hypothesis of rank `r`: itself if it has ended, else its children.
template <class Beam>
void add_candidates(Beam const& options, BeamState& s, std::size_t r, Expansion const& answer,
                    double bar = -std::numeric_limits<double>::infinity()) {
  auto const& entry = s.beam[r];
  auto const rank = static_cast<std::int32_t>(r);
  auto const order = static_cast<std::int32_t>(s.picks.size());
  if (entry.ended) s.picks.push_back({entry.value, entry.log_prob, rank, order, entry.token, 0, true, true});
  else if (forced(options, s) && options.at_maximum == AtMaximum::force_eos_free)
    s.picks.push_back({entry.value, entry.log_prob, rank, order, s.vocabulary->eos.front(), 0, true, false});
  else add_children(options, s, rank, answer[static_cast<std::size_t>(s.line[r])], bar);
}

/// The threshold of Pruning::relative_local_threshold on a token's log-probability.
template <class Beam>
double local_bar(Beam const& options, BeamState const& s, Expansion const& answer) {
  auto bar = -std::numeric_limits<double>::infinity();
  auto const threshold = options.pruning.relative_local_threshold;
  if (threshold <= 0 || answer.size() == 0) return bar;
  for (std::size_t r = 0; r < s.beam.size(); ++r) {
    if (s.beam[r].ended) continue;
    auto const best = answer[static_cast<std::size_t>(s.line[r])].best;
    if (!best.empty()) bar = (std::max)(bar, static_cast<double>(best[0].log_prob) + std::log(threshold));
  }
  return bar;
}

/// The best candidates of the step, in order.
template <class Beam>
void collect(Beam const& options, BeamState& s, Expansion const& answer) {
  s.picks.clear();
  auto const bar = local_bar(options, s, answer);
  for (std::size_t r = 0; r < s.beam.size(); ++r) add_candidates(options, s, r, answer, bar);
  auto const count = (std::min)(s.picks.size(), static_cast<std::size_t>(looked_at(options, s)));
  auto const end = s.picks.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(s.picks.begin(), end, s.picks.end(), better);
  s.picks.erase(end, s.picks.end());
}

}  // namespace sluice::inline v0::detail::beam_loop
