// SPDX-License-Identifier: Apache-2.0
/// \file
/// Several logits processors as one, for the searches over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Several logits processors as one, for the member `rule` of CtcBeamSearch and TransducerBeam, which ask it once for each new text: their
/// states are part of every text, so their types are part of the search. All other searches take a list, Request::processors. If several
/// end an output, the first one's stop is reported.
template <LogitsProcessor... Rs>
struct Rules {
  using State = std::tuple<typename Rs::State...>;
  using Wrapped = std::tuple<Rs...>;  ///< some members are conditional, see core/detail/named.hpp
  std::tuple<Rs...> rules;

  Rules() = default;
  explicit Rules(Rs... all) requires(sizeof...(Rs) > 0) : rules(std::move(all)...) {}

  void check() const {
    std::apply([](auto const&... rule) { (detail::check_processor(rule), ...); }, rules);
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
      requires(detail::BiasingProcessor<Rs> || ...) {
    constexpr auto biasing = (int{detail::BiasingProcessor<Rs>} + ...);
    BiasSum sum;
    auto const ask = [&](auto const& rule, auto const& its_state) {
      if constexpr (detail::BiasingProcessor<std::remove_cvref_t<decltype(rule)>>) {
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
  bool trivial() const requires(detail::BiasingProcessor<Rs> || ...) {
    auto const adds = [](auto const& rule) {
      if constexpr (detail::BiasingProcessor<std::remove_cvref_t<decltype(rule)>>) return !rule.trivial();
      else return false;
    };
    return std::apply([&](auto const&... rule) { return !(adds(rule) || ...); }, rules);
  }
  /// Whether one of them adds to scores.
  bool raising() const requires(detail::RaisingProcessor<Rs> || ...) {
    auto const adds = [](auto const& rule) {
      if constexpr (detail::RaisingProcessor<std::remove_cvref_t<decltype(rule)>>) return rule.raising();
      else return false;
    };
    return std::apply([&](auto const&... rule) { return (adds(rule) || ...); }, rules);
  }
  std::int32_t stop(State const& state, Output const& output) const requires(detail::EndingProcessor<Rs> || ...) {
    std::int32_t found = -1;
    auto const ask = [&](auto const& rule, auto const& its_state) {
      if constexpr (detail::EndingProcessor<std::remove_cvref_t<decltype(rule)>>)
        if (found < 0) found = rule.stop(its_state, output);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (ask(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
    return found;
  }
  /// The tokens that all of them allow.
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const
      requires(detail::RestrictingProcessor<Rs> || ...) {
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
      requires(detail::RestrictingProcessor<Rs> || ...) {
    for_each_restricting(
        state, [&](auto const& rule, auto const& its_state) { rule.require_possible(its_state, output, left); });
  }

 private:
  template <class Take>
  void for_each_restricting(State const& state, Take const& take) const {
    auto const one = [&](auto const& rule, auto const& its_state) {
      if constexpr (detail::RestrictingProcessor<std::remove_cvref_t<decltype(rule)>>) take(rule, its_state);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (one(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
  }
};

}  // namespace sluice::inline v0
