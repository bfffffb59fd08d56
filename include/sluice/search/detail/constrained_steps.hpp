// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps of a ConstrainedBeamSearch. `Search` is one; its definition includes this header.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/detail/bank_choice.hpp>
#include <sluice/search/detail/constrained_list.hpp>
#include <sluice/search/detail/wanted_candidates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace sluice::inline v0::detail {

/// Throws std::invalid_argument: `missing` tokens do not fit into `room`.
/// \param what  the constraints in words, if they have any
[[noreturn]] inline void refuse_length(std::int32_t missing, std::int32_t room, bool end_apart, std::string what) {
  if (what.size() > 200) what = what.substr(0, 200) + " ...";
  require(false, "constraints", std::to_string(missing) + " tokens and more" + (what.empty() ? "" : " (" + what + ")"),
          "the maximum length leaves " + std::to_string(room) + (end_apart ? ", the end included" : ""));
  std::abort();  // not reached
}

}  // namespace sluice::inline v0::detail

namespace sluice::inline v0::detail::constrained_loop {

using Entry = BeamState::Entry;
using Pick = BeamState::Pick;
using Ended = BeamState::Ended;

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

template <class State>
auto const& after(State const& s, History::Node node) {
  return s.after[at(node + 1)];
}
/// Clamped, since the automaton is user code.
template <class Search, class Progress>
std::int32_t bank(Search const& search, typename Search::State const& s, Progress const& state) {
  return std::clamp(static_cast<std::int32_t>(search.constraints.progress(state)), 0, s.choice.banks() - 1);
}
/// Grid beam search: all of a hypothesis's tokens are candidates, independently of other hypotheses.
template <class Search>
bool alone(Search const& search) {
  return search.banks == Banks::equal && search.beam.pruning.max_per_parent != Pruning::unlimited;
}
template <class Search>
bool complete(Search const& search, typename Search::State const& s, History::Node node) {
  return search.constraints.complete(after(s, node));
}

/// Whether the output needs an eos that the constraints do not include.
template <class Search>
bool end_apart(Search const& search, Vocabulary const& vocabulary) {
  if (vocabulary.eos.empty() || search.beam.at_maximum == AtMaximum::truncate ||
      search.beam.at_maximum == AtMaximum::best_unfinished)
    return false;
  TokenSet named;
  search.insert_into(named);
  return !named.words().empty() &&
         std::none_of(vocabulary.eos.begin(), vocabulary.eos.end(), [&](Token end) { return named.contains(end); });
}

/// Adds the automaton's tokens to the query of one hypothesis.
template <class Search>
void ask(Search const& search, typename Search::State& s, Query& query, std::size_t rank) {
  auto const& b = s.inner;
  auto const& state = after(s, b.beam[rank].node);
  auto& wanted = s.wanted[rank];
  wanted.clear();
  query.label = bank(search, s, state);
  if (beam_loop::forced(search.beam, b)) return;
  // The best candidates of the whole beam, over all banks, may all come from one hypothesis.
  auto const ends = static_cast<std::int32_t>(b.vocabulary->eos.size());
  auto const looked_at = alone(search) ? search.beam.width : beam_loop::looked_at(search.beam, b);
  query.best = (std::min)(looked_at + ends, search.beam.pruning.max_per_parent);
  search.constraints.wanted(state, wanted);
  query.probes = wanted;
  if constexpr (NamesAllowed<decltype(search.constraints)>)
    if (query.only == nullptr) query.only = search.constraints.allowed(state);
  if constexpr (NamesForbidden<decltype(search.constraints)>) {
    s.tokens.clear();
    search.constraints.forbidden(state, s.tokens);
    if (s.tokens.empty()) return;
    auto& edits = s.edits[rank];
    edits.assign(query.edits.begin(), query.edits.end());
    for (auto const token : s.tokens) edits.push_back(Edit::forbid(token));
    query.edits = edits;
  }
}

/// Whether a candidate is allowed; finds its bank.
template <class Search>
bool possible(Search const& search, typename Search::State& s, Pick const& pick) {
  auto& found = s.choice.bank(pick);
  if (found == BankChoice::untried) {
    auto const& parent = after(s, s.inner.beam[at(pick.parent)].node);
    if (pick.carried) {
      found = bank(search, s, parent);
    } else {
      auto const state = search.constraints.next(parent, pick.token);
      auto const never = search.constraints.dead(state) || (pick.ended && !search.constraints.complete(state));
      found = never ? BankChoice::impossible : bank(search, s, state);
    }
  }
  return found != BankChoice::impossible;
}

/// Collects all tokens that were listed and all that were wanted.
template <class Search>
void collect(Search const& search, typename Search::State& s, Expansion const& answer) {
  auto& b = s.inner;
  b.picks.clear(), s.choice.clear();
  for (std::size_t r = 0; r < b.beam.size(); ++r) {
    auto const first = b.picks.size();
    beam_loop::add_candidates(search.beam, b, r, answer);
    s.choice.grow(b.picks.size());
    if (!b.beam[r].ended && !beam_loop::forced(search.beam, b))
      add_wanted(search.beam, b, r, answer[at(b.line[r])], s.wanted[r], first, s.choice);
  }
  for (std::size_t i = 0; i < b.picks.size();) {  // the best of each hypothesis
    auto const parent = b.picks[i].parent;
    auto const of_parent = [&] { return i < b.picks.size() && b.picks[i].parent == parent; };
    while (search.replace_impossible && of_parent() && !possible(search, s, b.picks[i])) ++i;
    if (of_parent()) s.choice.ensure(b.picks[i]);
    while (of_parent()) ++i;
  }
}

/// Reduces all candidates to those that the beam takes, in that order.
template <class Search>
void select(Search const& search, typename Search::State& s) {
  auto& picks = s.inner.picks;
  std::sort(picks.begin(), picks.end(), beam_loop::better);
  auto const looked_at = beam_loop::looked_at(search.beam, s.inner);
  auto const limit = alone(search) ? picks.size() : at(looked_at);
  std::size_t seen = 0, kept = 0;
  for (auto const& pick : picks) {
    if (seen >= limit && !s.choice.certain(pick)) continue;
    auto const may_come = possible(search, s, pick);
    if (may_come || !search.replace_impossible) ++seen;
    if (may_come) picks[kept++] = pick;
  }
  picks.erase(picks.begin() + static_cast<std::ptrdiff_t>(kept), picks.end());
  s.choice.prune_locally(picks, search.beam.pruning.relative_local_threshold);
  // Those that leave make room for others that continue.
  s.choice.choose(picks, {.banks = search.banks,
                          .width = search.beam.width,
                          .places = s.inner.room,
                          .looked_at = looked_at,
                          .refill = search.beam.finished == FinishedHypotheses::set_aside});
}

/// Advances the automaton for every new hypothesis in the history.
template <class Search>
void follow(Search const& search, typename Search::State& s) {
  auto const& history = s.inner.history;
  for (auto node = static_cast<History::Node>(s.after.size()) - 1; node < history.size(); ++node)
    s.after.push_back(search.constraints.next(after(s, history.parent(node)), history.token(node)));
}

/// Drops hypotheses of the next beam that are too far below the best of their bank, or below the best finished one.
template <class Search>
void prune(Search const& search, typename Search::State& s) {
  auto& b = s.inner;
  if (search.beam.pruning.by_total()) {
    s.banks.clear();
    for (auto const& entry : b.next) s.banks.push_back(bank(search, s, after(s, entry.node)));
    s.choice.prune(b.next, s.banks, search.beam.pruning.margin(), b.best_finished);
  }
  auto const constrained = search.constraints.total() > 0 ? search.prune_finished : Pruning::off;
  beam_loop::drop_below_finished(search.beam, b, (std::min)(search.beam.pruning.below_finished, constrained));
}

/// Ends the sentence.
template <class Search>
void close(Search const& search, typename Search::State& s) {
  auto& b = s.inner;
  if (b.out.empty() || search.list_incomplete)
    for (auto const& entry : b.next.empty() ? b.beam : b.next)
      s.stranded.push_back(
          {entry.node, entry.log_prob, beam_loop::score(search.beam, b, entry), entry.ended, !b.out.empty()});
  if (search.beam.at_maximum == AtMaximum::best_unfinished &&
      !b.vocabulary->eos.empty())  // it must be complete to join
    erase_if(b.next, [&](Entry const& entry) { return !entry.ended && !complete(search, s, entry.node); });
  beam_loop::close(search.beam, b);
}

template <class Search>
void begin(Search const& search, typename Search::State& s, Sentence const& sentence) {
  search.beam.begin(s.inner, sentence);
  s.plain = trivial(search.constraints);
  if (s.plain) return;
  auto first = search.constraints.initial(sentence);
  for (auto const token : sentence.prefix) first = search.constraints.next(first, token);
  auto const room = s.inner.bounds.max - s.inner.prefix.size();
  auto const missing = constraints_remaining(search.constraints, first);
  auto const apart = end_apart(search, *sentence.vocabulary);
  if (missing > 0 && missing + (apart ? 1 : 0) > room)
    refuse_length(missing, room, apart, constraints_text(search.constraints));
  require(search.banks != Banks::equal || search.beam.width > search.constraints.total(), "width", search.beam.width,
          "leaves no place for each of " + std::to_string(search.constraints.total() + 1) + " equal banks");
  s.after.assign(1, first);
  s.wanted.resize(at(search.beam.width)), s.edits.resize(at(search.beam.width));
  s.choice.reset(search.constraints.total() + 1);
  s.stranded.clear();
}

template <class Search>
void plan(Search const& search, typename Search::State& s, Plan& plan) {
  auto const before = plan.queries().size();
  search.beam.plan(s.inner, plan);
  if (s.plain) return;
  auto const queries = plan.queries().subspan(before);
  if (queries.empty()) return;
  plan.keep(0);  // the best token of every hypothesis is a candidate
  for (std::size_t rank = 0; rank < s.inner.beam.size(); ++rank)
    if (!s.inner.beam[rank].ended) ask(search, s, queries[at(s.inner.line[rank])], rank);
}

template <class Search>
bool advance(Search const& search, typename Search::State& s, Expansion const& answer) {
  namespace loop = beam_loop;
  auto& b = s.inner;
  if (s.plain) return search.beam.advance(b, answer);
  if (b.bounds.max == 0) return b.over = true;
  loop::receive(search.beam, b);
  collect(search, s, answer);
  select(search, s);
  loop::choose(search.beam, b);
  follow(search, s);
  std::sort(b.next.begin(), b.next.end(),
            [](Entry const& x, Entry const& y) { return x.value != y.value ? x.value > y.value : x.node < y.node; });
  ++b.generated;
  prune(search, s);
  if (loop::over(search.beam, b)) close(search, s), b.over = true;
  else loop::go_on(b);
  return b.over;
}

template <class Search>
void finish(Search const& search, typename Search::State const& s, Result& result) {
  namespace loop = beam_loop;
  auto const& b = s.inner;
  if (s.plain) return search.beam.finish(b, result);
  result.hypotheses.clear();
  Buffer<Listed> list;
  auto const add = [&](Ended ended) {
    auto const& state = after(s, ended.node);
    ended.order = list.size();
    list.push_back({ended, constraints_met(search.constraints, state), search.constraints.complete(state)});
  };
  loop::for_each_told(search.beam, b, add);
  if ((list.empty() || search.list_incomplete) && search.beam.at_maximum != AtMaximum::drop)
    for (auto const& ended : s.stranded)
      if (std::none_of(b.out.begin(), b.out.end(), [&](Ended const& one) { return one.node == ended.node; }))
        add(ended);
  sort_and_cut(list, search.beam.n_best, search.list_incomplete);
  for (auto const& one : list) {
    auto& h = loop::add_hypothesis(b, one.ended, result);
    h.constraints_met = one.met, h.constraints_total = constraints_total(search.constraints);
  }
  loop::fail_if_empty(search.beam, b, result);
  b.prefix.complete(result);
}

}  // namespace sluice::inline v0::detail::constrained_loop
