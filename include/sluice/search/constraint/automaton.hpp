// SPDX-License-Identifier: Apache-2.0
/// \file
/// What an output must contain, as an automaton over its tokens.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

// clang-format off
/// Follows one output token by token and says how much of a demand it has met. `State` is a small value: it is copied with
/// the hypothesis that it belongs to. Phrases, OrderedPhrases, AnyOf, Forbidden and Constraints are such automata; your own
/// is as good (a grammar, a regular expression).
///
///  - `start(sentence)`: the state before the first token of the output (bos has been read, if it matters); throws
///    std::invalid_argument for a demand that makes no sense here: that sentence ends with Failure::bad_request;
///  - `next(state, token)`: the state after `token`: one of the forced prefix or a generated one, eos included;
///  - `progress(state)`: how much of it is met, from 0 to `total()`. Hypotheses of equal progress share a bank of the beam;
///  - `wanted(state, tokens)`: appends, once each, tokens that raise progress;
///  - `complete(state)`: all is met. Only such hypotheses may end;
///  - `dead(state)`: it can never be complete.
///
/// Optional:
///  - `begun(state)`: how much of progress lies in a phrase that is still open and may be given up; otherwise 0. In a Product
///    only the longest such beginning of all counts, so that one token may serve several;
///  - `forbidden(state, tokens)`: appends the tokens that lead to a dead state, where they are few; `allowed(state)`: a
///    TokenSet const* of those that do not, where they are few (nullptr: all). With neither, tokens are tried and dropped,
///    and a hypothesis ends where all that were listed are;
///  - `met(state)` of `count()`: the demands met, for Hypothesis::constraints_met; otherwise progress of total;
///  - `remaining(state)`: a number of tokens without which the rest cannot be met; otherwise 0. A request that leaves fewer is
///    refused;
///  - `text()`: the demands in words, for that message;
///  - `trivial()`: whether it demands nothing at all; the search is then the plain one;
///  - `insert_into(set)`: adds to a TokenSet the tokens without which it cannot be met; a request's shortlist gets them.
template <class A>
concept ConstraintAutomaton = std::copyable<typename A::State> &&
  requires(A const& a, typename A::State const& state, Sentence const& sentence, Token token,
           std::vector<Token>& tokens) {
    { a.start(sentence) } -> std::same_as<typename A::State>;
    { a.next(state, token) } -> std::same_as<typename A::State>;
    { a.progress(state) } -> std::convertible_to<std::int32_t>;
    { a.total() } -> std::convertible_to<std::int32_t>;
    a.wanted(state, tokens);
    { a.complete(state) } -> std::convertible_to<bool>;
    { a.dead(state) } -> std::convertible_to<bool>;
  };
// clang-format on

namespace detail {

template <class A>
concept NamesForbidden = requires(A const& a, typename A::State const& state, std::vector<Token>& tokens) {
  a.forbidden(state, tokens);
};
template <class A>
concept NamesAllowed = requires(A const& a, typename A::State const& state) {
  { a.allowed(state) } -> std::convertible_to<TokenSet const*>;
};

template <class A>
bool trivial(A const& a) {
  if constexpr (requires { a.trivial(); }) return a.trivial();
  else return false;
}
template <class A>
std::int32_t constraints_met(A const& a, typename A::State const& state) {
  if constexpr (requires { a.met(state); }) return a.met(state);
  else return a.progress(state);
}
template <class A>
std::int32_t constraints_total(A const& a) {
  if constexpr (requires { a.count(); }) return a.count();
  else return a.total();
}
template <class A>
std::int32_t constraints_remaining(A const& a, typename A::State const& state) {
  if constexpr (requires { a.remaining(state); }) return a.remaining(state);
  else return 0;
}
template <class A>
std::int32_t constraints_begun(A const& a, typename A::State const& state) {
  if constexpr (requires { a.begun(state); }) return a.begun(state);
  else return 0;
}
template <class A>
std::string constraints_text(A const& a) {
  if constexpr (requires { a.text(); }) return a.text();
  else return {};
}
/// Those that are in one set and not in the other.
inline void insert_difference(TokenSet const& in, TokenSet const& not_in, std::vector<Token>& tokens) {
  auto token = Token{0};
  for (auto const word : in.words())
    for (auto bit = 0; bit < 64; ++bit, ++token)
      if ((word >> bit & 1) != 0 && !not_in.contains(token)) tokens.push_back(token);
}

}  // namespace detail

/// Several automata at once: what all of them demand. Its progress is the sum of what each has met for good, and the longest
/// beginning that any has open: the same tokens may begin phrases of several, of which only one will come.
template <ConstraintAutomaton... As>
class Product {
 public:
  using State = std::tuple<typename As::State...>;

  Product() = default;
  explicit Product(As... all) : all_(std::move(all)...) {}

