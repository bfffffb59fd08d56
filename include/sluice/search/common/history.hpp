// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a beam's hypotheses as a tree.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0 {

/// A tree of tokens in an arena. Hypotheses share prefixes, so a fork costs one node. Nodes stay until clear(). The
/// root is the end of the forced prefix; the prefix's tokens count in lengths but are not stored.
class History {
 public:
  using Node = std::int32_t;
  static constexpr Node root = -1;

  /// \param root_length  number of tokens before the first node
  template <class = void>
  void clear(std::int32_t root_length = 0) {
    entries_.clear(), root_length_ = root_length;
  }

  /// Appends a token to the hypothesis `parent`.
  template <class = void>
  Node add(Node parent, Token token, float log_prob) {
    entries_.push_back({parent, length(parent) + 1, token, log_prob});
    return static_cast<Node>(entries_.size()) - 1;
  }
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }  ///< nodes: 0 .. size() - 1
  std::int32_t length(Node node) const { return node == root ? root_length_ : at(node).length; }
  Token token(Node node) const { return at(node).token; }
  Node parent(Node node) const { return at(node).parent; }

  /// The longest common prefix of all `nodes`, which it overwrites; the root if there are none. A parent has a lower
  /// number than its children, so the node with the highest number cannot be an ancestor of the others.
  template <class = void>
  Node common(std::vector<Node>& nodes) const {
    if (nodes.empty()) return root;
    for (;;) {
      auto const highest = *std::max_element(nodes.begin(), nodes.end());
      auto const lowest = *std::min_element(nodes.begin(), nodes.end());
      if (highest == lowest) return lowest;
      std::replace(nodes.begin(), nodes.end(), highest, at(highest).parent);
    }
  }

  /// Writes the tokens of a hypothesis, starting at the root.
  template <class = void>
  void write(Node node, std::vector<Token>& tokens) const {
    auto n = depth(node);
    tokens.resize(n);
    for (; node != root; node = at(node).parent) tokens[--n] = at(node).token;
  }

  /// Writes tokens and log_probs of a hypothesis, starting at the root.
  template <class = void>
  void write(Node node, Hypothesis& out) const {
    auto n = depth(node);
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
  std::size_t depth(Node node) const { return static_cast<std::size_t>(length(node) - root_length_); }
  std::vector<Entry> entries_;
  std::int32_t root_length_ = 0;
};

}  // namespace sluice::inline v0
