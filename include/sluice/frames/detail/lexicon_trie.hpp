// SPDX-License-Identifier: Apache-2.0
/// \file
/// The spellings of a lexicon as a trie of tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Node 0 is between words. The children of a node are consecutive, sorted by their token, and have higher numbers than it.
class LexiconTrie {
 public:
  LexiconTrie() = default;
  /// \param spellings  elements have `tokens`, none empty
  template <class Spellings>
  LexiconTrie(Spellings const& spellings, std::span<Token const> separators) : separated_(!separators.empty()) {
    separators_.insert(separators);
    order_.resize(spellings.size());
    std::iota(order_.begin(), order_.end(), 0);
    auto const tokens = [&](std::size_t i) -> std::vector<Token> const& {
      return spellings[static_cast<std::size_t>(order_[i])].tokens;
    };
    std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      auto const &x = spellings[static_cast<std::size_t>(a)].tokens, &y = spellings[static_cast<std::size_t>(b)].tokens;
      return x != y ? x < y : a < b;
    });
    nodes_.push_back({});
    std::vector<std::size_t> firsts{0}, lasts{order_.size()}, depths{0};  // of each node
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      auto first = firsts[n];
      auto const last = lasts[n], depth = depths[n];
      nodes_[n].first_word = static_cast<std::uint32_t>(first);
      while (first < last && tokens(first).size() == depth) ++first, ++nodes_[n].words;
      nodes_[n].child = static_cast<std::uint32_t>(nodes_.size());
      while (first < last) {
        auto const token = tokens(first)[depth];
        auto end = first + 1;
        while (end < last && tokens(end)[depth] == token) ++end;
        nodes_.push_back({.token = token});
        ++nodes_[n].children;
        firsts.push_back(first), lasts.push_back(end), depths.push_back(depth + 1);
        first = end;
      }
    }
  }

  TokenSet const& separators() const { return separators_; }
  bool separated() const { return separated_; }  ///< whether there are any
  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }

  /// Where a token leads.
  struct Step {
    std::int32_t node = -1;  // -1: nowhere
    bool closes = false;     // a word is over
  };
  SLUICE_LAZY Step step(std::int32_t node, Token token) const {
    if (node < 0) return {};
    auto const ends = may_end(node);
    if (separators_.contains(token)) return ends ? Step{0, node != 0} : Step{};
    auto const found = child(node, token);
    if (found >= 0 || separated_ || node == 0 || !ends) return {found, false};
    auto const begun = child(0, token);
    return {begun, begun >= 0};
  }
  /// Whether a text may end at a node: between words, or at the end of one.
  bool may_end(std::int32_t node) const { return node == 0 || at(node).words > 0; }
  /// The spellings that end at a node.
  SLUICE_LAZY std::span<std::int32_t const> words(std::int32_t node) const {
    return std::span(order_).subspan(at(node).first_word, at(node).words);
  }
  /// The first child of a node, and how many it has.
  std::pair<std::int32_t, std::int32_t> children(std::int32_t node) const {
    return {static_cast<std::int32_t>(at(node).child), static_cast<std::int32_t>(at(node).children)};
  }
  Token token(std::int32_t node) const { return at(node).token; }
  /// The child that a token leads to; -1: none. O(log children).
  SLUICE_LAZY std::int32_t child(std::int32_t node, Token token) const {
    auto const all = std::span(nodes_).subspan(at(node).child, at(node).children);
    auto const found = std::lower_bound(all.begin(), all.end(), token,
                                        [](Node const& one, Token wanted) { return one.token < wanted; });
    if (found == all.end() || found->token != token) return -1;
    return static_cast<std::int32_t>(&*found - nodes_.data());
  }
  void insert_children(std::int32_t node, TokenSet& set) const {
    auto const [first, count] = children(node);
    for (auto i = first; i < first + count; ++i) set.insert(token(i));
  }

 private:
  struct Node {
    Token token = -1;
    std::uint32_t child = 0, children = 0, first_word = 0, words = 0;
  };
  Node const& at(std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }

  std::vector<std::int32_t> order_;  // of spellings, by their tokens
  std::vector<Node> nodes_;
  TokenSet separators_;
  bool separated_ = false;
};

}  // namespace sluice::inline v0::detail
