// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a beam's hypotheses, as a tree.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0 {

/// A tree of tokens in an arena: hypotheses share their beginnings, so that a fork costs one node. Nodes stay until
/// clear().
class History {
 public:
  using Node = std::int32_t;
  static constexpr Node root = -1;

  void clear() { entries_.clear(); }

  /// The hypothesis `parent` with one token more.
  Node add(Node parent, Token token, float log_prob) {
    entries_.push_back({parent, length(parent) + 1, token, log_prob});
    return static_cast<Node>(entries_.size()) - 1;
  }
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }  ///< nodes: 0 .. size() - 1
  std::int32_t length(Node node) const { return node == root ? 0 : at(node).length; }
  Token token(Node node) const { return at(node).token; }
  Node parent(Node node) const { return at(node).parent; }

  /// The longest beginning that all of `nodes` share; changes them on the way. Root for none. A parent has a lower number
  /// than its children, so whoever has the highest cannot be an ancestor of the others.
  Node common(std::vector<Node>& nodes) const {
    if (nodes.empty()) return root;
    for (;;) {
      auto const highest = *std::ranges::max_element(nodes);
      auto const lowest = *std::ranges::min_element(nodes);
      if (highest == lowest) return lowest;
      std::ranges::replace(nodes, highest, at(highest).parent);
    }
  }

  /// Writes the tokens of a hypothesis.
  void write(Node node, std::vector<Token>& tokens) const {
    auto n = static_cast<std::size_t>(length(node));
    tokens.resize(n);
    for (; node != root; node = at(node).parent) tokens[--n] = at(node).token;
  }

  /// Writes tokens and log_probs of a hypothesis.
  void write(Node node, Hypothesis& out) const {
    auto n = static_cast<std::size_t>(length(node));
    out.tokens.resize(n), out.log_probs.resize(n);
    for (; node != root; node = at(node).parent) {
      --n;
      out.tokens[n] = at(node).token, out.log_probs[n] = at(node).log_prob;
    }
  }

 private:
  struct Entry {
    Node parent;
    std::int32_t length;
    Token token;
    float log_prob;
  };
  Entry const& at(Node node) const { return entries_[static_cast<std::size_t>(node)]; }
  std::vector<Entry> entries_;
};

}  // namespace sluice::inline v0
