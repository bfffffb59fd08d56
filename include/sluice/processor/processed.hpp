// SPDX-License-Identifier: Apache-2.0
/// \file
/// Searches around searches: one with logits processors of its own, and one that is one of several.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/falling.hpp>
#include <sluice/core/detail/search_facts.hpp>
#include <sluice/core/detail/search_of.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
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
  bool ends_outputs() const { return detail::any_of(processors.all(), &detail::AnyProcessor::ends); }
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

namespace detail {

/// Whether searches can be alternatives: none feeds the prefix itself or waits for its source, and rules edit the probes of all of them,
/// or of none.
template <class First, class... Rest>
consteval bool go_together() {
  return !takes_prefix<First>() && !WaitingSearch<First> &&
         ((!takes_prefix<Rest>() && !WaitingSearch<Rest> && chooses_probes<Rest>() == chooses_probes<First>()) && ...);
}

}  // namespace detail

/// A search that is one of several, chosen for each request (Request::search), so that one decoder, and one batch, serves them all. The
/// results are those of the chosen search. The default is the first one with its defaults.
///
///     using Any = OneOf<Greedy, BeamSearch, Sample>;
///     Server server(model, Any());
///     server.submit({.source = s, .search = BeamSearch{.width = 4}});
///
/// A state holds those of all of them, each of which is reused by the next sentence with that search. Not for searches that feed a
/// request's prefix themselves, or wait for more of a source.
template <Search... S>
  requires(sizeof...(S) > 0 && detail::go_together<S...>())
class OneOf {
 public:
  OneOf() = default;
  template <class One>
    requires(std::is_same_v<One, S> || ...)
  OneOf(One one) : search_(std::move(one)) {}  // NOLINT(google-explicit-constructor)

  using Wrapped = std::variant<S...>;  ///< some members are conditional, see core/detail/named.hpp
  static constexpr bool goes_back = (sluice::goes_back<S>() || ...);
  static constexpr bool assumes_falling = (detail::assumes_falling<S>() || ...);
  static constexpr bool bears_bonus = ((!detail::assumes_falling<S>() || detail::bears_bonus<S>()) && ...);
  static constexpr bool chooses_probes = (detail::chooses_probes<S>() || ...);

  using State = std::tuple<typename S::State...>;

  /// Calls f with the chosen search.
  template <class F>
  decltype(auto) chosen(F&& f) const {
    return std::visit(std::forward<F>(f), search_);
  }

  Abilities needs() const {
    return chosen([](auto const& one) { return sluice::needs(one); });
  }
  template <class M>
  void adapt(M const& model) {
    std::visit([&](auto& one) { detail::adapt(one, model); }, search_);
  }
  void check() const {
    chosen([](auto const& one) { sluice::check(one); });
  }
  std::int32_t slot_count() const {
    return chosen([](auto const& one) { return static_cast<std::int32_t>(one.slot_count()); });
  }
  void begin(State& s, Sentence const& sentence) const {
    with(s, [&](auto const& one, auto& state) { one.begin(state, sentence); });
  }
  void plan(State& s, Plan& plan) const {
    with(s, [&](auto const& one, auto& state) { one.plan(state, plan); });
  }
  bool advance(State& s, Expansion const& answer) const {
    return with(s, [&](auto const& one, auto& state) { return one.advance(state, answer); });
  }
  Progress progress(State const& s) const {
    return with(s, [&](auto const& one, auto const& state) { return one.progress(state); });
  }
  bool draft(State& s, Draft& draft) const requires(DraftingSearch<S> || ...) {
    return with(s, [&]<class One>(One const& one, auto& state) {
      if constexpr (DraftingSearch<One>) return one.draft(state, draft);
      else return false;
    });
  }
  void settled(State& s, std::vector<Token>& tokens) const requires(SettlingSearch<S>&&...) {
    with(s, [&](auto const& one, auto& state) { one.settled(state, tokens); });
  }
  void insert_into(TokenSet& set) const requires(detail::InsertingSearch<S> || ...) {
    chosen([&]<class One>(One const& one) {
      if constexpr (detail::InsertingSearch<One>) one.insert_into(set);
    });
  }
  void insert_into(State const& s, TokenSet& set) const requires(detail::StateInsertingSearch<S> || ...) {
    with(s, [&]<class One>(One const& one, auto const& state) {
      if constexpr (detail::StateInsertingSearch<One>) one.insert_into(state, set);
    });
  }
  void finish(State& s, Result& result) const {
    with(s, [&](auto const& one, auto& state) { one.finish(state, result); });
  }

 private:
  template <class States, class F>
  decltype(auto) with(States& states, F const& f) const {
    return dispatch(states, f, std::index_sequence_for<S...>{});
  }
  template <class States, class F, std::size_t First, std::size_t... Rest>
  decltype(auto) dispatch(States& states, F const& f, std::index_sequence<First, Rest...>) const {
    if constexpr (sizeof...(Rest) > 0)
      if (search_.index() != First) return dispatch(states, f, std::index_sequence<Rest...>{});
    return f(*std::get_if<First>(&search_), std::get<First>(states));
  }

  std::variant<S...> search_{};
};

}  // namespace sluice::inline v0
