// SPDX-License-Identifier: Apache-2.0
/// \file
/// A tree of the prefixes that a beam over frames holds or has held.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Each sequence of tokens is one node, however often the beam comes to it, so that equal prefixes are found by comparing numbers.
/// Nodes that are no longer needed are dropped by collect(). Nothing is allocated once warm.
class PrefixTree {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0, none = -1;

  SLUICE_LAZY void clear() {
    nodes_.assign(1, {});
    cells_.assign((std::max)(cells_.size(), std::size_t{1024}), none);
    limit_ = least;
  }

  Token token(Node node) const { return at(node).token; }         ///< the last token; -1 for the root
  Node parent(Node node) const { return at(node).parent; }        ///< none for the root
  std::int32_t depth(Node node) const { return at(node).depth; }  ///< tokens
  std::int32_t place(Node node) const { return at(node).place; }  ///< in the beam; -1: not in it
  void put(Node node, std::int32_t place) { nodes_[static_cast<std::size_t>(node)].place = place; }

  /// The node one token further, which is made if there is none.
  SLUICE_LAZY Node child(Node parent, Token token) {
    auto cell = hash(parent, token);
    for (; cells_[cell] != none; cell = (cell + 1) & (cells_.size() - 1)) {
      auto const& found = at(cells_[cell]);
      if (found.parent == parent && found.token == token) return cells_[cell];
    }
    auto const made = static_cast<Node>(nodes_.size());
    nodes_.push_back({parent, token, depth(parent) + 1, -1});
    cells_[cell] = made;
    if (nodes_.size() * 2 > cells_.size()) fill(cells_.size() * 2);
    return made;
  }

  /// Whether it is time for collect().
  bool full() const { return nodes_.size() > limit_; }
  /// Drops all nodes but those of `kept` and their ancestors, and renumbers `kept`. O(nodes).
  SLUICE_LAZY void collect(std::span<Node> kept) {
    moved_.assign(nodes_.size(), none);
    moved_[root] = root;
    for (auto const node : kept) moved_[static_cast<std::size_t>(node)] = root;  // to be kept
    for (auto i = nodes_.size(); i-- > 1;)  // a parent has a lower number than its children
      if (moved_[i] != none) moved_[static_cast<std::size_t>(nodes_[i].parent)] = root;
    std::size_t count = 1;
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      if (moved_[i] == none) continue;
      moved_[i] = static_cast<Node>(count);
      auto node = nodes_[i];
      node.parent = moved_[static_cast<std::size_t>(node.parent)];
      nodes_[count++] = node;
    }
    nodes_.resize(count);
    for (auto& node : kept) node = moved_[static_cast<std::size_t>(node)];
    fill(cells_.size());
    limit_ = (std::max)(least, 2 * count);
  }

  /// The tokens of a prefix.
  SLUICE_LAZY void spell(Node node, std::vector<Token>& tokens) const {
    tokens.resize(static_cast<std::size_t>(depth(node)));
    for (auto i = tokens.size(); i-- > 0; node = parent(node)) tokens[i] = token(node);
  }
  /// The longest prefix of both.
  SLUICE_LAZY Node common(Node a, Node b) const {
    while (a != b) {
      if (depth(a) < depth(b)) b = parent(b);
      else a = parent(a);
    }
    return a;
  }

 private:
  static constexpr std::size_t least = 4096;
  struct Held {
    Node parent = none;
    Token token = -1;
    std::int32_t depth = 0, place = -1;
  };

  Held const& at(Node node) const { return nodes_[static_cast<std::size_t>(node)]; }
  std::size_t hash(Node parent, Token token) const {
    auto const key = std::uint64_t{static_cast<std::uint32_t>(parent)} << 32 | static_cast<std::uint32_t>(token);
    auto const mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
    return detail::cast<std::size_t>(mixed >> 20) & (cells_.size() - 1);
  }
  SLUICE_LAZY void fill(std::size_t size) {
    cells_.assign(size, none);
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      auto cell = hash(nodes_[i].parent, nodes_[i].token);
      while (cells_[cell] != none) cell = (cell + 1) & (size - 1);
      cells_[cell] = static_cast<Node>(i);
    }
  }

  std::vector<Held> nodes_;
  std::vector<Node> cells_;  // open addressing; a power of two of them
  std::vector<Node> moved_;  // scratch
  std::size_t limit_ = least;
};

}  // namespace sluice::inline v0::detail
