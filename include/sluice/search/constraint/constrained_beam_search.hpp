// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search with lexical constraints. Its options are in constrained_declaration.hpp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/constraint/automaton.hpp>
#include <sluice/search/constraint/constrained_declaration.hpp>
#include <sluice/search/constraint/detail/bank_choice.hpp>
#include <sluice/search/constraint/detail/constrained_list.hpp>
#include <sluice/search/constraint/detail/wanted_candidates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// Throws std::invalid_argument: `missing` tokens do not fit into `room`.
/// \param what  the constraints in words, if they have any
[[noreturn]] inline void refuse_length(std::int32_t missing, std::int32_t room, bool end_apart, std::string what) {
  if (what.size() > 200) what = what.substr(0, 200) + " ...";
  require(false, "constraints", std::to_string(missing) + " tokens and more" + (what.empty() ? "" : " (" + what + ")"),
          "the maximum length leaves " + std::to_string(room) + (end_apart ? ", the end included" : ""));
  std::abort();  // not reached
}

}  // namespace detail

template <class A>
void ConstrainedBeamSearch<A>::begin(State& s, Sentence const& sentence) const {
  beam.begin(s.inner, sentence);
  s.plain = detail::trivial(constraints);
  if (s.plain) return;
  auto first = constraints.initial(sentence);
  for (auto const token : sentence.prefix) first = constraints.next(first, token);
  auto const room = s.inner.bounds.max - s.inner.prefix.size();
  auto const missing = detail::constraints_remaining(constraints, first);
  auto const apart = end_apart(*sentence.vocabulary);
  if (missing > 0 && missing + (apart ? 1 : 0) > room)
    detail::refuse_length(missing, room, apart, detail::constraints_text(constraints));
  require(banks != Banks::equal || beam.width > constraints.total(), "width", beam.width,
          "leaves no place for each of " + std::to_string(constraints.total() + 1) + " equal banks");
  s.after.assign(1, first);
  s.wanted.resize(at(beam.width)), s.edits.resize(at(beam.width));
  s.choice.reset(constraints.total() + 1);
  s.stranded.clear();
}

/// Whether the output needs an eos that the constraints do not include.
template <class A>
bool ConstrainedBeamSearch<A>::end_apart(Vocabulary const& vocabulary) const {
  if (vocabulary.eos.empty() || beam.at_maximum == AtMaximum::truncate || beam.at_maximum == AtMaximum::best_unfinished)
    return false;
  TokenSet named;
  insert_into(named);
  return !named.words().empty() &&
         std::none_of(vocabulary.eos.begin(), vocabulary.eos.end(), [&](Token end) { return named.contains(end); });
}

template <class A>
void ConstrainedBeamSearch<A>::plan(State& s, Plan& plan) const {
  auto const before = plan.queries().size();
  beam.plan(s.inner, plan);
  if (s.plain) return;
  auto const queries = plan.queries().subspan(before);
  if (queries.empty()) return;
  plan.keep(0);  // the best token of every hypothesis is a candidate
  for (std::size_t rank = 0; rank < s.inner.beam.size(); ++rank)
    if (!s.inner.beam[rank].ended) ask(s, queries[at(s.inner.line[rank])], rank);
}

/// Adds the automaton's tokens to the query of one hypothesis.
template <class A>
void ConstrainedBeamSearch<A>::ask(State& s, Query& query, std::size_t rank) const {
  auto const& b = s.inner;
  auto const& state = after(s, b.beam[rank].node);
  auto& wanted = s.wanted[rank];
  wanted.clear();
  query.label = bank(s, state);
  if (detail::beam_loop::forced(beam, b)) return;
  // The best candidates of the whole beam, over all banks, may all come from one hypothesis.
  auto const ends = static_cast<std::int32_t>(b.vocabulary->eos.size());
  auto const looked_at = alone() ? beam.width : detail::beam_loop::looked_at(beam, b);
  query.best = (std::min)(looked_at + ends, beam.pruning.max_per_parent);
  constraints.wanted(state, wanted);
  query.probes = wanted;
  if constexpr (detail::NamesAllowed<A>)
    if (query.only == nullptr) query.only = constraints.allowed(state);
  if constexpr (detail::NamesForbidden<A>) {
    s.tokens.clear();
    constraints.forbidden(state, s.tokens);
    if (s.tokens.empty()) return;
    auto& edits = s.edits[rank];
    edits.assign(query.edits.begin(), query.edits.end());
    for (auto const token : s.tokens) edits.push_back(Edit::forbid(token));
    query.edits = edits;
  }
}

template <class A>
bool ConstrainedBeamSearch<A>::advance(State& s, Expansion const& answer) const {
  namespace loop = detail::beam_loop;
  auto& b = s.inner;
  if (s.plain) return beam.advance(b, answer);
  if (b.bounds.max == 0) return b.over = true;
  loop::receive(beam, b);
  collect(s, answer);
  select(s);
  loop::choose(beam, b);
  follow(s);
  std::sort(b.next.begin(), b.next.end(),
            [](Entry const& x, Entry const& y) { return x.value != y.value ? x.value > y.value : x.node < y.node; });
  ++b.generated;
  prune(s);
  if (loop::over(beam, b)) close(s), b.over = true;
  else loop::go_on(b);
  return b.over;
}

