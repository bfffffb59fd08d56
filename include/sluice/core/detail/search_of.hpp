// SPDX-License-Identifier: Apache-2.0
/// \file
/// AnySearch of a type of search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/search_facts.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

template <Search S>
struct SearchOf final : AnySearch {
  explicit SearchOf(S const& one) : usual(one) {}
  void take(void const* own) override { search = own != nullptr ? static_cast<S const*>(own) : &usual; }
  SearchFacts facts(Sentence const& sentence) const override { return facts_of(*search, sentence); }
  std::int32_t slot_count() const override { return static_cast<std::int32_t>(search->slot_count()); }
  void begin(Sentence const& sentence) override { search->begin(state, sentence); }
  bool insert_into([[maybe_unused]] TokenSet& set) const override {
    if constexpr (StateInsertingSearch<S>) search->insert_into(std::as_const(state), set);
    if constexpr (InsertingSearch<S>) search->insert_into(set);
    return InsertingSearch<S>;
  }
  void plan(Plan& plan) override { search->plan(state, plan); }
  bool advance(Expansion const& answer) override { return search->advance(state, answer); }
  Progress progress() const override { return search->progress(state); }
  bool draft([[maybe_unused]] Draft& draft) override {
    if constexpr (DraftingSearch<S>) return search->draft(state, draft);
    else return false;
  }
  bool waits() const override {
    if constexpr (WaitingSearch<S>) return search->waits(std::as_const(state));
    else return false;
  }
  void settled([[maybe_unused]] std::vector<Token>& tokens) override {
    if constexpr (SettlingSearch<S>) search->settled(state, tokens);
  }
  void finish(Result& result) override { search->finish(state, result); }

  S const& usual;
  S const* search = nullptr;
  mutable typename S::State state{};
};

}  // namespace sluice::inline v0::detail
