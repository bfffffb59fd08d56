// SPDX-License-Identifier: Apache-2.0
/// \file
/// Constraints on an output, as an automaton over its tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

SLUICE_NAMES(begun)
SLUICE_NAMES(remaining)
SLUICE_NAMES(trivial)
SLUICE_NAMES(met)
SLUICE_NAMES(count)
SLUICE_NAMES(text)
SLUICE_NAMES(forbidden)
SLUICE_NAMES(allowed)

namespace sluice::inline v0 {

// clang-format off
/// Follows one output token by token and reports how much of a constraint is met. `State` is a small value, copied
/// along with its hypothesis. Phrases, OrderedPhrases, AnyOf, Forbidden and Constraints are such automata; users can
/// write their own (a grammar, a regular expression).
///
///  - `initial(sentence)`: the state before the first token of the output (bos has been read, if it matters); throws
///    std::invalid_argument for a constraint that is invalid for this sentence, which then ends with
///    Failure::bad_request;
///  - `next(state, token)`: the state after `token`, which is forced or generated, eos included;
///  - `progress(state)`: how much is met, from 0 to `total()`. Hypotheses with equal progress share a bank of the beam;
///  - `wanted(state, tokens)`: appends the tokens that raise progress, once each;
///  - `complete(state)`: everything is met. Only such hypotheses may end;
///  - `dead(state)`: it can never be complete.
///
/// Optional (the compiler rejects members with these names and other signatures):
///  - `begun(state)`: how much of the progress belongs to an unfinished phrase that may be abandoned; otherwise 0. In a
///    Product only the longest such prefix of all counts, so that one token may serve several;
///  - `forbidden(state, tokens)`: appends the tokens that lead to a dead state, where they are few; `allowed(state)`: a
///    TokenSet const* of those that do not, where they are few (nullptr: all). With neither, tokens are tried and
///    dropped, and a hypothesis dies if all listed tokens are dropped;
///  - `met(state)` of `count()`: the number of constraints met, for Hypothesis::constraints_met; otherwise progress of
///    total;
///  - `remaining(state)`: a lower bound on the tokens needed for the rest; otherwise 0. A request with room for fewer
///    is refused;
///  - `text()`: the constraints in words, for that message;
///  - `trivial()`: whether there is no constraint at all; the search is then the plain one;
///  - `insert_into(set)`: adds to a TokenSet the tokens without which the constraints cannot be met; they are added to
///    a request's shortlist.
template <class A>
concept ConstraintAutomaton = std::copyable<typename A::State> &&
  requires(A const& a, typename A::State const& state, Sentence const& sentence, Token token,
           std::vector<Token>& tokens) {
    { a.initial(sentence) } -> std::same_as<typename A::State>;
    { a.next(state, token) } -> std::same_as<typename A::State>;
    { a.progress(state) } -> std::convertible_to<std::int32_t>;
    { a.total() } -> std::convertible_to<std::int32_t>;
    a.wanted(state, tokens);
    { a.complete(state) } -> std::convertible_to<bool>;
    { a.dead(state) } -> std::convertible_to<bool>;
  };
// clang-format on

namespace detail {

// clang-format off
template <class A>
concept NamesBegun = requires(A const& a, typename A::State const& state) {
  { a.begun(state) } -> std::convertible_to<std::int32_t>;
};
template <class A>
concept NamesForbidden = requires(A const& a, typename A::State const& state, std::vector<Token>& tokens) {
  a.forbidden(state, tokens);
};
template <class A>
concept NamesAllowed = requires(A const& a, typename A::State const& state) {
  { a.allowed(state) } -> std::convertible_to<TokenSet const*>;
};
template <class A>
concept NamesMet = requires(A const& a, typename A::State const& state) {
  { a.met(state) } -> std::convertible_to<std::int32_t>;
};
template <class A>
concept NamesCount = requires(A const& a) { { a.count() } -> std::convertible_to<std::int32_t>; };
template <class A>
concept NamesRemaining = requires(A const& a, typename A::State const& state) {
  { a.remaining(state) } -> std::convertible_to<std::int32_t>;
};
template <class A>
concept NamesText = requires(A const& a) { { a.text() } -> std::convertible_to<std::string>; };
template <class A>
concept NamesTrivial = requires(A const& a) { { a.trivial() } -> std::convertible_to<bool>; };
// clang-format on

/// Rejects members with the name of an optional one but another signature: they would never be called.
template <ConstraintAutomaton A>
consteval bool automaton_names() {
  static_assert(NamesBegun<A> || !stray_begun<A>(),
                "sluice: an automaton's `begun` must be const, take a State const& and return an int32_t");
  static_assert(NamesForbidden<A> || !stray_forbidden<A>(),
                "sluice: an automaton's `forbidden` must be const and take (State const&, std::vector<Token>&)");
  static_assert(NamesAllowed<A> || !stray_allowed<A>(),
                "sluice: an automaton's `allowed` must be const, take a State const& and return a TokenSet const*");
  static_assert(NamesMet<A> || !stray_met<A>(),
                "sluice: an automaton's `met` must be const, take a State const& and return an int32_t");
  static_assert(NamesCount<A> || !stray_count<A>(),
                "sluice: an automaton's `count` must be const, take nothing and return an int32_t");
  static_assert(NamesRemaining<A> || !stray_remaining<A>(),
                "sluice: an automaton's `remaining` must be const, take a State const& and return an int32_t");
  static_assert(NamesText<A> || !stray_text<A>(),
                "sluice: an automaton's `text` must be const, take nothing and return a std::string");
  static_assert(NamesTrivial<A> || !stray_trivial<A>(),
                "sluice: an automaton's `trivial` must be const, take nothing and return a bool");
  static_assert(InsertingSearch<A> || !stray_insert_into<A>(),
                "sluice: an automaton's `insert_into` must be const and take a TokenSet&");
  return true;
}

template <class A>
bool trivial(A const& a) {
  if constexpr (NamesTrivial<A>) return a.trivial();
  else return false;
}
template <class A>
std::int32_t constraints_met(A const& a, typename A::State const& state) {
  if constexpr (NamesMet<A>) return a.met(state);
  else return a.progress(state);
}
template <class A>
std::int32_t constraints_total(A const& a) {
  if constexpr (NamesCount<A>) return a.count();
  else return a.total();
}
template <class A>
std::int32_t constraints_remaining(A const& a, typename A::State const& state) {
  if constexpr (NamesRemaining<A>) return a.remaining(state);
  else return 0;
}
template <class A>
std::int32_t constraints_begun(A const& a, typename A::State const& state) {
  if constexpr (NamesBegun<A>) return a.begun(state);
  else return 0;
}
template <class A>
std::string constraints_text(A const& a) {
  if constexpr (NamesText<A>) return a.text();
  else return {};
}
template <class A>
void constraints_insert_into(A const& a, TokenSet& set) {
  if constexpr (InsertingSearch<A>) a.insert_into(set);
}

}  // namespace detail

}  // namespace sluice::inline v0
