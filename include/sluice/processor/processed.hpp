// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search with logits processors of its own.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/search_facts.hpp>
#include <sluice/core/detail/search_of.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// The `needs` of a search around another: a constant if they are known at compile time.
template <class Wrapper, class S>
struct NeedsOf {
  Abilities needs() const { return sluice::needs(static_cast<Wrapper const&>(*this).search); }
};
template <class Wrapper, KnownNeeds S>
struct NeedsOf<Wrapper, S> {
  static constexpr Abilities needs = sluice::needs<S>();
};

}  // namespace detail

/// A search with logits processors of its own, for a search that another one holds, or a decoder whose requests name a search together
/// with its processors. Elsewhere a list needs no wrapper: Request::processors, or decode()'s argument; those of a request come after
/// these. See LogitsProcessorList, which does the same in all three.
template <Search S>
struct Processed : detail::NeedsOf<Processed<S>, S> {
  S search{};
  LogitsProcessorList processors{};

  Processed() = default;
  explicit Processed(S plain, LogitsProcessorList its_processors = {})
      : search(std::move(plain)), processors(std::move(its_processors)) {}

  using Wrapped = S;  ///< some members are conditional, see core/detail/named.hpp
  static constexpr bool takes_processors = detail::takes_processors<S>();
  static constexpr bool takes_prefix = sluice::takes_prefix<S>();
  static constexpr bool goes_back = sluice::goes_back<S>();
  static constexpr bool chooses_probes = detail::chooses_probes<S>();
  static constexpr bool assumes_falling = detail::assumes_falling<S>();
  static constexpr bool bears_bonus = detail::bears_bonus<S>();

  struct State {
    std::unique_ptr<detail::SearchOf<S>> plain{};
    std::unique_ptr<detail::AnyProcessed> run{};
  };

  template <class M>
  void adapt(M const& model) {
    detail::adapt(search, model);
  }
  void check() const { sluice::check(search), processors.check(); }
  std::int32_t slot_count() const { return static_cast<std::int32_t>(search.slot_count()); }
  bool ends_outputs() const { return processors.ends_outputs(); }
  void insert_into(TokenSet& set) const requires detail::InsertingSearch<S> { search.insert_into(set); }
  void insert_into(State const& s, TokenSet& set) const requires detail::StateInsertingSearch<S> {
    s.run->insert_into(set);
  }
  void begin(State& s, Sentence const& sentence) const {
    if (s.run == nullptr) s.plain = std::make_unique<detail::SearchOf<S>>(search), s.run = detail::make_processed<>();
    s.plain->take(&search), s.run->use(*s.plain, processors.all());
    s.run->begin(sentence);
  }
  void plan(State& s, Plan& plan) const { s.run->plan(plan); }
  bool advance(State& s, Expansion const& answer) const { return s.run->advance(answer); }
  Progress progress(State const& s) const { return s.run->progress(); }
  bool waits(State const& s) const requires WaitingSearch<S> { return s.run->waits(); }
  bool draft(State& s, Draft& draft) const requires DraftingSearch<S> { return s.run->draft(draft); }
  void settled(State& s, std::vector<Token>& tokens) const requires SettlingSearch<S> { s.run->settled(tokens); }
  void finish(State& s, Result& result) const { s.run->finish(result); }
};

}  // namespace sluice::inline v0
