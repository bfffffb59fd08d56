// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds phrases in a stream of tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// The automaton of Aho and Corasick (1975) over a list of phrases. A state is the longest prefix of any phrase that is
/// a suffix of the tokens so far. Overlaps and shared prefixes are handled by construction: [4 5] is found in 4 4 5.
///
/// Built in O(total length * longest phrase) at worst, with memory for the total length. next() follows at most as many
/// fallbacks as the state is deep, usually one or none. Phrases may repeat; each keeps its index.
class PhraseMatcher {
 public:
  using State = std::int32_t;
  static constexpr State root = 0;

  template <class = void>
  PhraseMatcher() : PhraseMatcher(std::span<std::vector<Token> const>{}) {}

  /// \throws std::invalid_argument  naming the phrase, if one is empty
  template <class = void>
  explicit PhraseMatcher(std::span<std::vector<Token> const> phrases) {
    nodes_.emplace_back();
    for (std::size_t p = 0; p < phrases.size(); ++p) {
      require(!phrases[p].empty(), "phrase", p, "is empty");
      auto at = root;
      for (auto const token : phrases[p]) at = child_or_new(at, token);
      node(at).phrases.push_back(static_cast<std::int32_t>(p));
    }
    link();
  }

  /// The state after one token more.
  template <class = void>
  State next(State state, Token token) const {
    for (;; state = node(state).fallback) {
      if (auto const to = child(state, token); to != none) return to;
      if (state == root) return root;
    }
  }

  std::int32_t states() const { return static_cast<std::int32_t>(nodes_.size()); }  ///< 0 .. states() - 1
  std::int32_t depth(State state) const { return node(state).depth; }               ///< tokens matched
  State fallback(State state) const { return node(state).fallback; }                ///< the next longest prefix
  /// Phrases that end exactly here with all depth() tokens. Shorter ones that end here are found along fallback().
  std::span<std::int32_t const> phrases(State state) const { return node(state).phrases; }
  /// Whether any phrase ends here, of any length.
  bool ends(State state) const { return node(state).ends; }
  /// The tokens that extend the match, ascending.
  std::span<Token const> children(State state) const { return node(state).tokens; }
  /// Calls f(token) once for every token that completes a phrase.
  template <class F>
  void for_each_completion(State state, F&& f) const {
    for (;; state = node(state).fallback) {
      for (auto const token : node(state).completions) f(token);
      if (state == root) return;
    }
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  static constexpr State none = -1;
  struct Node {
    std::vector<Token> tokens;       // ascending
    std::vector<State> targets;      // of the same
    std::vector<Token> completions;  // without those of fallbacks
    std::vector<std::int32_t> phrases;
    State fallback = root;
    std::int32_t depth = 0;
    bool ends = false;
  };

  Node& node(State state) { return nodes_[static_cast<std::size_t>(state)]; }
  Node const& node(State state) const { return nodes_[static_cast<std::size_t>(state)]; }

  template <class = void>
  State child(State state, Token token) const {
    auto const& n = node(state);
    auto const found = std::lower_bound(n.tokens.begin(), n.tokens.end(), token);
    return found != n.tokens.end() && *found == token ? n.targets[static_cast<std::size_t>(found - n.tokens.begin())]
                                                      : none;
  }
  template <class = void>
  State child_or_new(State state, Token token) {
    if (auto const to = child(state, token); to != none) return to;
    auto const to = static_cast<State>(nodes_.size());
    auto const depth = node(state).depth + 1;
    nodes_.emplace_back().depth = depth;
    auto& n = node(state);
    auto const at = std::lower_bound(n.tokens.begin(), n.tokens.end(), token) - n.tokens.begin();
    n.tokens.insert(n.tokens.begin() + at, token);
    n.targets.insert(n.targets.begin() + at, to);
    return to;
  }

  /// Sets fallbacks in order of depth: a node's fallback is the child of its parent's fallback.
  template <class = void>
  void link() {
    std::vector<State> order{root};
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto const at = order[i];
      for (std::size_t c = 0; c < node(at).tokens.size(); ++c) {
        auto const to = node(at).targets[c];
        node(to).fallback = at == root ? root : next(node(at).fallback, node(at).tokens[c]);
        order.push_back(to);
      }
      node(at).ends = !node(at).phrases.empty() || (at != root && node(node(at).fallback).ends);
    }
    for (auto const at : order) {
      auto& n = node(at);
      for (std::size_t c = 0; c < n.tokens.size(); ++c)
        if (node(n.targets[c]).ends && (at == root || !node(next(n.fallback, n.tokens[c])).ends))
          n.completions.push_back(n.tokens[c]);
    }
  }

  std::vector<Node> nodes_;
};

}  // namespace sluice::inline v0
