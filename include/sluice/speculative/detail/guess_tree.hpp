// SPDX-License-Identifier: Apache-2.0
/// \file
/// The valid guesses of a round as a tree in preorder.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/tree_budget.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Node 0 is the last chosen token; the others are guesses, in preorder: a node's first child directly follows it.
/// Guesses are untrusted input: invalid ones are left out, along with all that follow them. Equal siblings are merged.
/// Allocates nothing once warm.
class GuessTree {
 public:
  struct Bounds {
    std::int32_t depth;   ///< guesses on a path
    std::int32_t nodes;   ///< in total
    std::int32_t leaves;  ///< paths
    std::int32_t vocabulary;
  };

  /// \param parents  as DraftTree::parents
  SLUICE_LAZY void build(std::span<Token const> tokens, std::span<std::int32_t const> parents, Bounds const& bounds) {
    raw_.assign(tokens.size(), {});
    links_.assign(1, {});
    budget_.reset(bounds.nodes, bounds.leaves);
    for (std::size_t i = 0; i < tokens.size() && static_cast<std::int32_t>(i) < bounds.nodes; ++i) {
      auto const behind = i < parents.size() ? parents[i] : static_cast<std::int32_t>(i) - 1;
      if (behind < -1 || behind >= static_cast<std::int32_t>(i)) continue;
      auto const parent = behind < 0 ? Raw{.node = 0} : raw_[index(behind)];
      if (parent.node < 0) continue;
      auto const depth = links_[index(parent.node)].depth + 1;
      if (depth > bounds.depth || tokens[i] < 0 || tokens[i] >= bounds.vocabulary) continue;
      if (!budget_.admit(parent.number)) continue;
      raw_[i] = {child(parent.node, tokens[i], depth), parent.node, budget_.size() - 1};
    }
    arrange();
    for (auto& raw : raw_)
      if (raw.node >= 0) raw.node = order_[index(raw.node)], raw.parent = order_[index(raw.parent)];
  }

  std::size_t size() const { return nodes_.size(); }  ///< node 0 included
  Token token(std::size_t node) const { return nodes_[node].token; }
  std::int32_t depth(std::size_t node) const { return nodes_[node].depth; }  ///< 0 for node 0
  std::size_t parent(std::size_t node) const { return index(nodes_[node].parent); }
  SLUICE_LAZY bool leaf(std::size_t node) const { return kids(node).empty(); }
  std::size_t leaves() const { return leaves_; }
  bool chain() const { return leaves_ <= 1; }
  /// The number of guesses on the first path.
  std::size_t first_path() const { return first_path_; }

  /// A node's children, and their tokens, in the order in which they were guessed.
  SLUICE_LAZY std::span<std::int32_t const> kids(std::size_t node) const {
    return std::span(kids_).subspan(nodes_[node].first, nodes_[node].count);
  }
  SLUICE_LAZY std::span<Token const> kid_tokens(std::size_t node) const {
    return std::span(kid_tokens_).subspan(nodes_[node].first, nodes_[node].count);
  }
  /// The guesses that follow a node, in order; equal guesses are listed separately. node_of() gives a guess's node.
  SLUICE_LAZY void draws(std::size_t node, std::vector<std::int32_t>& guesses) const {
    guesses.clear();
    for (std::size_t i = 0; i < raw_.size(); ++i)
      if (raw_[i].node >= 0 && index(raw_[i].parent) == node) guesses.push_back(static_cast<std::int32_t>(i));
  }
  std::size_t node_of(std::int32_t guess) const { return index(raw_[index(guess)].node); }

 private:
  struct Raw {
    std::int32_t node = -1, parent = -1, number = -1;  // number: among the guesses taken
  };
  struct Link {
    Token token = 0;
    std::int32_t depth = 0, child = -1, last = -1, sibling = -1;
  };
  struct Node {
    Token token;
    std::int32_t depth, parent;
    std::size_t first, count;  // its children
  };
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  /// The child with that token; adds it if there is none.
  SLUICE_LAZY std::int32_t child(std::int32_t parent, Token token, std::int32_t depth) {
    for (auto i = links_[index(parent)].child; i >= 0; i = links_[index(i)].sibling)
      if (links_[index(i)].token == token) return i;
    auto const made = static_cast<std::int32_t>(links_.size());
    links_.push_back({.token = token, .depth = depth});
    auto& above = links_[index(parent)];
    (above.last < 0 ? above.child : links_[index(above.last)].sibling) = made;
    above.last = made;
    return made;
  }

  /// Copies links_ to nodes_ in preorder.
  SLUICE_LAZY void arrange() {
    nodes_.clear(), kids_.clear(), kid_tokens_.clear(), stack_.assign(1, {0, -1});
    order_.resize(links_.size());
    leaves_ = 0;
    while (!stack_.empty()) {
      auto const [link, parent] = stack_.back();
      stack_.pop_back();
      auto const& one = links_[index(link)];
      auto const node = static_cast<std::int32_t>(nodes_.size());
      order_[index(link)] = node;
      auto const first = stack_.size();
      for (auto i = one.child; i >= 0; i = links_[index(i)].sibling) stack_.push_back({i, node});
      std::reverse(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
      auto const count = stack_.size() - first;
      nodes_.push_back({one.token, one.depth, parent, kids_.size(), count});
      for (auto i = one.child; i >= 0; i = links_[index(i)].sibling)
        kids_.push_back(i), kid_tokens_.push_back(links_[index(i)].token);
      leaves_ += count == 0;
    }
    for (auto& kid : kids_) kid = order_[index(kid)];
    first_path_ = 0;
    while (!leaf(first_path_)) ++first_path_;
  }

  struct Waiting {
    std::int32_t link, parent;
  };
  TreeBudget budget_;
  std::vector<Raw> raw_;     // [guess]
  std::vector<Link> links_;  // in the order in which they were guessed
  std::vector<Node> nodes_;
  std::vector<std::int32_t> order_, kids_;
  std::vector<Token> kid_tokens_;
  std::vector<Waiting> stack_;
  std::size_t leaves_ = 0, first_path_ = 0;
};

}  // namespace sluice::inline v0::detail
