// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules (logits processors), and how to combine several.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

SLUICE_NAMES(stop)
SLUICE_NAMES(may_follow)
SLUICE_NAMES(bias)

namespace sluice::inline v0 {

/// What a rule sees of a hypothesis: its output so far.
struct Output {
  std::span<Token const> tokens;  ///< forced prefix and generated tokens
  std::size_t prefix;             ///< number of forced tokens among them
  Vocabulary const& vocabulary;
};

/// Where in its output a hypothesis is, for rules that add to scores.
struct BiasPlace {
  Vocabulary const& vocabulary;
  std::int32_t left;  ///< how many tokens may still come, the end included; Limits::unlimited: unknown
  bool first;         ///< nothing has been generated
  bool last;          ///< the output is over after the next token, whatever it is
  bool over;          ///< the output is over, and the search is about to be told
  bool
      falling;  ///< the search proves its result by log-probabilities that only fall: only those of the first token may rise
  bool shares = false;  ///< BiasSum::shared may be used
};

/// What a rule adds to a line beside its edits.
struct BiasSum {
  float all = 0;  ///< is added to the log-probability of every token; not before a softmax, which it would not change
  SortedEdits sorted{};  ///< of the edits appended; only if none were there before
  /// Beside the edits appended, which are then of other tokens or in place of what it adds; only if BiasPlace::shares. It must live until
  /// the step is over.
  SharedEdits const* shared = nullptr;
};

// clang-format off
/// A rule is a logits processor: it looks at one hypothesis and edits the scores of its next token. `State` is a small
/// value that follows the hypothesis (an automaton's state; an empty struct if the tokens are enough).
///
///  - `initial(sentence)`: the state before the first output token; throws std::invalid_argument for options that are
///    invalid for this vocabulary;
///  - `next(state, token)`: the state after `token`;
///  - `edit(state, output, edits)`: appends edits for the next token. They apply at the same stage as the search's own
///    (Query::stage). Keep them few: every edit of a line costs a look at each candidate, and many edits cost a copy of
///    the line;
///  - `check()`, optional (the compiler rejects another signature, here and for the next ones): throws
///    std::invalid_argument for invalid options, naming the option and its value;
///  - `stop(state, output)`, optional: the index of the stop that ends the output here, for Hypothesis::stop, or -1.
///    See StopSequences;
///  - `may_follow(state, left)`, optional: the set of tokens allowed next, a std::shared_ptr<TokenSet const>; null:
///    all. `left`: how many tokens may still come, the end included. Acts like Query::only, on probes too. It requires
///    `require_possible(state, output, left)`, which throws std::invalid_argument if no output can begin with a forced
///    prefix. See Structure;
///  - `bias(state, place, edits)`, optional: appends edits like `edit`, which act on probes too, and returns a BiasSum.
///    It requires `trivial()`, which returns whether it never adds anything. See Bias.
template <class R>
concept Rule = std::copyable<typename R::State> &&
  requires(R const& rule, typename R::State const& state, Sentence const& sentence, Output const& output, Token token,
           std::vector<Edit>& edits) {
    { rule.initial(sentence) } -> std::same_as<typename R::State>;
    { rule.next(state, token) } -> std::same_as<typename R::State>;
    rule.edit(state, output, edits);
  };

/// A rule that ends outputs.
template <class R>
concept StoppingRule = Rule<R> &&
  requires(R const& rule, typename R::State const& state, Output const& output) {
    { rule.stop(state, output) } -> std::same_as<std::int32_t>;
  };
/// A rule that restricts the next token to a set.
template <class R>
concept RestrictingRule = Rule<R> &&
  requires(R const& rule, typename R::State const& state, Output const& output, std::int32_t left) {
    { rule.may_follow(state, left) } -> std::same_as<std::shared_ptr<TokenSet const>>;
    rule.require_possible(state, output, left);
  };
/// A rule that adds to the score of an output.
template <class R>
concept BiasingRule = Rule<R> &&
  requires(R const& rule, typename R::State const& state, BiasPlace const& place, std::vector<Edit>& edits) {
    { rule.bias(state, place, edits) } -> std::same_as<BiasSum>;
    { rule.trivial() } -> std::same_as<bool>;
  };
// clang-format on

namespace detail {

/// Whether a rule may add to scores by edits, so that an output's log-probability may rise: it says so by raising().
template <Rule R>
consteval bool raises() {
  return requires(R const& rule) { rule.raising(); };
}

/// Calls a rule's check(), if it has one.
template <Rule R>
void check_rule(R const& rule) {
  static_assert(StoppingRule<R> || !stray_stop<R>(),
                "sluice: `stop` of a rule must be const, take (State const&, Output const&) and return a std::int32_t");
  static_assert(RestrictingRule<R> || !stray_may_follow<R>(),
                "sluice: `may_follow` of a rule must be const, take (State const&, std::int32_t) and return a "
                "std::shared_ptr<TokenSet const>; with it comes require_possible(State const&, Output const&, "
                "std::int32_t)");
  static_assert(BiasingRule<R> || !stray_bias<R>(),
                "sluice: `bias` of a rule must be const, take (State const&, BiasPlace const&, std::vector<Edit>&) and "
                "return a BiasSum; with it comes a const `bool trivial()`");
  if constexpr (requires { rule.check(); }) rule.check();
  else static_assert(!stray_check<R>(), "sluice: check() of a rule must be const and take nothing");
}

}  // namespace detail

/// Several rules as one. If several end an output, the first one's stop is reported.
template <Rule... Rs>
struct Rules {
  using State = std::tuple<typename Rs::State...>;
  using Wrapped = std::tuple<Rs...>;
  std::tuple<Rs...> rules;

