// SPDX-License-Identifier: Apache-2.0
/// \file
/// Constraints as potentials: the outputs that meet them, as the model has them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/rule.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace sluice::inline v0 {

namespace detail {

// clang-format off
template <class A>
concept NamesDead = requires(A const& a, typename A::State const& state) { { a.dead(state) } -> std::convertible_to<bool>; };
template <class A>
concept NamesAlive = requires(A const& a, typename A::State const& state) { { a.alive(state) } -> std::convertible_to<bool>; };
/// Follows an output token by token, and knows which it accepts.
template <class A>
concept Acceptor = std::copyable<typename A::State> && (NamesDead<A> || NamesAlive<A>) &&
  requires(A const& a, typename A::State const& state, Sentence const& sentence, Token token) {
    { a.initial(sentence) } -> std::same_as<typename A::State>;
    { a.next(state, token) } -> std::same_as<typename A::State>;
    { a.complete(state) } -> std::convertible_to<bool>;
  };
template <class A>
concept NamesMayFollow = requires(A const& a, typename A::State const& state, std::int32_t left) {
  { a.may_follow(state, left) } -> std::same_as<std::shared_ptr<TokenSet const>>;
};
template <class A>
concept NamesAllowedSet = requires(A const& a, typename A::State const& state) {
  { a.allowed(state) } -> std::convertible_to<TokenSet const*>;
};
// clang-format on

}  // namespace detail

/// The potential that is 1 for the finished outputs that a ConstraintAutomaton or a Structure accepts, and 0 for all others, those cut at
/// the maximum length included: what is sampled is the model's distribution over accepted outputs.
template <detail::Acceptor A>
struct Indicator {
  A accepted{};

  using State = typename A::State;
  using Wrapped = A;
  /// A Structure's masks hold exactly the tokens that keep it possible.
  static constexpr bool exact = detail::NamesMayFollow<A>;

  State initial(Sentence const& sentence) const { return accepted.initial(sentence); }
  State next(State const& state, Token token) const { return accepted.next(state, token); }
  double log_prefix(State const& state) const { return possible(state) ? 0 : impossible; }
  double log_final(State const& state, bool finished) const {
    return finished && possible(state) && accepted.complete(state) ? 0 : impossible;
  }
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const
      requires(detail::NamesMayFollow<A> || detail::NamesAllowedSet<A>) {
    if constexpr (detail::NamesMayFollow<A>) return accepted.may_follow(state, left);
    else return {std::shared_ptr<void>(), accepted.allowed(state)};  // not owned
  }
  void require_possible(State const& state, Output const& output, std::int32_t left) const requires requires {
    accepted.require_possible(state, output, left);
  }
  { accepted.require_possible(state, output, left); }

 private:
  static constexpr auto impossible = -std::numeric_limits<double>::infinity();
  bool possible(State const& state) const {
    if constexpr (detail::NamesAlive<A>) return accepted.alive(state);
    else return !accepted.dead(state);
  }
};

}  // namespace sluice::inline v0
