// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shape of a tree of guesses: which of the best guesses for each place are nodes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/tree_budget.hpp>
#include <sluice/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A tree over guesses that are made independently for each place, as Medusa heads make them. A node is the rank-th
/// best guess for its place (its depth), whatever it follows. Nodes are in order of worth: the first n nodes form a
/// tree too.
struct TreeShape {
  /// One guess of the tree.
  struct Node {
    std::int32_t parent;  ///< a node before it; -1: the root
    std::int32_t depth;   ///< 0: the first place
    std::int32_t rank;    ///< 0: the best
    friend bool operator==(Node const&, Node const&) = default;
  };
  std::vector<Node> nodes{};

  /// The tree of all `paths`. Each path lists the ranks of its guesses from the first place on, as in Medusa's
  /// `medusa_choices`; prefixes of a path need not be listed.
  /// \throws std::invalid_argument  for a negative rank
  template <class = void>
  static TreeShape of(std::vector<std::vector<std::int32_t>> const& paths);

  /// `widths[i]` guesses behind each node at place i - 1: {4, 2, 1} has 4 + 8 + 8 nodes.
  /// \throws std::invalid_argument  for a width below 1
  template <class = void>
  static TreeShape full(std::span<std::int32_t const> widths);

  /// The `nodes` nodes that are most often right, by Medusa's greedy construction (Cai et al. 2024, section 2.3.3). It
  /// takes the probability that a path is right to be the product of its guesses' accuracies.
  /// \param accuracy  [place][rank]: how often that guess is right; a list ends where nothing is known
  /// \param leaves    the most paths
  /// \throws std::invalid_argument  for a number outside [0, 1]
  template <class = void>
  static TreeShape learn(std::span<std::vector<double> const> accuracy, std::int32_t nodes, std::int32_t leaves);

  template <class = void>
  std::int32_t leaves() const {
    std::vector<bool> inner(nodes.size());
    for (auto const& node : nodes)
      if (node.parent >= 0) inner[static_cast<std::size_t>(node.parent)] = true;
    return static_cast<std::int32_t>(std::count(inner.begin(), inner.end(), false));
  }
  std::int32_t depth() const {
    std::int32_t most = 0;
    for (auto const& node : nodes) most = (std::max)(most, node.depth + 1);
    return most;
  }
};

namespace detail {

/// Grows a tree best first: adds the node with the most probable path among those whose parent and better siblings are
/// in it.
class TreeGrowth {
 public:
  struct Bounds {
    std::int32_t depth = 0, nodes = 0, leaves = 1;
    double cost = 0;  ///< cost of a node, as a share of a step; > 0: stops when the next node is not worth it
  };

  /// \param log_prob  log_prob(depth, rank), at most 0; < -1e30 if there is no such guess
  template <class F>
  std::vector<TreeShape::Node> const& grow(Bounds const& bounds, F&& log_prob) {
    nodes_.clear(), heap_.clear();
    budget_.reset(bounds.nodes, bounds.leaves, bounds.cost);
    auto const add = [&](std::int32_t parent, std::int32_t depth, std::int32_t rank, double before) {
      if (depth >= bounds.depth) return;
      auto const own = static_cast<double>(log_prob(depth, rank));
      if (!(own > -1e30)) return;
      heap_.push_back({before + own, before, {parent, depth, rank}});
      std::ranges::push_heap(heap_, worse<>);
    };
    add(-1, 0, 0, 0);
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, worse<>);
      auto const [path, before, node] = heap_.back();
      heap_.pop_back();
      auto const chance = std::exp(path);
      if (budget_.over(chance)) break;
      if (!budget_.admit(node.parent, chance)) continue;
      nodes_.push_back(node);
      add(node.parent, node.depth, node.rank + 1, before);
      add(static_cast<std::int32_t>(nodes_.size()) - 1, node.depth + 1, 0, path);
    }
    return nodes_;
  }

 private:
  struct Waiting {
    double path, before;  // log-probability with it, and without it
    TreeShape::Node node;
  };
  template <class = void>
  static bool worse(Waiting const& a, Waiting const& b) {
    if (a.path != b.path) return a.path < b.path;
    return std::pair(a.node.depth, a.node.rank) > std::pair(b.node.depth, b.node.rank);
  }
  std::vector<Waiting> heap_;
  std::vector<TreeShape::Node> nodes_;
  TreeBudget budget_;
};

}  // namespace detail

template <class Void>
TreeShape TreeShape::of(std::vector<std::vector<std::int32_t>> const& paths) {
  TreeShape shape;
  for (auto const& path : paths) {
    std::int32_t parent = -1;
    for (std::size_t i = 0; i < path.size(); ++i) {
      require(path[i] >= 0, "TreeShape: rank", path[i], "must not be negative");
      Node const node{parent, static_cast<std::int32_t>(i), path[i]};
      auto const found = std::find(shape.nodes.begin(), shape.nodes.end(), node);
      parent = static_cast<std::int32_t>(found - shape.nodes.begin());
      if (found == shape.nodes.end()) shape.nodes.push_back(node);
    }
  }
  return shape;
}

template <class Void>
TreeShape TreeShape::full(std::span<std::int32_t const> widths) {
  TreeShape shape;
  std::size_t begin = 0, end = 0;
  for (std::size_t depth = 0; depth < widths.size(); ++depth) {
    require(widths[depth] >= 1, "TreeShape: width", widths[depth], "must be at least 1");
    auto const add = [&](std::int32_t parent) {
      for (std::int32_t rank = 0; rank < widths[depth]; ++rank)
        shape.nodes.push_back({parent, static_cast<std::int32_t>(depth), rank});
    };
    if (depth == 0) add(-1);
    for (auto parent = begin; parent < end; ++parent) add(static_cast<std::int32_t>(parent));
    begin = end, end = shape.nodes.size();
  }
  return shape;
}

template <class Void>
TreeShape TreeShape::learn(std::span<std::vector<double> const> accuracy, std::int32_t nodes, std::int32_t leaves) {
  for (auto const& place : accuracy)
    for (auto const x : place) require(x >= 0 && x <= 1, "TreeShape: accuracy", x, "must be in [0, 1]");
  detail::TreeGrowth growth;
  return {growth.grow({static_cast<std::int32_t>(accuracy.size()), nodes, leaves, 0},
                      [&](std::int32_t depth, std::int32_t rank) {
                        auto const& place = accuracy[static_cast<std::size_t>(depth)];
                        auto const i = static_cast<std::size_t>(rank);
                        return i < place.size() && place[i] > 0 ? std::log(place[i]) : -1e31;
                      })};
}

}  // namespace sluice::inline v0
