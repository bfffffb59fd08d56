// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Search concept: decodes one sentence, from its start to its hypotheses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

SLUICE_NAMES(needs)
SLUICE_NAMES(draft)
SLUICE_NAMES(settled)
SLUICE_NAMES(insert_into)
SLUICE_NAMES(takes_prefix)
SLUICE_NAMES(goes_back)
SLUICE_NAMES(waits)

namespace sluice::inline v0 {

/// What a search knows about a sentence when it begins. Everything it points to lives as long as the search's state is used.
///
/// The loop does the prefill of prompt and forced prefix: when a search plans for the first time, its slot 0 holds all of their
/// tokens except the last (`held` tokens), and the search feeds `last` next, as after any other step. The loop puts the prefix in
/// front of the tokens of every hypothesis and of the settled tokens.
struct Sentence {
  Vocabulary const* vocabulary = nullptr;
  std::span<Token const> prompt{};  ///< fed, not part of the output; never empty (bos by default)
  std::span<Token const> prefix{};  ///< the output begins with these
  Token last = 0;                   ///< the last token of prompt and prefix
  std::int32_t held = 0;            ///< tokens in slot 0 at the first plan: all of prompt and prefix but the last
  double const* prefix_log_prob = nullptr;  ///< of the prefix: valid from the first advance on; null: 0
  std::int32_t source_length = -1;          ///< -1: unknown
  SourceGrowth const* growth =
      nullptr;              ///< of a source that is not over: renewed before each step; null: nothing more will come
  std::uint64_t seed = 0;   ///< of the sentence's random numbers
  Abilities abilities{};    ///< of the model: which rows it may plan
  Limits limits{};          ///< of the model
  bool traced = false;      ///< Request::traced
  bool confident = false;   ///< Request::confidence asks
  bool whole_lines = true;  ///< Query::process is called
};

/// The progress of a sentence, for schedules.
struct Progress {
  std::int32_t length = 0;  ///< tokens that its live slots hold (as of the rows it would plan next)
  std::int32_t width = 1;   ///< live hypotheses, and ended ones that the beam still carries
  std::int32_t rows = 0;    ///< tokens that it would feed next, and the ended hypotheses it carries; 0 = width
  std::int32_t block = 1;   ///< tokens in each row that it would plan next
};

// clang-format off
/// A search sees one sentence. It is a const object of options. All that changes is in its `State`, which is reused for later
/// sentences (begin() must not depend on what it holds).
///
///  - `slot_count()`: how many slots it needs at most, >= 1. It numbers them from 0; slot 0 holds the started source;
///  - `begin(state, sentence)`: begins a sentence. Throws std::invalid_argument for a request that it cannot serve;
///  - `plan(state, plan)`: plans which rows to run, and the query for each line; see Plan. The rows of the first plan continue
///    slot 0 with Sentence::last, or there are none;
///  - `advance(state, answer)`: takes the answers; returns true when the sentence has ended. Without rows the answer is empty;
///  - `progress(state)`: see Progress;
///  - `finish(state, result)`: writes the hypotheses into a Result&, or calls Result::fail if there are none (with Failure::none
///    and a message if that is no failure). It may be called at any time after the first advance. If a sentence has ended, and
///    finish does neither, its result is Failure::search.
///
/// plan and advance alternate. Optional members (one of these names with another signature is a compile error):
///
///  - `check()`: throws std::invalid_argument for invalid options, naming the option and its value;
///  - `adapt(model)`: called once with the model that it is for, before check(): takes from it what its options leave open. Throws
///    std::invalid_argument if they are not those of the model;
///  - `needs`: the Abilities that it requires of the model;
///  - `draft(state, draft)`: whether it wants guesses, and for what (speculative decoding);
///  - `settled(state, tokens)`: see SettlingSearch;
///  - `waits(state)`: whether it can plan nothing before the source has grown (Sentence::growth). The loop then leaves it out of steps.
///    Without this member, a search takes only sources that are over;
///  - `insert_into(set)`, or `insert_into(state, set)`: inserts the tokens that it requires into a request's shortlist, after begin(). Throws
///    std::invalid_argument for a shortlist that it cannot serve;
///  - `static constexpr bool takes_prefix = true`: the search feeds a request's prefix itself; the loop feeds the prompt only;
///  - `static constexpr bool assumes_falling = true`: it proves its result by log-probabilities that only fall, so models with a
///    Limits::log_prob above 0 are refused;
///  - `static constexpr bool goes_back = true`: it may continue, or roll back to, what any of its rows left in a slot, even after
///    an end. So where processors know a row's answer, the row is run nevertheless;
///  - `stops_asked(sentence)`: of how many candidates of a step it asks Expansion::stop, so that those end at once that complete a stop
///    of a processor; 0: of none, and a hypothesis that did so ends in the next step.
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

/// A search that wants guesses (speculative decoding).
template <class S>
concept DraftingSearch = Search<S> && requires(S const& search, typename S::State& state, Draft& draft) {
  { search.draft(state, draft) } -> std::same_as<bool>;
};

/// A search that waits for more of a source.
template <class S>
concept WaitingSearch = Search<S> && requires(S const& search, typename S::State const& state) {
  { search.waits(state) } -> std::same_as<bool>;
};

/// A search that can say, while it runs, what its result will begin with (token streaming):
///
///  - `settled(state, tokens)`: sets `tokens` to the longest common prefix of all hypotheses that may still be returned. It
///    only grows.
template <class S>
concept SettlingSearch = Search<S> && requires(S const& search, typename S::State& state, std::vector<Token>& tokens) {
  search.settled(state, tokens);
};
// clang-format on

namespace detail {

/// Whether the needs of S are known at compile time: `static constexpr Abilities needs`, or no member of that name.
template <class S>
concept KnownNeeds = !names_needs<S>() || requires {
  typename std::bool_constant<S::needs.ragged>;
};

}  // namespace detail

/// The abilities that S requires, at compile time; none if it has no such member.
template <detail::KnownNeeds S>
consteval Abilities needs() {
  if constexpr (requires { S::needs; }) return S::needs;
  else return {};
}

/// The same for a search object: its options may decide (`Abilities needs() const`).
template <class S>
constexpr Abilities needs(S const& search) {
  if constexpr (requires {
                  { search.needs() } -> std::convertible_to<Abilities>;
                })
    return search.needs();
  else {
    static_assert(detail::KnownNeeds<S>,
                  "sluice: `needs` of a search must be a static constexpr Abilities, or a const function "
                  "that returns them");
    return sluice::needs<S>();
  }
}

/// Whether the search feeds a request's prefix itself.
template <class S>
consteval bool takes_prefix() {
  if constexpr (requires { S::takes_prefix; }) return S::takes_prefix;
  else return false;
}

/// Whether a search may continue what any of its rows left in a slot, so that none of its rows may be left out.
template <class S>
consteval bool goes_back() {
  if constexpr (requires { S::goes_back; }) return S::goes_back;
  else return false;
}

/// Calls the search's check() of its options, if it has one.
template <class S>
void check(S const& search) {
  if constexpr (requires { search.check(); }) search.check();
  else static_assert(!detail::stray_check<S>(), "sluice: check() of a search must be const and take nothing");
}

namespace detail {

/// Lets a search take from a model what its options leave open.
template <class S, class M>
void adapt(S& search, M const& model) {
  if constexpr (requires { search.adapt(model); }) search.adapt(model);
  else static_assert(!stray_adapt<S>(), "sluice: a search's `adapt` must take a model, const");
}

template <class S, class M>
S adapted(S search, M const& model) {
  adapt(search, model);
  return search;
}

/// The most slots that a search may ask for. More hypotheses than this are a mistake: the memory of the loop would be gone before a step.
inline constexpr std::int32_t most_slots = 1 << 20;

/// Checks an option that says how many hypotheses there are, each of which costs `each` slots.
SLUICE_LAZY void require_slots(std::string_view name, std::int64_t count, std::int64_t each = 1) {
  require(count >= 1, name, count, "must be at least 1");
  require(each >= 1 && count <= most_slots / each, name, count,
          "needs more slots of the model than any sentence has: must be at most " +
              std::to_string(most_slots / (std::max)(each, std::int64_t{1})));
}

/// A search that requires some tokens in a shortlist.
template <class S>
concept InsertingSearch = requires(S const& search, TokenSet& set) {
  search.insert_into(set);
};
/// One for which they depend on the sentence.
template <class S>
concept StateInsertingSearch = requires(S const& search, typename S::State const& state, TokenSet& set) {
  search.insert_into(state, set);
};

// Members that take their output by value, or const: what they write would be lost.
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
template <class S>
concept StateInsertsIntoCopy = requires(S const& search, typename S::State const& state) {
  search.insert_into(state, TokenSet(1));
};

/// Compile errors for members that have the name of an optional member and another signature: they would never be called.
template <Search S>
consteval bool search_names() {
  static_assert(!FinishesCopy<S>,
                "sluice: a search's `finish` must take a Result&: what it writes into a copy is lost");
  static_assert(!DraftsCopy<S> && (DraftingSearch<S> || !stray_draft<S>()),
                "sluice: a search's `draft` must be const, take (State&, Draft&) and return a bool");
  static_assert(WaitingSearch<S> || !stray_waits<S>(),
                "sluice: a search's `waits` must be const, take a State const& and return a bool");
  static_assert(!SettlesCopy<S> && (SettlingSearch<S> || !stray_settled<S>()),
                "sluice: a search's `settled` must be const and take (State&, std::vector<Token>&)");
  static_assert(
      !InsertsIntoCopy<S> && !StateInsertsIntoCopy<S> &&
          (InsertingSearch<S> || StateInsertingSearch<S> || !stray_insert_into<S>()),
      "sluice: a search's `insert_into` must be const and take a TokenSet&, or its State const& and a TokenSet&");
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
