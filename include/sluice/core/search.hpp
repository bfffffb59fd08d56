// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Search concept: one sentence, from its start to its hypotheses.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// What a search is told of the sentence it starts. Everything it points to lives as long as the search's state is used.
struct Sentence {
  Vocabulary const* vocabulary = nullptr;
  std::span<Token const> prompt{};  ///< fed, not part of the output; never empty (bos by default)
  std::span<Token const> prefix{};  ///< the output begins with these
  std::int32_t source_length = -1;  ///< -1: unknown
  std::uint64_t seed = 0;           ///< of the sentence's random numbers
  Abilities abilities{};            ///< what rows it may plan
  Limits limits{};                  ///< of the model
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
/// after sentence (start() makes no assumption about what it holds).
///
///  - `slots()`: slots it needs at most; it names them 0 .. slots() - 1; slot 0 holds the started source;
///  - `start(state, sentence)`: begins. Throws std::invalid_argument for a request that it cannot serve;
///  - `plan(state, plan)`: which rows to run, what to ask of each line;
///  - `advance(state, answer)`: is told; returns true when the sentence has ended. No rows planned: an empty answer;
///  - `progress(state)`;
///  - `finish(state, result)`: writes the hypotheses; callable at any time after start.
///
/// plan and advance alternate. Optional: `check()` throws std::invalid_argument for options that make no sense, naming
/// the option and its value; `needs`: the Abilities without which it cannot work; `draft(state, draft)`: whether, and
/// for what, it would like guesses; `settled(state, tokens)`: see SettlingSearch; `insert_into(set)`: adds the tokens
/// without which it cannot work to a request's shortlist.
template <class S>
concept Search = std::default_initializable<typename S::State> &&
  requires(S const& search, typename S::State& state, Sentence const& sentence, Plan& plan, Expansion const& answer,
           Result& result) {
    { search.slots() } -> std::convertible_to<std::int32_t>;
    search.start(state, sentence);
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

/// The abilities without which S cannot work; none where it says nothing.
template <class S>
consteval Abilities needs() {
  if constexpr (requires { S::needs; }) return S::needs;
  else return {};
}

/// Lets a search check its options.
template <class S>
void check(S const& search) {
  if constexpr (requires { search.check(); }) search.check();
}

}  // namespace sluice::inline v0