  Rules() = default;
  explicit Rules(Rs... all) requires(sizeof...(Rs) > 0) : rules(std::move(all)...) {}

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
  BiasSum bias(State const& state, BiasPlace const& place, std::vector<Edit>& edits) const
      requires(BiasingRule<Rs> || ...) {
    constexpr auto biasing = (int{BiasingRule<Rs>} + ...);
    BiasSum sum;
    auto const ask = [&](auto const& rule, auto const& its_state) {
      if constexpr (BiasingRule<std::remove_cvref_t<decltype(rule)>>) {
        auto const first = edits.empty();
        auto its_place = place;
        its_place.shares = place.shares && biasing == 1;  // edits of two rules are added up
        auto const its = rule.bias(its_state, its_place, edits);
        sum.all += its.all;
        if (first) sum.sorted = its.sorted;
        if (its.shared != nullptr) sum.shared = its.shared;
      }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (ask(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
    return sum;
  }
  bool trivial() const requires(BiasingRule<Rs> || ...) {
    auto const adds = [](auto const& rule) {
      if constexpr (BiasingRule<std::remove_cvref_t<decltype(rule)>>) return !rule.trivial();
      else return false;
    };
    return std::apply([&](auto const&... rule) { return !(adds(rule) || ...); }, rules);
  }
  /// Whether one of them adds to scores.
  bool raising() const requires(detail::raises<Rs>() || ...) {
    auto const adds = [](auto const& rule) {
      if constexpr (detail::raises<std::remove_cvref_t<decltype(rule)>>()) return rule.raising();
      else return false;
    };
    return std::apply([&](auto const&... rule) { return (adds(rule) || ...); }, rules);
  }
  std::int32_t stop(State const& state, Output const& output) const requires(StoppingRule<Rs> || ...) {
    std::int32_t found = -1;
    auto const ask = [&](auto const& rule, auto const& its_state) {
      if constexpr (StoppingRule<std::remove_cvref_t<decltype(rule)>>)
        if (found < 0) found = rule.stop(its_state, output);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (ask(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
    return found;
  }
  /// The tokens that all of them allow.
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const
      requires(RestrictingRule<Rs> || ...) {
    std::shared_ptr<TokenSet const> set;
    for_each_restricting(state, [&](auto const& rule, auto const& its_state) {
      auto one = rule.may_follow(its_state, left);
      if (one == nullptr) return;
      if (set != nullptr) {
        auto both = std::make_shared<TokenSet>(*set);
        both->keep(*one);
        one = std::move(both);
      }
      set = std::move(one);
    });
    return set;
  }
  void require_possible(State const& state, Output const& output, std::int32_t left) const
      requires(RestrictingRule<Rs> || ...) {
    for_each_restricting(
        state, [&](auto const& rule, auto const& its_state) { rule.require_possible(its_state, output, left); });
  }

 private:
  template <class Take>
  void for_each_restricting(State const& state, Take const& take) const {
    auto const one = [&](auto const& rule, auto const& its_state) {
      if constexpr (RestrictingRule<std::remove_cvref_t<decltype(rule)>>) take(rule, its_state);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (one(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
  }
};

}  // namespace sluice::inline v0
