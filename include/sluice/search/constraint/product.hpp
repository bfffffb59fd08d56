// SPDX-License-Identifier: Apache-2.0
/// \file
/// Combines several automata.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/constraint/automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// Adds the tokens that are in one set and not in the other.
template <class = void>
void insert_difference(TokenSet const& in, TokenSet const& not_in, std::vector<Token>& tokens) {
  auto token = Token{0};
  for (auto const word : in.words())
    for (auto bit = 0; bit < 64; ++bit, ++token)
      if ((word >> bit & 1) != 0 && !not_in.contains(token)) tokens.push_back(token);
}

}  // namespace detail

/// The conjunction of several automata. Its progress is the sum of what each has met for good, plus the longest
/// unfinished prefix of any one of them: the same tokens may begin phrases of several, of which only one will be
/// completed.
template <ConstraintAutomaton... As>
class Product {
  static_assert((detail::automaton_names<As>() && ...));

 public:
  using Wrapped = std::tuple<As...>;
  using State = std::tuple<typename As::State...>;

  Product() = default;
  explicit Product(As... all) : all_(std::move(all)...) {}

  State initial(Sentence const& sentence) const {
    return std::apply([&](auto const&... a) { return State(a.initial(sentence)...); }, all_);
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
    return every([&]<std::size_t I> { return std::get<I>(all_).complete(std::get<I>(state)); });
  }
  bool dead(State const& state) const {
    return !every([&]<std::size_t I> { return !std::get<I>(all_).dead(std::get<I>(state)); });
  }
  /// The wanted tokens of all parts that raise the sum and lead none to a dead state.
  void wanted(State const& state, std::vector<Token>& tokens) const {
    auto const first = tokens.size();
    visit([&]<std::size_t I> { std::get<I>(all_).wanted(std::get<I>(state), tokens); });
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
  /// The set of the first part that has one; tokens of it that other parts do not allow are forbidden.
  TokenSet const* allowed(State const& state) const requires(detail::NamesAllowed<As> || ...) {
    TokenSet const* first = nullptr;
    visit([&]<std::size_t I> {
      if (first == nullptr) first = allowed_by<I>(state);
    });
    return first;
  }
  void forbidden(State const& state, std::vector<Token>& tokens) const
      requires((detail::NamesForbidden<As> || ...) || (detail::NamesAllowed<As> || ...)) {
    TokenSet const* first = nullptr;
    visit([&]<std::size_t I> {
      if constexpr (detail::NamesForbidden<Part<I>>) std::get<I>(all_).forbidden(std::get<I>(state), tokens);
      if (auto const* const set = allowed_by<I>(state); set != nullptr) {
        if (first == nullptr) first = set;
        else detail::insert_difference(*first, *set, tokens);
      }
    });
  }
  std::int32_t met(State const& state) const {
    return sum([&]<std::size_t I> { return detail::constraints_met(std::get<I>(all_), std::get<I>(state)); });
  }
  std::int32_t count() const {
    return sum([&]<std::size_t I> { return detail::constraints_total(std::get<I>(all_)); });
  }
  bool trivial() const {
    return every([&]<std::size_t I> { return detail::trivial(std::get<I>(all_)); });
  }
  std::int32_t remaining(State const& state) const {
    return most([&]<std::size_t I> { return detail::constraints_remaining(std::get<I>(all_), std::get<I>(state)); });
  }
  std::string text() const {
    std::string all;
    visit([&]<std::size_t I> {
      auto const part = detail::constraints_text(std::get<I>(all_));
      all += (all.empty() || part.empty() ? "" : ", ") + part;
    });
    return all;
  }
  void insert_into(TokenSet& set) const {
    visit([&]<std::size_t I> { detail::constraints_insert_into(std::get<I>(all_), set); });
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
  static void visit(F&& f) {
    each([&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I>(), ...); });
  }
  template <class F>
  static bool every(F&& f) {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      return (static_cast<bool>(f.template operator()<I>()) && ...);
    });
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
      return (std::max)({std::int32_t{0}, static_cast<std::int32_t>(f.template operator()<I>())...});
    }
    (std::index_sequence_for<As...>{});
  }

  std::tuple<As...> all_;
};

}  // namespace sluice::inline v0
