// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search for outputs that must contain something.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/beam/beam_state.hpp>
#include <sluice/search/constraint/automaton.hpp>
#include <sluice/search/constraint/bank_sizes.hpp>
#include <sluice/search/constraint/constraints.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace sluice::inline v0 {

/// Lexically constrained decoding by dynamic beam allocation (Post and Vilar 2018) over any ConstraintAutomaton: a beam of
/// fixed width whose places are divided, at every step, among hypotheses that have met more and less of their constraints
/// (banks). The constraints are one sentence's: give each request its own search (Request::search); copies are cheap.
///
/// Every step, the candidates are the best of all hypotheses together, the tokens that each one's automaton wants, and each
/// one's best token; they are grouped by progress, the banks get their sizes (bank_sizes.hpp), and each takes its best.
/// Only what is complete may end. Under Finished::set_aside, the places of those that end are filled up again from what
/// goes on. Everything else is `beam`'s: finishing, stopping, lengths, scores; its pruning by thresholds compares within a
/// bank, so that no bank loses its best. Under an automaton that is trivial this is `beam`, decision for decision.
///
/// The n-best list holds complete hypotheses. Only when there is none, its one entry is the best of the last beam, by
/// constraints met, then by score: see Hypothesis::constraints_met.
///
/// A step costs O(k^2 + k W) steps of the automaton beside the model, k the width, W the tokens that a hypothesis wants; the
/// model runs `width` rows, as without constraints. Nothing is allocated once warm.
template <class A = Constraints>
struct ConstrainedBeamSearch {
  static_assert(ConstraintAutomaton<A>,
                "sluice: A is not a ConstraintAutomaton (sluice/search/constraint/automaton.hpp)");

  BeamSearch beam{};
  A constraints{};
  Banks banks = Banks::even;
  double prune_finished =
      20;  ///< Pruning::below_finished of sentences that have something to meet; Pruning::off = none
  bool replace_impossible = true;  ///< whether the best candidates are counted without those that may not come; false:
                                   ///< those take places, and are dropped (Sockeye)
  bool list_incomplete = false;    ///< behind the complete hypotheses, also list what is left of the beam

  struct State {
    detail::BeamState inner;
    bool plain = true;
    std::vector<typename A::State> after;  // [node + 1]: of the automaton
    std::vector<std::vector<Token>> wanted;
    std::vector<std::vector<Edit>> edits;
    std::vector<std::int32_t> bank;   // [order] of a candidate: its progress; see untried, impossible
    std::vector<std::uint8_t> stays;  // [order] whether it is a candidate whatever its rank; or taken
    std::vector<detail::BeamState::Pick> chosen;
    std::vector<std::int32_t> counts, sizes;
    std::vector<double> best;  // [bank]
    std::vector<detail::BeamState::Ended> stranded;
    std::vector<Token> tokens;
  };

  void check() const {
    beam.check();
    require(prune_finished >= 0, "prune_finished", prune_finished, "must be a number >= 0");
    require(banks != Banks::fairseq || beam.finished == Finished::set_aside, "banks", "fairseq",
            "needs Finished::set_aside");
  }
  std::int32_t slots() const { return beam.slots(); }
  void insert_into(TokenSet& set) const {
    if constexpr (requires { constraints.insert_into(set); }) constraints.insert_into(set);
  }

  /// \throws std::invalid_argument  what the automaton refuses, and demands that take more tokens than the output may have
  void start(State& s, Sentence const& sentence) const;
  void plan(State& s, Plan& plan) const;
  bool advance(State& s, Expansion const& answer) const;
  Progress progress(State const& s) const { return beam.progress(s.inner); }
  void settled(State& s, std::vector<Token>& tokens) const { beam.settled(s.inner, tokens); }
  void finish(State const& s, Result& result) const;

 private:
  using Entry = detail::BeamState::Entry;
  using Pick = detail::BeamState::Pick;
  using Ended = detail::BeamState::Ended;
  static constexpr std::int32_t untried = -1, impossible = -2;
  static constexpr std::uint8_t taken = 2;

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static typename A::State const& after(State const& s, History::Node node) { return s.after[at(node + 1)]; }
  /// Whatever a stranger's automaton says.
  std::int32_t bank(State const& s, typename A::State const& state) const {
    return std::clamp(static_cast<std::int32_t>(constraints.progress(state)), 0,
                      static_cast<std::int32_t>(s.counts.size()) - 1);
  }
  std::int32_t bank_of(State const& s, History::Node node) const { return bank(s, after(s, node)); }
  /// Grid beam search: whatever a hypothesis offers is a candidate, as if the others were not there.
  bool alone() const { return banks == Banks::equal && beam.pruning.max_per_parent != Pruning::unlimited; }
  bool complete(State const& s, History::Node node) const { return constraints.complete(after(s, node)); }

