// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps of a beam search. Searches that select candidates differently use those that they share. `Beam` is
/// BeamSearch here and in the headers that this one includes, since its definition includes them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_options.hpp>
#include <sluice/search/beam/detail/beam_state.hpp>
#include <sluice/search/beam/detail/candidates.hpp>
#include <sluice/search/beam/detail/closing.hpp>
#include <sluice/search/beam/detail/stopping.hpp>
#include <sluice/search/beam/detail/survivors.hpp>
#include <sluice/search/common/detail/placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::inline v0::detail::beam_loop {

/// The query for one hypothesis.
template <class Beam>
Query query(Beam const& options, BeamState const& s, BeamState::Entry const& entry, std::int32_t rank) {
  auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
  auto const only_eos = forced(options, s);
  Query q{.base = entry.log_prob,
          .rank = rank,
          .edits = s.bans.edits(!only_eos && s.generated < s.bounds.min),
          .stage = options.stage};
  if (only_eos) q.best = 0, q.probes = s.vocabulary->eos;
  else  // worse candidates can neither end nor continue
    q.best = (std::min)(options.width + ends, options.pruning.max_per_parent);
  return q;
}

/// Counts the tokens that have been fed.
template <class Beam>
void receive(Beam const& options, BeamState& s) {
  ++s.held;
  if (s.first && options.prefix_scored) s.beam[0].log_prob = s.beam[0].value = s.prefix.ranked();
  s.first = false;
}

/// Whether the step that led to `next` is the last.
template <class Beam>
bool over(Beam const& options, BeamState& s) {
  return s.generated >= s.bounds.max || s.next.empty() ||
         stops(options, {s.next, s.out, s.history, s.generated, s.bounds.max, s.top_ended}, s.scores);
}

/// Makes `next` the beam.
template <class = void>
void go_on(BeamState& s) {
  detail::place(std::span(s.next), s.holder, s.unused);
  s.beam.swap(s.next);
  s.line.assign(s.beam.size(), 0);
}

template <class Beam>
void begin(Beam const& options, BeamState& s, Sentence const& sentence) {
  s.begin(sentence, options.length);
  s.history.clear(s.prefix.size());
  s.beam.assign(1, BeamState::Entry{.token = sentence.last, .slot = 0});
  s.out.clear(), s.unused.clear();
  s.line.assign(1, 0);
  s.holder.assign(static_cast<std::size_t>(options.width), -1), s.holder[0] = 0;
  s.best_finished = -std::numeric_limits<double>::infinity();
  s.held = sentence.held, s.generated = s.prefix.size(), s.room = options.width;
  s.first = true, s.top_ended = s.over = false;
}

template <class Beam>
void plan(Beam const& options, BeamState& s, Plan& plan) {
  for (auto const slot : s.unused) plan.release(slot);
  s.unused.clear();
  if (s.bounds.max == 0) return;
  if (s.first && !options.prefix_scored) plan.ignore_prefix_scores();
  if (!s.first && options.at_maximum == AtMaximum::force_eos_free && forced(options, s)) return;  // no choice left
  std::int32_t lines = 0;
  for (auto const rank : s.holder) {
    if (rank < 0) continue;
    auto const& entry = s.beam[static_cast<std::size_t>(rank)];
    s.line[static_cast<std::size_t>(rank)] = lines++;
    plan.row(entry.from, entry.slot, s.held, {&entry.token, 1});
    plan.ask(query(options, s, entry, rank));
  }
  // Where candidates are ranked by more than log_prob, the search needs all of them.
  if (options.pruning.relative_local_threshold <= 0 && options.sibling_penalty <= 0) plan.keep(looked_at(options, s));
}

template <class Beam>
bool advance(Beam const& options, BeamState& s, Expansion const& answer) {
  if (s.bounds.max == 0) return s.over = true;
  receive(options, s);
  collect(options, s, answer);
  choose(options, s);
  ++s.generated;
  prune(options, s);
  if (over(options, s)) close(options, s), s.over = true;
  else go_on(s);
  return s.over;
}

}  // namespace sluice::inline v0::detail::beam_loop
