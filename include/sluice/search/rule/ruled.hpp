// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules about what may come next, for any search.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// What a rule sees of one hypothesis: its output so far.
struct Output {
  std::span<Token const> tokens;  ///< forced prefix and generated tokens
  std::size_t prefix;             ///< how many of them were forced
  Vocabulary const& vocabulary;
};

// clang-format off
/// A rule looks at one hypothesis and edits the scores of its next token. `State` is a small value that follows the
/// hypothesis (an automaton's state; an empty struct where the tokens say it all).
///
///  - `initial(sentence)`: the state before the first output token; throws std::invalid_argument for options that make no
///    sense in this vocabulary;
///  - `next(state, token)`: the state after `token`;
///  - `edit(state, output, edits)`: appends edits for the next token. They act when the search's own do (Query::stage).
///    Never more than a few: every edit of a line costs a look at each candidate, many cost a copy of the line;
///  - `check()`, optional (the compiler refuses one of another signature): throws std::invalid_argument for options that
///    make no sense, naming the option and its value.
template <class R>
concept Rule = std::copyable<typename R::State> &&
  requires(R const& rule, typename R::State const& state, Sentence const& sentence, Output const& output, Token token,
           std::vector<Edit>& edits) {
    { rule.initial(sentence) } -> std::same_as<typename R::State>;
    { rule.next(state, token) } -> std::same_as<typename R::State>;
    rule.edit(state, output, edits);
  };
// clang-format on

namespace detail {

/// Lets a rule check its options.
template <Rule R>
void check_rule(R const& rule) {
  if constexpr (requires { rule.check(); }) rule.check();
  else static_assert(!stray_check<R>(), "sluice: check() of a rule must be const and take nothing");
}

}  // namespace detail

/// Several rules as one.
template <Rule... Rs>
struct Rules {
  using State = std::tuple<typename Rs::State...>;
  std::tuple<Rs...> rules;

  Rules() = default;
  explicit Rules(Rs... all) : rules(std::move(all)...) {}

  void check() const {
    std::apply([](auto const&... rule) { (detail::check_rule(rule), ...); }, rules);
  }
  State initial(Sentence const& sentence) const {
    return std::apply([&](auto const&... rule) { return State(rule.initial(sentence)...); }, rules);
  }
  State next(State const& state, Token token) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return State(std::get<I>(rules).next(std::get<I>(state), token)...);
    }
    (std::index_sequence_for<Rs...>{});
  }
  void edit(State const& state, Output const& output, std::vector<Edit>& edits) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(rules).edit(std::get<I>(state), output, edits), ...);
    }
    (std::index_sequence_for<Rs...>{});
  }
};

namespace detail {

/// What a wrapper of S needs: a member where the compiler knows it, else a function that asks the wrapper's `search`.
template <class Wrapper, class S>
struct NeedsOf {
  Abilities needs() const { return sluice::needs(static_cast<Wrapper const&>(*this).search); }
};
template <class Wrapper, KnownNeeds S>
struct NeedsOf<Wrapper, S> {
  static constexpr Abilities needs = sluice::needs<S>();
};

}  // namespace detail

/// Any search under a rule. The search does not know: the wrapper follows the rows that it plans (forks, blocks,
/// roll-back) and adds the rule's edits to its queries. It acts where a token is chosen, not where one is forced or asked
/// for: a token that is a probe is never edited, so that a forced prefix and constraints win over a ban.
///
/// Costs a copy of the tokens for each fork and whatever the rule costs for each line.
template <Search S, Rule R>
struct Ruled : detail::NeedsOf<Ruled<S, R>, S> {
  S search{};
  R rule{};

  Ruled() = default;
  explicit Ruled(S plain) : search(std::move(plain)) {}
  Ruled(S plain, R its_rule) : search(std::move(plain)), rule(std::move(its_rule)) {}

  using Wrapped = S;
  static constexpr bool takes_prefix = sluice::takes_prefix<S>();

