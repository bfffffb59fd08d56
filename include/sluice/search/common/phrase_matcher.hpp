// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds phrases in a stream of tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/detail/pattern_automaton.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// The automaton of Aho and Corasick (1975) over a list of phrases. A state is the longest prefix of any phrase that is
/// a suffix of the tokens so far. Overlaps and shared prefixes are handled by construction: [4 5] is found in 4 4 5.
///
/// Built in O(L log n) for n phrases of L tokens together, with some 20 bytes for each token. next() follows at most as
/// many fallbacks as the state is deep, usually one or none. Phrases may repeat; each keeps its index.
class PhraseMatcher {
  using Automaton = detail::PatternAutomaton<std::vector<Token>>;

 public:
  using State = Automaton::State;
  static constexpr State root = Automaton::root;

  template <class = void>
  PhraseMatcher() : PhraseMatcher(std::span<std::vector<Token> const>{}) {}

  /// \throws std::invalid_argument  naming the phrase, if one is empty
  template <class = void>
  explicit PhraseMatcher(std::span<std::vector<Token> const> phrases) : automaton_(checked(phrases)) {
    completions_begin_.reserve(size() + 1);
    for (State state = root; state < states(); ++state) {
      completions_begin_.push_back(static_cast<std::int32_t>(completions_.size()));
      auto const tokens = children(state);
      auto child = automaton_.first_child(state);
      for (auto const token : tokens)
        if (ends(child++) && (state == root || !ends(next(fallback(state), token)))) completions_.push_back(token);
    }
    completions_begin_.push_back(static_cast<std::int32_t>(completions_.size()));
  }

  /// The state after one token more.
  template <class = void>
  State next(State state, Token token) const {
    return automaton_.next(state, token);
  }

  std::int32_t states() const { return automaton_.states(); }                ///< 0 .. states() - 1
  std::int32_t depth(State state) const { return automaton_.depth(state); }  ///< tokens matched
  State fallback(State state) const { return automaton_.fallback(state); }   ///< the next longest prefix; lower
  /// Phrases that end exactly here with all depth() tokens. Shorter ones that end here are found along fallback().
  template <class = void>
  std::span<std::int32_t const> phrases(State state) const {
    return automaton_.patterns(state);
  }
  /// Whether any phrase ends here, of any length.
  bool ends(State state) const { return automaton_.ends(state); }
  /// The tokens that extend the match, ascending.
  std::span<Token const> children(State state) const { return automaton_.children(state); }
  /// Calls f(token) once for every token that completes a phrase.
  template <class F>
  void for_each_completion(State state, F&& f) const {
    for (;; state = fallback(state)) {
      auto const at = static_cast<std::size_t>(state);
      for (auto i = completions_begin_[at]; i < completions_begin_[at + 1]; ++i)
        f(completions_[static_cast<std::size_t>(i)]);
      if (state == root) return;
    }
  }
  std::size_t size() const { return static_cast<std::size_t>(states()); }

 private:
  template <class = void>
  static std::span<std::vector<Token> const> checked(std::span<std::vector<Token> const> phrases) {
    for (std::size_t p = 0; p < phrases.size(); ++p) require(!phrases[p].empty(), "phrase", p, "is empty");
    return phrases;
  }

  Automaton automaton_;
  std::vector<Token> completions_;                 // of all states, without those of fallbacks
  std::vector<std::int32_t> completions_begin_{};  // [state], and one more at the end
};

}  // namespace sluice::inline v0