  State start(Sentence const& sentence) const {
    return std::apply([&](auto const&... a) { return State(a.start(sentence)...); }, all_);
  }
  State next(State const& state, Token token) const {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      return State(std::get<I>(all_).next(std::get<I>(state), token)...);
    });
  }
  std::int32_t progress(State const& state) const {
    return begun(state) + sum([&]<std::size_t I> {
             auto const& part = std::get<I>(state);
             return std::get<I>(all_).progress(part) - detail::constraints_begun(std::get<I>(all_), part);
           });
  }
  std::int32_t begun(State const& state) const {
    return most([&]<std::size_t I> { return detail::constraints_begun(std::get<I>(all_), std::get<I>(state)); });
  }
  std::int32_t total() const {
    return sum([&]<std::size_t I> { return std::get<I>(all_).total(); });
  }
  bool complete(State const& state) const {
    return sum([&]<std::size_t I> { return std::get<I>(all_).complete(std::get<I>(state)) ? 0 : 1; }) == 0;
  }
  bool dead(State const& state) const {
    return sum([&]<std::size_t I> { return std::get<I>(all_).dead(std::get<I>(state)) ? 1 : 0; }) != 0;
  }
  /// Those of each that raise the sum and kill none.
  void wanted(State const& state, std::vector<Token>& tokens) const {
    auto const first = tokens.size();
    sum([&]<std::size_t I> { return std::get<I>(all_).wanted(std::get<I>(state), tokens), 0; });
    auto kept = first;
    auto const begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    for (auto i = first; i < tokens.size(); ++i) {
      auto const token = tokens[i];
      auto const known = tokens.begin() + static_cast<std::ptrdiff_t>(kept);
      if (std::find(begin, known, token) != known) continue;
      if (auto const after = next(state, token); progress(after) > progress(state) && !dead(after))
        tokens[kept++] = token;
    }
    tokens.resize(kept);
  }
  /// Of the first that names any; what others do not allow of those is forbidden.
  TokenSet const* allowed(State const& state) const requires(detail::NamesAllowed<As> || ...) {
    TokenSet const* first = nullptr;
    sum([&]<std::size_t I> {
      if (first == nullptr) first = allowed_by<I>(state);
      return 0;
    });
    return first;
  }
  void forbidden(State const& state, std::vector<Token>& tokens) const
      requires((detail::NamesForbidden<As> || ...) || (detail::NamesAllowed<As> || ...)) {
    TokenSet const* first = nullptr;
    sum([&]<std::size_t I> {
      if constexpr (detail::NamesForbidden<Part<I>>) std::get<I>(all_).forbidden(std::get<I>(state), tokens);
      if (auto const* const set = allowed_by<I>(state); set != nullptr) {
        if (first == nullptr) first = set;
        else detail::insert_difference(*first, *set, tokens);
      }
      return 0;
    });
  }
  std::int32_t met(State const& state) const {
    return sum([&]<std::size_t I> { return detail::constraints_met(std::get<I>(all_), std::get<I>(state)); });
  }
  std::int32_t count() const {
    return sum([&]<std::size_t I> { return detail::constraints_total(std::get<I>(all_)); });
  }
  bool trivial() const {
    return sum([&]<std::size_t I> { return detail::trivial(std::get<I>(all_)) ? 0 : 1; }) == 0;
  }
  std::int32_t remaining(State const& state) const {
    return most([&]<std::size_t I> { return detail::constraints_remaining(std::get<I>(all_), std::get<I>(state)); });
  }
  std::string text() const {
    std::string all;
    sum([&]<std::size_t I> {
      auto const part = detail::constraints_text(std::get<I>(all_));
      all += (all.empty() || part.empty() ? "" : ", ") + part;
      return 0;
    });
    return all;
  }
  void insert_into(TokenSet& set) const {
    sum([&]<std::size_t I> {
      if constexpr (requires { std::get<I>(all_).insert_into(set); }) std::get<I>(all_).insert_into(set);
      return 0;
    });
  }

 private:
  template <std::size_t I>
  using Part = std::tuple_element_t<I, std::tuple<As...>>;

  template <std::size_t I>
  TokenSet const* allowed_by(State const& state) const {
    if constexpr (detail::NamesAllowed<Part<I>>) return std::get<I>(all_).allowed(std::get<I>(state));
    else return nullptr;
  }
  template <class F>
  static auto each(F&& f) {
    return f(std::index_sequence_for<As...>{});
  }
  template <class F>
  static std::int32_t sum(F&& f) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::int32_t{0} + ... + static_cast<std::int32_t>(f.template operator()<I>()));
    }
    (std::index_sequence_for<As...>{});
  }
  template <class F>
  static std::int32_t most(F&& f) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::max({std::int32_t{0}, static_cast<std::int32_t>(f.template operator()<I>())...});
    }
    (std::index_sequence_for<As...>{});
  }

  std::tuple<As...> all_;
};

}  // namespace sluice::inline v0