  bool end_apart(Vocabulary const& vocabulary) const;
  void ask(State& s, Query& query, std::int32_t rank) const;
  void follow(State& s) const;
  void collect(State& s, Expansion const& answer) const;
  std::int32_t try_out(State& s, Pick const& pick) const;
  void select(State& s) const;
  void count(State& s, std::span<Pick const> picks, bool live) const;
  void take(State& s, std::span<Pick const> picks, std::int32_t places, bool live) const;
  void share_equally(State& s, std::int32_t places, bool live) const;
  void stripes(State& s) const;
  void prune_locally(State& s) const;
  void prune(State& s) const;
};

template <class A>
void ConstrainedBeamSearch<A>::start(State& s, Sentence const& sentence) const {
  beam.start(s.inner, sentence);
  s.plain = detail::trivial(constraints);
  if (s.plain) return;
  auto first = constraints.start(sentence);
  for (auto const token : sentence.prefix) first = constraints.next(first, token);
  auto const room = s.inner.bounds.max - static_cast<std::int32_t>(sentence.prefix.size());
  auto const missing = detail::constraints_remaining(constraints, first);
  if (missing + (end_apart(*sentence.vocabulary) ? 1 : 0) > std::max(room, 0) && missing > 0) {
    auto what = detail::constraints_text(constraints);
    if (what.size() > 200) what = what.substr(0, 200) + " ...";
    require(false, "constraints",
            std::to_string(missing) + " tokens and more" + (what.empty() ? "" : " (" + what + ")"),
            "the maximum length leaves " + std::to_string(std::max(room, 0)) +
                (end_apart(*sentence.vocabulary) ? ", the end included" : ""));
  }
  require(banks != Banks::equal || beam.width > constraints.total(), "width", beam.width,
          "leaves no place for each of " + std::to_string(constraints.total() + 1) + " equal banks");
  s.after.assign(1, first);
  s.wanted.resize(at(beam.width)), s.edits.resize(at(beam.width));
  s.counts.assign(at(constraints.total()) + 1, 0), s.sizes = s.counts, s.best.resize(s.counts.size());
  s.stranded.clear();
}

/// Whether the output needs an end that the constraints do not hold.
template <class A>
bool ConstrainedBeamSearch<A>::end_apart(Vocabulary const& vocabulary) const {
  if (vocabulary.eos.empty() || beam.at_maximum == AtMaximum::truncate || beam.at_maximum == AtMaximum::best_unfinished)
    return false;
  TokenSet named;
  insert_into(named);
  return !named.words().empty() && std::ranges::none_of(vocabulary.eos, [&](Token end) { return named.contains(end); });
}

template <class A>
void ConstrainedBeamSearch<A>::plan(State& s, Plan& plan) const {
  auto const before = plan.queries().size();
  beam.plan(s.inner, plan);
  if (s.plain) return;
  auto const queries = plan.queries().subspan(before);
  if (queries.empty()) return;
  plan.keep(0);  // every hypothesis' best token is a candidate
  for (std::size_t rank = 0; rank < s.inner.beam.size(); ++rank)
    if (!s.inner.beam[rank].ended) ask(s, queries[at(s.inner.line[rank])], static_cast<std::int32_t>(rank));
}

/// What the automaton adds to the query of one hypothesis.
template <class A>
void ConstrainedBeamSearch<A>::ask(State& s, Query& query, std::int32_t rank) const {
  auto const& state = after(s, s.inner.beam[at(rank)].node);
  auto& wanted = s.wanted[at(rank)];
  wanted.clear();
  if (beam.forced(s.inner)) return;
  // The best of all hypotheses together, over all banks, may come from one of them.
  auto const ends = static_cast<std::int32_t>(s.inner.vocabulary->eos.size());
  auto const looked_at = alone() ? beam.width : beam.looked_at(s.inner);
  query.best = std::min(looked_at + ends, beam.pruning.max_per_parent);
  constraints.wanted(state, wanted);
  query.probes = wanted;
  if constexpr (detail::NamesAllowed<A>)
    if (query.only == nullptr) query.only = constraints.allowed(state);
  if constexpr (detail::NamesForbidden<A>) {
    s.tokens.clear();
    constraints.forbidden(state, s.tokens);
    if (s.tokens.empty()) return;
    auto& edits = s.edits[at(rank)];
    edits.assign(query.edits.begin(), query.edits.end());
    for (auto const token : s.tokens) edits.push_back({token, -std::numeric_limits<float>::infinity(), 1});
    query.edits = edits;
  }
}

