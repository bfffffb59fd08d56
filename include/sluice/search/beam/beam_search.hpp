// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search with fixed and variable width. The options are in beam_declaration.hpp and beam_options.hpp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_declaration.hpp>
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
#include <vector>

namespace sluice::inline v0 {

// The remaining steps of the loop, shared with searches that select candidates differently.
namespace detail::beam_loop {

/// The query for one hypothesis.
template <class = void>
Query query(BeamSearch const& options, BeamState const& s, BeamState::Entry const& entry, std::int32_t rank) {
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
template <class = void>
void receive(BeamSearch const& options, BeamState& s) {
  ++s.held;
  if (s.first && options.prefix_scored) s.beam[0].log_prob = s.beam[0].value = s.prefix.ranked();
  s.first = false;
}

/// Whether the step that led to `next` is the last.
template <class = void>
bool over(BeamSearch const& options, BeamState& s) {
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

}  // namespace detail::beam_loop

template <class Void>
void LazyBeamSearch<Void>::begin(State& s, Sentence const& sentence) const {
  s.begin(sentence, length);
  s.history.clear(s.prefix.size());
  s.beam.assign(1, State::Entry{.token = sentence.last, .slot = 0});
  s.out.clear(), s.unused.clear();
  s.line.assign(1, 0);
  s.holder.assign(static_cast<std::size_t>(width), -1), s.holder[0] = 0;
  s.best_finished = -std::numeric_limits<double>::infinity();
  s.held = sentence.held, s.generated = s.prefix.size(), s.room = width;
  s.first = true, s.top_ended = s.over = false;
}

template <class Void>
void LazyBeamSearch<Void>::plan(State& s, Plan& plan) const {
  namespace loop = detail::beam_loop;
  for (auto const slot : s.unused) plan.release(slot);
  s.unused.clear();
  if (s.bounds.max == 0) return;
  if (s.first && !prefix_scored) plan.ignore_prefix_scores();
  if (!s.first && at_maximum == AtMaximum::force_eos_free && loop::forced(*this, s)) return;  // no choice left
  std::int32_t lines = 0;
  for (auto const rank : s.holder) {
    if (rank < 0) continue;
    auto const& entry = s.beam[static_cast<std::size_t>(rank)];
    s.line[static_cast<std::size_t>(rank)] = lines++;
    plan.row(entry.from, entry.slot, s.held, {&entry.token, 1});
    plan.ask(loop::query(*this, s, entry, rank));
  }
  // Where candidates are ranked by more than log_prob, the search needs all of them.
  if (pruning.relative_local_threshold <= 0 && sibling_penalty <= 0) plan.keep(loop::looked_at(*this, s));
}

template <class Void>
bool LazyBeamSearch<Void>::advance(State& s, Expansion const& answer) const {
  namespace loop = detail::beam_loop;
  if (s.bounds.max == 0) return s.over = true;
  loop::receive(*this, s);
  loop::collect(*this, s, answer);
  loop::choose(*this, s);
  ++s.generated;
  loop::prune(*this, s);
  if (loop::over(*this, s)) loop::close(*this, s), s.over = true;
  else loop::go_on(s);
  return s.over;
}

template <class Void>
Progress LazyBeamSearch<Void>::progress(State const& s) const {
  return {s.held, static_cast<std::int32_t>(s.beam.size())};
}

template <class Void>
void LazyBeamSearch<Void>::settled(State& s, std::vector<Token>& tokens) const {
  detail::beam_loop::settle(*this, s, tokens);
}

template <class Void>
void LazyBeamSearch<Void>::finish(State const& s, Result& result) const {
  detail::beam_loop::tell(*this, s, result);
  s.prefix.complete(result);
}

}  // namespace sluice::inline v0
