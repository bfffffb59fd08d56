// SPDX-License-Identifier: Apache-2.0
/// \file
/// One type for all searches, so that requests beside each other may differ in it; and what a search may do wrong.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::test {

/// What goes wrong in a search, at its `round`-th plan or later.
struct Misdeed {
  enum class Kind : std::uint8_t {
    none,
    begin_throws,
    plan_throws,
    advance_throws,
    progress_throws,
    settled_throws,
    finish_throws,
    draft_throws,
    strange_slot,  // rows: what check_plan() refuses, one clause each
    descending,
    no_tokens,
    strange_token,
    negative_length,
    too_many_lines,
    too_few_questions,
    strange_release,
    too_long,
  };
  static constexpr std::int32_t kinds = 17;
  Kind kind = Kind::none;
  std::int32_t round = 0;
};

template <Search... S>
struct AnySearch {
  std::variant<S...> chosen{};
  Misdeed misdeed{};

  struct State {
    template <class T>
    struct Of {
      typename T::State state{};
    };
    std::tuple<Of<S>...> all{};
    std::int32_t rounds = 0;
    std::vector<Token> tokens{};  // of rows that are wrong
  };

  void check() const {
    std::visit([](auto const& search) { sluice::check(search); }, chosen);
  }
  Abilities needs() const {
    return std::visit([](auto const& search) { return sluice::needs(search); }, chosen);
  }
  std::int32_t slot_count() const {
    return std::visit([](auto const& search) { return static_cast<std::int32_t>(search.slot_count()); }, chosen);
  }
  void insert_into([[maybe_unused]] TokenSet& set) const {
    std::visit(
        [&](auto const& search) {
          if constexpr (requires { search.insert_into(set); }) search.insert_into(set);
        },
        chosen);
  }
  void begin(State& s, Sentence const& sentence) const {
    s.rounds = 0;
    go_wrong(s, Misdeed::Kind::begin_throws);
    with(s, [&](auto const& search, auto& state) { search.begin(state, sentence); });
  }
  void plan(State& s, Plan& plan) const {
    ++s.rounds;
    go_wrong(s, Misdeed::Kind::plan_throws);
    if (misdeed.kind >= Misdeed::Kind::strange_slot && s.rounds > misdeed.round) return wrong(s, plan);
    with(s, [&](auto const& search, auto& state) { search.plan(state, plan); });
  }
  bool advance(State& s, Expansion const& answer) const {
    go_wrong(s, Misdeed::Kind::advance_throws);
    return with(s, [&](auto const& search, auto& state) { return search.advance(state, answer); });
  }
  Progress progress(State const& s) const {
    go_wrong(s, Misdeed::Kind::progress_throws);
    return with(const_cast<State&>(s), [](auto const& search, auto const& state) { return search.progress(state); });
  }
  void finish(State const& s, Result& result) const {
    go_wrong(s, Misdeed::Kind::finish_throws);
    with(const_cast<State&>(s), [&](auto const& search, auto& state) { search.finish(state, result); });
  }
  bool draft(State& s, Draft& draft) const {
    go_wrong(s, Misdeed::Kind::draft_throws);
    return with(s, [&](auto const& search, auto& state) {
      if constexpr (requires { search.draft(state, draft); }) return search.draft(state, draft);
      else return false;
    });
  }
  void settled(State& s, std::vector<Token>& tokens) const {
    go_wrong(s, Misdeed::Kind::settled_throws);
    with(s, [&](auto const& search, auto& state) {
      if constexpr (requires { search.settled(state, tokens); }) search.settled(state, tokens);
    });
  }

 private:
  template <class F>
  decltype(auto) with(State& s, F&& f) const {
    return std::visit(
        [&]<class T>(T const& search) -> decltype(auto) {
          return f(search, std::get<typename State::template Of<T>>(s.all).state);
        },
        chosen);
  }
  void go_wrong(State const& s, Misdeed::Kind here) const {
    if (misdeed.kind == here && s.rounds >= misdeed.round) throw std::runtime_error("the search is broken");
  }

  void wrong(State& s, Plan& plan) const {
    using Kind = Misdeed::Kind;
    auto const kind = misdeed.kind;
    s.tokens.assign(1, kind == Kind::strange_token ? -5 : 3);
    auto const slot = kind == Kind::strange_slot ? slot_count() : 0;
    auto const length = kind == Kind::negative_length ? -1 : kind == Kind::too_long ? 1000 : 0;
    if (kind == Kind::no_tokens) s.tokens.clear();
    plan.row(slot, slot, length, s.tokens, kind == Kind::too_many_lines ? 2 : 1);
    if (kind != Kind::too_few_questions) plan.ask({});
    if (kind == Kind::too_many_lines) plan.ask({});
    if (kind == Kind::descending) plan.row(slot, slot, length, s.tokens), plan.ask({});
    if (kind == Kind::strange_release) plan.release(slot_count());
  }
};

}  // namespace sluice::test