/// Brings the automaton to every hypothesis that is new in the history.
template <class A>
void ConstrainedBeamSearch<A>::follow(State& s) const {
  auto const& history = s.inner.history;
  for (auto node = static_cast<History::Node>(s.after.size()) - 1; node < history.size(); ++node)
    s.after.push_back(constraints.next(after(s, history.parent(node)), history.token(node)));
}

template <class A>
bool ConstrainedBeamSearch<A>::advance(State& s, Expansion const& answer) const {
  auto& b = s.inner;
  if (s.plain) return beam.advance(b, answer);
  if (b.bounds.max == 0) return b.over = true;
  beam.receive(b);
  collect(s, answer);
  select(s);
  beam.choose(b);
  follow(s);
  std::ranges::sort(
      b.next, [](Entry const& x, Entry const& y) { return x.value != y.value ? x.value > y.value : x.node < y.node; });
  ++b.generated;
  prune(s);
  if (b.generated < b.bounds.max && !b.next.empty() && !beam.stops(b)) {
    beam.place(b);
    return false;
  }
  if (b.out.empty() || list_incomplete)
    for (auto const& entry : b.next.empty() ? b.beam : b.next)
      s.stranded.push_back({entry.node, entry.log_prob, beam.score(b, entry), entry.ended, !b.out.empty()});
  if (beam.at_maximum == AtMaximum::best_unfinished && !b.vocabulary->eos.empty())  // it must be complete to join
    std::erase_if(b.next, [&](Entry const& entry) { return !entry.ended && !complete(s, entry.node); });
  beam.close(b);
  return b.over = true;
}

/// All tokens that were listed, and those that were wanted.
template <class A>
void ConstrainedBeamSearch<A>::collect(State& s, Expansion const& answer) const {
  auto& b = s.inner;
  b.picks.clear(), s.stays.clear();
  for (std::size_t r = 0; r < b.beam.size(); ++r) {
    auto const first = b.picks.size();
    beam.collect_from(b, r, answer, -std::numeric_limits<double>::infinity());
    s.stays.resize(b.picks.size(), 0);
    if (b.beam[r].ended || beam.forced(b)) continue;
    auto const line = answer[at(b.line[r])];
    auto malus = beam.sibling_penalty * static_cast<double>(line.best.size());
    for (std::size_t i = 0; i < line.probes.size(); ++i) {
      auto const token = s.wanted[r][i];
      auto const listed = std::find_if(b.picks.begin() + static_cast<std::ptrdiff_t>(first), b.picks.end(),
                                       [&](Pick const& pick) { return pick.token == token; });
      if (listed != b.picks.end()) {
        s.stays[at(listed->order)] = 1;
        continue;
      }
      auto const gain = static_cast<double>(line.probes[i]);
      if (!(gain > -std::numeric_limits<double>::infinity())) continue;
      b.picks.push_back({b.beam[r].value + gain - malus, b.beam[r].log_prob + gain, static_cast<std::int32_t>(r),
                         static_cast<std::int32_t>(b.picks.size()), token, line.probes[i], b.is_eos(token), false});
      s.stays.push_back(1);
      malus += beam.sibling_penalty;
    }
  }
  s.bank.assign(b.picks.size(), untried);
  for (std::size_t i = 0; i < b.picks.size();) {  // each hypothesis' best
    auto const parent = b.picks[i].parent;
    if (replace_impossible)
      while (i < b.picks.size() && b.picks[i].parent == parent && try_out(s, b.picks[i]) == impossible) ++i;
    if (i < b.picks.size() && b.picks[i].parent == parent) s.stays[i] = 1;
    while (i < b.picks.size() && b.picks[i].parent == parent) ++i;
  }
}

