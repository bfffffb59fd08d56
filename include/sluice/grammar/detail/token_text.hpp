// SPDX-License-Identifier: Apache-2.0
/// \file
/// A text of counted tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// An automaton over bytes as one over tokens. Tokens that lead from each state to the same one are alike.
struct TokenText {
  static constexpr auto none = (std::numeric_limits<std::int32_t>::max)() / 2;
  std::vector<std::vector<std::pair<Token, Token>>> sets{};                 // of tokens that are alike: first and last
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> steps{};  // [state]: set, and the state behind it
  std::vector<std::int32_t> fewest{};                                       // [state]: tokens to the end, or none

  /// O(states x nodes of the trie)
  SLUICE_LAZY static TokenText of(Automaton const& a, Automaton::TokenText const& text, TokenNodes const& trie) {
    TokenText out;
    out.find_sets(a, text, trie);
    out.find_fewest(a, text);
    return out;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY void find_sets(Automaton const& a, Automaton::TokenText const& text, TokenNodes const& trie) {
    auto const states = at(text.count), size = at(trie.vocabulary().size);
    std::vector<std::int32_t> next(states * 256, -1), of(size, -1), way(at(trie.depth()) + 1);
    for (std::size_t state = 0; state < states; ++state)
      for (auto const& edge : a.edges_of(a.places[at(text.place) + state]))
        for (int byte = edge.first; byte <= edge.last; ++byte)
          next[state * 256 + static_cast<std::size_t>(byte)] = edge.to - text.place;
    std::int32_t count = 0;
    std::unordered_map<std::uint64_t, std::int32_t> parts;  // of what was alike so far, by the state behind
    for (std::int32_t state = 0; state < text.count; ++state) {
      parts.clear();
      way[0] = state;
      for (std::int32_t node = 1; node < trie.size();) {
        auto const depth = at(trie.depth(node));
        auto const to = next[at(way[depth - 1]) * 256 + trie.byte(node)];
        if (to < 0) {
          node = trie.end(node);
          continue;
        }
        way[depth] = to;
        for (auto const token : trie.tokens(node)) {
          auto& own = of[at(token)];
          auto const key = std::uint64_t{static_cast<std::uint32_t>(own + 1)} << 32 | static_cast<std::uint32_t>(to);
          auto const [part, fresh] = parts.try_emplace(key, count);
          if (fresh) ++count;
          own = part->second;
        }
        ++node;
      }
    }
    std::vector<std::int32_t> number(at(count), -1);
    std::vector<Token> example;
    for (Token token = 0; at(token) < size; ++token) {
      if (of[at(token)] < 0) continue;
      auto& own = number[at(of[at(token)])];
      if (own < 0) own = static_cast<std::int32_t>(sets.size()), sets.emplace_back(), example.push_back(token);
      auto& ranges = sets[at(own)];
      if (!ranges.empty() && ranges.back().second + 1 == token) ranges.back().second = token;
      else ranges.emplace_back(token, token);
    }
    steps.resize(states);
    for (std::size_t set = 0; set < sets.size(); ++set)
      for (std::int32_t state = 0; state < text.count; ++state) {
        auto to = state;
        for (auto const c : trie.bytes(example[set]))
          if (to >= 0) to = next[at(to) * 256 + static_cast<std::uint8_t>(c)];
        if (to >= 0) steps[at(state)].emplace_back(static_cast<std::int32_t>(set), to);
      }
  }

  SLUICE_LAZY void find_fewest(Automaton const& a, Automaton::TokenText const& text) {
    std::vector<std::vector<std::int32_t>> before(steps.size());
    for (std::size_t state = 0; state < steps.size(); ++state)
      for (auto const& step : steps[state]) before[at(step.second)].push_back(static_cast<std::int32_t>(state));
    fewest.assign(steps.size(), none);
    std::vector<std::int32_t> open;
    for (std::int32_t state = 0; state < text.count; ++state)
      if (a.places[at(text.place + state)].to >= 0) fewest[at(state)] = 0, open.push_back(state);
    for (std::size_t i = 0; i < open.size(); ++i)  // NOLINT(modernize-loop-convert): grows
      for (auto const from : before[at(open[i])])
        if (fewest[at(from)] == none) fewest[at(from)] = fewest[at(open[i])] + 1, open.push_back(from);
  }
};

}  // namespace sluice::inline v0::detail