  struct Followed {
    std::vector<Token> tokens;             // prompt and output
    std::vector<typename R::State> after;  // [n]: the rule's state after n tokens of the output
  };
  struct State {
    typename S::State inner{};
    std::vector<Followed> slots;
    std::vector<std::vector<Edit>> edits;  // [line]
    Vocabulary const* vocabulary = nullptr;
    std::size_t prompt = 0, prefix = 0;
  };

  void check() const { sluice::check(search), detail::check_rule(rule); }
  std::int32_t slots() const { return search.slots(); }
  void insert_into(TokenSet& set) const requires detail::InsertingSearch<S> { search.insert_into(set); }

  void begin(State& s, Sentence const& sentence) const {
    search.begin(s.inner, sentence);
    s.vocabulary = sentence.vocabulary, s.prompt = sentence.prompt.size();
    s.prefix = sentence.prefix.size();
    s.slots.resize(static_cast<std::size_t>(slots()));
    // What the first slot holds when the search plans for the first time: all but the last of prompt and prefix.
    auto& first = s.slots[0];
    first.tokens.assign(sentence.prompt.begin(), sentence.prompt.end());
    first.after.assign(1, rule.initial(sentence));
    if (!takes_prefix)
      for (auto const token : sentence.prefix)
        first.tokens.push_back(token), first.after.push_back(rule.next(first.after.back(), token));
    cut(s, first, sentence.held);
  }

  void plan(State& s, Plan& plan) const {
    search.plan(s.inner, plan);
    auto const rows = plan.rows();
    auto const slot = [&](Slot number) -> Followed& { return s.slots[static_cast<std::size_t>(number - plan.base())]; };
    for (auto const& row : rows)
      if (row.from != row.to) cut(s, slot(row.to) = slot(row.from), row.length);
    auto queries = plan.queries();
    if (s.edits.size() < queries.size()) s.edits.resize(queries.size());
    std::size_t line = 0;
    for (auto const& row : rows) {
      auto& followed = slot(row.to);
      cut(s, followed, row.length);
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        followed.tokens.push_back(row.tokens[i]);
        if (followed.tokens.size() > s.prompt)
          followed.after.push_back(rule.next(followed.after.back(), row.tokens[i]));
        if (i + static_cast<std::size_t>(row.lines) >= row.tokens.size())
          edit(s, followed, queries[line], s.edits[line]), ++line;
      }
    }
  }

  bool advance(State& s, Expansion const& answer) const { return search.advance(s.inner, answer); }
  Progress progress(State const& s) const { return search.progress(s.inner); }
  void settled(State& s, std::vector<Token>& tokens) const requires SettlingSearch<S> {
    search.settled(s.inner, tokens);
  }
  void finish(State& s, Result& result) const { search.finish(s.inner, result); }
  bool draft(State& s, Draft& draft) const requires DraftingSearch<S> { return search.draft(s.inner, draft); }

 private:
  void cut(State const& s, Followed& followed, std::int32_t length) const {
    auto const n = static_cast<std::size_t>(length);
    followed.tokens.erase(followed.tokens.begin() + length, followed.tokens.end());
    auto const outputs = n > s.prompt ? n - s.prompt : 0;
    followed.after.erase(followed.after.begin() + static_cast<std::ptrdiff_t>(outputs) + 1, followed.after.end());
  }

  void edit(State const& s, Followed const& followed, Query& query, std::vector<Edit>& edits) const {
    if (query.best == 0 && query.mass <= 0 && query.within <= 0 && query.typical <= 0) return;
    edits.clear();
    auto const tokens = std::span(followed.tokens);
    rule.edit(followed.after.back(), {tokens.subspan(std::min(s.prompt, tokens.size())), s.prefix, *s.vocabulary},
              edits);
    if (edits.empty()) return;
    for (auto const& e : edits)
      require(s.vocabulary->contains(e.token), "a rule's edit", e.token, "is outside the vocabulary");
    std::erase_if(edits, [&](Edit const& e) {
      return std::find(query.probes.begin(), query.probes.end(), e.token) != query.probes.end();
    });
    edits.insert(edits.end(), query.edits.begin(), query.edits.end());
    query.edits = edits;
  }
};

}  // namespace sluice::inline v0