/// The bank of a candidate, or impossible.
template <class A>
std::int32_t ConstrainedBeamSearch<A>::try_out(State& s, Pick const& pick) const {
  auto& place = s.bank[at(pick.order)];
  if (place != untried) return place;
  auto const& parent = after(s, s.inner.beam[at(pick.parent)].node);
  if (pick.carried) return place = bank(s, parent);
  auto const state = constraints.next(parent, pick.token);
  if (constraints.dead(state) || (pick.ended && !constraints.complete(state))) return place = impossible;
  return place = bank(s, state);
}

/// From all candidates to those that BeamSearch::choose takes, in the order in which it does.
template <class A>
void ConstrainedBeamSearch<A>::select(State& s) const {
  auto& picks = s.inner.picks;
  std::ranges::sort(
      picks, [](Pick const& a, Pick const& b) { return a.value != b.value ? a.value > b.value : a.order < b.order; });
  auto const limit = alone() ? picks.size() : at(beam.looked_at(s.inner));
  std::size_t seen = 0, kept = 0;
  for (auto const& pick : picks) {
    if (seen >= limit && s.stays[at(pick.order)] == 0) continue;
    auto const possible = try_out(s, pick) != impossible;
    if (possible || !replace_impossible) ++seen;
    if (possible) picks[kept++] = pick;
  }
  picks.erase(picks.begin() + static_cast<std::ptrdiff_t>(kept), picks.end());
  prune_locally(s);
  s.chosen.clear();
  if (banks == Banks::fairseq) {
    stripes(s);
  } else {
    take(s, picks, s.inner.room, false);
    auto const ended = std::ranges::count_if(s.chosen, &Pick::ended);
    // Those that leave make room for others that go on.
    if (beam.finished == Finished::set_aside && ended > 0) take(s, picks, static_cast<std::int32_t>(ended), true);
  }
  picks.assign(s.chosen.begin(), s.chosen.end());
}

/// How many candidates each bank has.
template <class A>
void ConstrainedBeamSearch<A>::count(State& s, std::span<Pick const> picks, bool live) const {
  std::ranges::fill(s.counts, 0);
  for (auto const& pick : picks)
    if (s.stays[at(pick.order)] != taken && !(live && pick.ended)) ++s.counts[at(s.bank[at(pick.order)])];
}

/// Appends the best of each bank to `chosen`, `places` in all at most, in the order of `picks`; of those that were not taken
/// before and, if `live`, go on.
template <class A>
void ConstrainedBeamSearch<A>::take(State& s, std::span<Pick const> picks, std::int32_t places, bool live) const {
  count(s, picks, live);
  if (banks == Banks::sockeye) bank_sizes_sockeye(s.counts, places, s.sizes);
  else if (banks == Banks::even) bank_sizes_even(s.counts, places, s.sizes);
  else if (banks == Banks::equal) share_equally(s, places, live);
  else bank_sizes_paper(s.counts, places, s.sizes);
  for (auto const& pick : picks) {
    auto& places_left = s.sizes[at(s.bank[at(pick.order)])];
    auto& stays = s.stays[at(pick.order)];
    if (stays == taken || (live && pick.ended) || places_left <= 0) continue;
    --places_left, stays = taken;
    s.chosen.push_back(pick);
  }
}

/// Banks::equal: every bank keeps its own places. Those that ended and left the beam (Finished::shrink) had been of the
/// top bank; those that leave it now (`live`) are replaced from their own.
template <class A>
void ConstrainedBeamSearch<A>::share_equally(State& s, std::int32_t places, bool live) const {
  std::ranges::fill(s.sizes, live ? 0 : beam.width / static_cast<std::int32_t>(s.sizes.size()));
  if (!live) s.sizes.back() = std::max(0, s.sizes.back() - (beam.width - places));
  else
    for (auto const& pick : s.chosen) s.sizes[at(s.bank[at(pick.order)])] += pick.ended ? 1 : 0;
}

/// The best of each bank, from the top bank down, then the second best of each, and so on.
template <class A>
void ConstrainedBeamSearch<A>::stripes(State& s) const {
  auto& picks = s.inner.picks;
  std::ranges::fill(s.counts, 0);
  s.tokens.resize(s.bank.size());
  for (auto const& pick : picks)  // its place in its bank
    s.tokens[at(pick.order)] = s.counts[at(s.bank[at(pick.order)])]++;
  s.chosen.assign(picks.begin(), picks.end());
  std::ranges::sort(s.chosen, [&](Pick const& a, Pick const& b) {
    auto const key = [&](Pick const& pick) { return std::pair(s.tokens[at(pick.order)], -s.bank[at(pick.order)]); };
    return key(a) < key(b);
  });
  if (s.chosen.size() > at(beam.looked_at(s.inner)))
    s.chosen.erase(s.chosen.begin() + beam.looked_at(s.inner), s.chosen.end());
}

