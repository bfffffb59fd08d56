// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Search concept: one sentence, from its start to its hypotheses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

SLUICE_NAMES(needs)
SLUICE_NAMES(draft)
SLUICE_NAMES(settled)
SLUICE_NAMES(insert_into)
SLUICE_NAMES(takes_prefix)
SLUICE_NAMES(goes_back)

namespace sluice::inline v0 {

/// What a search is told of the sentence it starts. Everything it points to lives as long as the search's state is used.
///
/// Prompt and forced prefix are the loop's affair: when a search plans for the first time, its slot 0 holds them but for the
/// last token (`held` tokens), and `last` is to be fed next, as after any other step. The loop puts the prefix before the
/// tokens of every hypothesis and of what is settled.
struct Sentence {
  Vocabulary const* vocabulary = nullptr;
  std::span<Token const> prompt{};          ///< fed, not part of the output; never empty (bos by default)
  std::span<Token const> prefix{};          ///< the output begins with these
  Token last = 0;                           ///< the last token of the two
  std::int32_t held = 0;                    ///< tokens of theirs that slot 0 holds at the first plan: all but the last
  double const* prefix_log_prob = nullptr;  ///< of the prefix: known from the first advance on; null: 0
  std::int32_t source_length = -1;          ///< -1: unknown
  std::uint64_t seed = 0;                   ///< of the sentence's random numbers
  Abilities abilities{};                    ///< what rows it may plan
  Limits limits{};                          ///< of the model
};

/// How far a sentence is.
struct Progress {
  std::int32_t length = 0;  ///< tokens that its live slots hold (as of the rows it would plan next)
  std::int32_t width = 1;   ///< hypotheses alive, ended ones that the beam still carries included
  std::int32_t rows = 0;    ///< tokens that it would feed next, and the ended hypotheses it carries; 0 = width
  std::int32_t block = 1;   ///< tokens in each row that it would plan next
};

// clang-format off
/// A search sees one sentence. It is a const object of options; what changes is its `State`, which is reused for sentence
/// after sentence (begin() makes no assumption about what it holds).
///
///  - `slot_count()`: slots it needs at most, >= 1; it names them 0 .. slot_count() - 1; slot 0 holds the started source;
///  - `begin(state, sentence)`. Throws std::invalid_argument for a request that it cannot serve;
///  - `plan(state, plan)`: which rows to run, what to ask of each line; see Plan. The first plan has rows that go on from
///    slot 0 with Sentence::last, or none;
///  - `advance(state, answer)`: is told; returns true when the sentence has ended. No rows planned: an empty answer;
///  - `progress(state)`;
///  - `finish(state, result)`: writes the hypotheses into a Result&, or says by Result::fail why there are none (Failure::none and
///    a message where that is as it should be); callable at any time after the first advance. A sentence that has ended and
///    has neither ends with Failure::search.
///
/// plan and advance alternate. Found, never demanded (the compiler refuses what has one of these names and another
/// signature): `check()` throws std::invalid_argument for options that make no sense, naming the option and its value;
/// `needs`: the Abilities without which it cannot work; `draft(state, draft)`: whether, and for what, it would like guesses;
/// `settled(state, tokens)`: see SettlingSearch; `insert_into(set)`: adds the tokens without which it cannot work to a
/// request's shortlist; `static constexpr bool takes_prefix = true`: a request's prefix is the search's own affair, and the
/// loop feeds the prompt alone; `static constexpr bool goes_back = true`: it may go on from, or roll back, what any row of
/// its left in a slot, also behind an end: a wrapper that knows a row's answer (Ruled) has the row run all the same.
template <class S>
concept Search = std::default_initializable<typename S::State> &&
  requires(S const& search, typename S::State& state, Sentence const& sentence, Plan& plan, Expansion const& answer,
           Result& result) {
    { search.slot_count() } -> std::convertible_to<std::int32_t>;
    search.begin(state, sentence);
    search.plan(state, plan);
    { search.advance(state, answer) } -> std::same_as<bool>;
    { search.progress(state) } -> std::same_as<Progress>;
    search.finish(state, result);
  };

/// A search that would like guesses.
template <class S>
concept DraftingSearch = Search<S> && requires(S const& search, typename S::State& state, Draft& draft) {
  { search.draft(state, draft) } -> std::same_as<bool>;
};

/// A search that can say, while it runs, what its result will begin with:
///
///  - `settled(state, tokens)`: `tokens` becomes the longest beginning that all hypotheses share which may still be
///    returned. It only grows.
template <class S>
concept SettlingSearch = Search<S> && requires(S const& search, typename S::State& state, std::vector<Token>& tokens) {
  search.settled(state, tokens);
};
// clang-format on

/// Whether the compiler knows what S needs: `static constexpr Abilities needs`, or none of that name.
template <class S>
concept KnownNeeds = !detail::names_needs<S>() || requires {
  typename std::bool_constant<S::needs.ragged>;
};

/// The abilities without which S cannot work; none where it says nothing. Only where the compiler knows.
template <KnownNeeds S>
consteval Abilities needs() {
  if constexpr (requires { S::needs; }) return S::needs;
  else return {};
}

/// The same of one search, whose options may decide (`Abilities needs() const`).
template <class S>
constexpr Abilities needs(S const& search) {
  if constexpr (requires {
                  { search.needs() } -> std::convertible_to<Abilities>;
                })
    return search.needs();
  else {
    static_assert(KnownNeeds<S>,
                  "sluice: `needs` of a search must be a static constexpr Abilities, or a const function "
                  "that returns them");
    return sluice::needs<S>();
  }
}

/// Whether a request's prefix is the search's own affair.
template <class S>
consteval bool takes_prefix() {
  if constexpr (requires { S::takes_prefix; }) return S::takes_prefix;
  else return false;
}

/// Whether a search may go on from what any row left in a slot, so that no row of its may be left out.
template <class S>
consteval bool goes_back() {
  if constexpr (requires { S::goes_back; }) return S::goes_back;
  else return false;
}

/// Lets a search check its options.
template <class S>
void check(S const& search) {
  if constexpr (requires { search.check(); }) search.check();
  else static_assert(!detail::stray_check<S>(), "sluice: check() of a search must be const and take nothing");
}

namespace detail {

/// A search that must have some tokens in a shortlist.
template <class S>
concept InsertingSearch = requires(S const& search, TokenSet& set) {
  search.insert_into(set);
};

// Members that take what they are to write by value, or const: they take one that nobody reads.
template <class S>
concept FinishesCopy = requires(S const& search, typename S::State& state) {
  search.finish(state, Result{});
};
template <class S>
concept DraftsCopy = requires(S const& search, typename S::State& state) {
  search.draft(state, Draft{});
};
template <class S>
concept SettlesCopy = requires(S const& search, typename S::State& state) {
  search.settled(state, std::vector<Token>{});
};
template <class S>
concept InsertsIntoCopy = requires(S const& search) {
  search.insert_into(TokenSet(1));
};

/// Refuses members that have a name the library looks for, and another signature: they would never be called.
template <Search S>
consteval bool search_names() {
  static_assert(!FinishesCopy<S>,
                "sluice: a search's `finish` must take a Result&: what it writes into a copy is lost");
  static_assert(!DraftsCopy<S> && (DraftingSearch<S> || !stray_draft<S>()),
                "sluice: a search's `draft` must be const, take (State&, Draft&) and return a bool");
  static_assert(!SettlesCopy<S> && (SettlingSearch<S> || !stray_settled<S>()),
                "sluice: a search's `settled` must be const and take (State&, std::vector<Token>&)");
  static_assert(!InsertsIntoCopy<S> && (InsertingSearch<S> || !stray_insert_into<S>()),
                "sluice: a search's `insert_into` must be const and take a TokenSet&");
  static_assert(
      requires {
        { S::takes_prefix } -> std::convertible_to<bool>;
      } || !stray_takes_prefix<S>(),
      "sluice: a search's `takes_prefix` must be a static constexpr bool");
  static_assert(
      requires {
        { S::goes_back } -> std::convertible_to<bool>;
      } || !stray_goes_back<S>(),
      "sluice: a search's `goes_back` must be a static constexpr bool");
  return true;
}

}  // namespace detail

}  // namespace sluice::inline v0