/// Collects all tokens that were listed and all that were wanted.
template <class A>
void ConstrainedBeamSearch<A>::collect(State& s, Expansion const& answer) const {
  auto& b = s.inner;
  b.picks.clear(), s.choice.clear();
  for (std::size_t r = 0; r < b.beam.size(); ++r) {
    auto const first = b.picks.size();
    detail::beam_loop::add_candidates(beam, b, r, answer);
    s.choice.grow(b.picks.size());
    if (!b.beam[r].ended && !detail::beam_loop::forced(beam, b))
      detail::add_wanted(beam, b, r, answer[at(b.line[r])], s.wanted[r], first, s.choice);
  }
  for (std::size_t i = 0; i < b.picks.size();) {  // the best of each hypothesis
    auto const parent = b.picks[i].parent;
    auto const of_parent = [&] { return i < b.picks.size() && b.picks[i].parent == parent; };
    while (replace_impossible && of_parent() && !possible(s, b.picks[i])) ++i;
    if (of_parent()) s.choice.ensure(b.picks[i]);
    while (of_parent()) ++i;
  }
}

/// Whether a candidate is allowed; finds its bank.
template <class A>
bool ConstrainedBeamSearch<A>::possible(State& s, Pick const& pick) const {
  auto& found = s.choice.bank(pick);
  if (found == detail::BankChoice::untried) {
    auto const& parent = after(s, s.inner.beam[at(pick.parent)].node);
    if (pick.carried) {
      found = bank(s, parent);
    } else {
      auto const state = constraints.next(parent, pick.token);
      auto const never = constraints.dead(state) || (pick.ended && !constraints.complete(state));
      found = never ? detail::BankChoice::impossible : bank(s, state);
    }
  }
  return found != detail::BankChoice::impossible;
}

/// Reduces all candidates to those that the beam takes, in that order.
template <class A>
void ConstrainedBeamSearch<A>::select(State& s) const {
  auto& picks = s.inner.picks;
  std::sort(picks.begin(), picks.end(), detail::beam_loop::better);
  auto const looked_at = detail::beam_loop::looked_at(beam, s.inner);
  auto const limit = alone() ? picks.size() : at(looked_at);
  std::size_t seen = 0, kept = 0;
  for (auto const& pick : picks) {
    if (seen >= limit && !s.choice.certain(pick)) continue;
    auto const may_come = possible(s, pick);
    if (may_come || !replace_impossible) ++seen;
    if (may_come) picks[kept++] = pick;
  }
  picks.erase(picks.begin() + static_cast<std::ptrdiff_t>(kept), picks.end());
  s.choice.prune_locally(picks, beam.pruning.relative_local_threshold);
  // Those that leave make room for others that continue.
  s.choice.choose(picks, {.banks = banks,
                          .width = beam.width,
                          .places = s.inner.room,
                          .looked_at = looked_at,
                          .refill = beam.finished == FinishedHypotheses::set_aside});
}

/// Advances the automaton for every new hypothesis in the history.
template <class A>
void ConstrainedBeamSearch<A>::follow(State& s) const {
  auto const& history = s.inner.history;
  for (auto node = static_cast<History::Node>(s.after.size()) - 1; node < history.size(); ++node)
    s.after.push_back(constraints.next(after(s, history.parent(node)), history.token(node)));
}

/// Drops hypotheses of the next beam that are too far below the best of their bank, or below the best finished one.
template <class A>
void ConstrainedBeamSearch<A>::prune(State& s) const {
  auto& b = s.inner;
  if (beam.pruning.by_total()) {
    s.banks.clear();
    for (auto const& entry : b.next) s.banks.push_back(bank(s, after(s, entry.node)));
    s.choice.prune(b.next, s.banks, beam.pruning.margin(), b.best_finished);
  }
  auto const constrained = constraints.total() > 0 ? prune_finished : Pruning::off;
  detail::beam_loop::drop_below_finished(beam, b, (std::min)(beam.pruning.below_finished, constrained));
}

/// Ends the sentence.
template <class A>
void ConstrainedBeamSearch<A>::close(State& s) const {
  auto& b = s.inner;
  if (b.out.empty() || list_incomplete)
    for (auto const& entry : b.next.empty() ? b.beam : b.next)
      s.stranded.push_back(
          {entry.node, entry.log_prob, detail::beam_loop::score(beam, b, entry), entry.ended, !b.out.empty()});
  if (beam.at_maximum == AtMaximum::best_unfinished && !b.vocabulary->eos.empty())  // it must be complete to join
    std::erase_if(b.next, [&](Entry const& entry) { return !entry.ended && !complete(s, entry.node); });
  detail::beam_loop::close(beam, b);
}

template <class A>
void ConstrainedBeamSearch<A>::finish(State const& s, Result& result) const {
  namespace loop = detail::beam_loop;
  auto const& b = s.inner;
  if (s.plain) return beam.finish(b, result);
  result.hypotheses.clear();
  std::vector<detail::Listed> list;
  auto const add = [&](Ended ended) {
    auto const& state = after(s, ended.node);
    ended.order = list.size();
    list.push_back({ended, detail::constraints_met(constraints, state), constraints.complete(state)});
  };
  loop::for_each_told(beam, b, add);
  if ((list.empty() || list_incomplete) && beam.at_maximum != AtMaximum::drop)
    for (auto const& ended : s.stranded)
      if (std::none_of(b.out.begin(), b.out.end(), [&](Ended const& one) { return one.node == ended.node; }))
        add(ended);
  detail::sort_and_cut(list, beam.n_best, list_incomplete);
  for (auto const& one : list) {
    auto& h = loop::add_hypothesis(b, one.ended, result);
    h.constraints_met = one.met, h.constraints_total = detail::constraints_total(constraints);
  }
  loop::fail_if_empty(beam, b, result);
  b.prefix.complete(result);
}

}  // namespace sluice::inline v0
