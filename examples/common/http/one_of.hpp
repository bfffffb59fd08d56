// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search that is one of several, chosen for each sentence, so that one decoder and one batch serve them all.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/length.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace serve {

/// None of them may handle the prefix itself (`takes_prefix`).
template <sluice::SettlingSearch... S>
  requires(!sluice::takes_prefix<S>() && ...)
struct OneOf {
  sluice::LengthLimits length{};  ///< those of the chosen search, for rules
  std::variant<S...> search{};

  OneOf() = default;
  template <class One>
    requires(std::is_same_v<One, S> || ...)
  explicit OneOf(One one) : length(length_of(one)), search(std::move(one)) {}

  using State = std::tuple<typename S::State...>;  // all of them: each is reused by the next sentence with that search

  sluice::Abilities needs() const {
    return std::visit([](auto const& one) { return sluice::needs(one); }, search);
  }
  void check() const {
    std::visit([](auto const& one) { sluice::check(one); }, search);
  }
  std::int32_t slot_count() const {
    return std::visit([](auto const& one) { return static_cast<std::int32_t>(one.slot_count()); }, search);
  }
  void begin(State& s, sluice::Sentence const& sentence) const {
    with(s, [&](auto const& one, auto& state) { one.begin(state, sentence); });
  }
  void plan(State& s, sluice::Plan& plan) const {
    with(s, [&](auto const& one, auto& state) { one.plan(state, plan); });
  }
  bool advance(State& s, sluice::Expansion const& answer) const {
    return with(s, [&](auto const& one, auto& state) { return one.advance(state, answer); });
  }
  sluice::Progress progress(State const& s) const {
    return with(s, [&](auto const& one, auto const& state) { return one.progress(state); });
  }
  bool draft(State& s, sluice::Draft& draft) const {
    return with(s, [&]<class One>(One const& one, auto& state) {
      if constexpr (sluice::DraftingSearch<One>) return one.draft(state, draft);
      else return false;
    });
  }
  void settled(State& s, std::vector<sluice::Token>& tokens) const {
    with(s, [&](auto const& one, auto& state) { one.settled(state, tokens); });
  }
  void finish(State& s, sluice::Result& result) const {
    with(s, [&](auto const& one, auto& state) { one.finish(state, result); });
  }

 private:
  template <class One>
  static sluice::LengthLimits length_of(One const& one) {
    if constexpr (requires { one.beam.length; }) return one.beam.length;
    else return one.length;
  }
  template <class States, class F>
  decltype(auto) with(States& states, F const& f) const {
    return dispatch(states, f, std::index_sequence_for<S...>{});
  }
  template <class States, class F, std::size_t First, std::size_t... Rest>
  decltype(auto) dispatch(States& states, F const& f, std::index_sequence<First, Rest...>) const {
    if constexpr (sizeof...(Rest) > 0)
      if (search.index() != First) return dispatch(states, f, std::index_sequence<Rest...>{});
    return f(*std::get_if<First>(&search), std::get<First>(states));
  }
};

}  // namespace serve