/// Pruning::relative_local_threshold, in each bank.
template <class A>
void ConstrainedBeamSearch<A>::prune_locally(State& s) const {
  if (beam.pruning.relative_local_threshold <= 0) return;
  std::ranges::fill(s.best, -std::numeric_limits<double>::infinity());
  auto& picks = s.inner.picks;
  for (auto const& pick : picks) {
    auto& best = s.best[at(s.bank[at(pick.order)])];
    if (!pick.carried) best = std::max(best, static_cast<double>(pick.token_log_prob));
  }
  std::erase_if(picks, [&](Pick const& pick) {
    auto const bar = s.best[at(s.bank[at(pick.order)])] + std::log(beam.pruning.relative_local_threshold);
    return !pick.carried && !(static_cast<double>(pick.token_log_prob) > bar);
  });
}

/// The thresholds on log-probability, in each bank; and that against the best finished hypothesis.
template <class A>
void ConstrainedBeamSearch<A>::prune(State& s) const {
  auto& next = s.inner.next;
  if (beam.pruning.by_total()) {
    std::ranges::fill(s.best, -std::numeric_limits<double>::infinity());
    s.best.back() = s.inner.best_finished;
    for (auto const& entry : next) {
      auto& best = s.best[at(bank_of(s, entry.node))];
      best = std::max(best, entry.value);
    }
    std::erase_if(next, [&](Entry const& entry) {
      return !(entry.value > s.best[at(bank_of(s, entry.node))] - beam.pruning.margin());
    });
  }
  auto const constrained = constraints.total() > 0 ? prune_finished : Pruning::off;
  beam.drop_below_finished(s.inner, std::min(beam.pruning.below_finished, constrained));
}

template <class A>
void ConstrainedBeamSearch<A>::finish(State const& s, Result& result) const {
  auto const& b = s.inner;
  if (s.plain) return beam.finish(b, result);
  struct Listed {
    Ended ended;
    std::int32_t met;
    bool complete;
  };
  result.hypotheses.clear();
  std::vector<Listed> list;
  auto const add = [&](Ended ended) {
    auto const& state = after(s, ended.node);
    ended.order = list.size();
    list.push_back({ended, detail::constraints_met(constraints, state), constraints.complete(state)});
  };
  for (auto const& ended : b.out) add(ended);
  if (b.bounds.max == 0) add({.node = History::root});
  if (!b.over)  // called early
    for (auto const& entry : b.beam) add({entry.node, entry.log_prob, beam.score(b, entry), entry.ended, true});
  if ((list.empty() || list_incomplete) && beam.at_maximum != AtMaximum::drop)
    for (auto const& ended : s.stranded)
      if (std::ranges::find(b.out, ended.node, &Ended::node) == b.out.end()) add(ended);
  std::ranges::sort(list, [](Listed const& x, Listed const& y) {
    auto const key = [](Listed const& c) {
      return std::tuple(!c.complete, c.ended.alive, c.complete ? 0 : -c.met, -c.ended.score, c.ended.order);
    };
    return key(x) < key(y);
  });
  auto count = std::min(list.size(), at(beam.n_best));
  if (!list_incomplete) {
    auto const whole = static_cast<std::size_t>(std::ranges::count_if(list, &Listed::complete));
    count = std::min(count, std::max<std::size_t>(whole, 1));
  }
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::min(count, list.size())), list.end());
  for (auto const& c : list) {
    auto& h = result.hypotheses.emplace_back();
    b.history.write(c.ended.node, h);
    h.log_prob = c.ended.log_prob, h.score = c.ended.score, h.finished = c.ended.finished;
    h.constraints_met = c.met, h.constraints_total = detail::constraints_total(constraints);
  }
  if (b.over && list.empty() && beam.at_maximum != AtMaximum::drop)
    result.fail(Failure::no_token_left, "every token was impossible before any hypothesis had finished");
}

}  // namespace sluice::inline v0
