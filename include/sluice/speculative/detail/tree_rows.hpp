// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rows that verify a tree of guesses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/plan.hpp>
#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/guess_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// One row with depths where the model takes trees or the tree is a chain; otherwise a row for each path. The first
/// path continues in slot 0; the others are forks of it, and each asks only for lines that no earlier row asks for.
/// Whichever path is accepted, slot 0 holds the tokens chosen so far and the first path.
class TreeRows {
 public:
  /// The form of the rows.
  struct Shape {
    bool trees = false;  ///< one row may branch
    bool alike = false;  ///< all rows must have the same number of tokens: shorter ones are padded
  };

  /// The number of tokens in all rows, and in the longest.
  SLUICE_LAZY static std::size_t tokens(GuessTree const& tree, std::size_t pending, Shape shape) {
    if (shape.trees || tree.chain()) return pending + tree.size() - 1;
    if (shape.alike) return tree.leaves() * longest(tree, pending, shape);
    std::size_t sum = 0;
    for (std::size_t node = 0; node < tree.size(); ++node)
      if (tree.leaf(node)) sum += pending + static_cast<std::size_t>(tree.depth(node));
    return sum;
  }
  SLUICE_LAZY static std::size_t longest(GuessTree const& tree, std::size_t pending, Shape shape) {
    if (shape.trees || tree.chain()) return pending + tree.size() - 1;
    std::int32_t most = 0;
    for (std::size_t node = 0; node < tree.size(); ++node) most = (std::max)(most, tree.depth(node));
    return pending + static_cast<std::size_t>(most);
  }

  /// Plans the rows: they continue from the first `held` tokens of slot 0 with `pending` and then the guesses of the
  /// tree. `query(node)` returns a node's query.
  template <class F>
  void plan(Plan& plan, GuessTree const& tree, std::int32_t held, std::span<Token const> pending, Shape shape,
            F&& query) {
    tokens_.clear(), depths_.clear(), lines_.clear(), places_.clear();
    tokens_.reserve(tokens(tree, pending.size(), shape));  // spans must stay valid
    if (shape.trees || tree.chain()) {
      tokens_.assign(pending.begin(), pending.end());
      for (std::size_t node = 1; node < tree.size(); ++node) tokens_.push_back(tree.token(node));
      plan.row(0, 0, held, tokens_, static_cast<std::int32_t>(tree.size()));
      if (!tree.chain()) plan.branch(depths(tree, pending.size()));
      for (std::size_t node = 0; node < tree.size(); ++node)
        plan.ask(query(node)), lines_.push_back(node), places_.push_back({0, static_cast<std::int32_t>(node)});
      return;
    }
    auto const most = longest(tree, pending.size(), shape);
    Slot slot = 0;
    std::size_t line = 0;
    for (std::size_t begin = 0, leaf = 0; leaf < tree.size(); ++leaf) {
      if (!tree.leaf(leaf)) continue;
      auto const first = tokens_.size();
      tokens_.insert(tokens_.end(), pending.begin(), pending.end());
      path_.clear();
      for (auto node = leaf; node != 0; node = tree.parent(node)) path_.push_back(tree.token(node));
      tokens_.insert(tokens_.end(), path_.rbegin(), path_.rend());
      auto const fill = shape.alike ? first + most - tokens_.size() : 0;
      tokens_.insert(tokens_.end(), fill, tokens_.back());
      auto const asked = leaf + 1 - begin;
      plan.row(0, slot, held, std::span<Token const>(tokens_).subspan(first), static_cast<std::int32_t>(asked + fill));
      for (std::int32_t i = 0; begin <= leaf; ++begin, ++i)
        plan.ask(query(begin)), lines_.push_back(line++), places_.push_back({slot, i});
      for (std::size_t i = 0; i < fill; ++i, ++line) plan.ask({.best = 0, .normalise = false});
      ++slot;
    }
  }

  struct Place {
    Slot slot = -1;  // -1: none
    std::int32_t line = 0;
  };
  /// The answer's line for a node, and the row and line of the row that it comes from.
  std::size_t line(std::size_t node) const { return lines_[node]; }
  Place place(std::size_t node) const { return places_[node]; }

 private:
  SLUICE_LAZY std::span<std::int32_t const> depths(GuessTree const& tree, std::size_t pending) {
    for (std::size_t i = 0; i < pending; ++i) depths_.push_back(static_cast<std::int32_t>(i));
    for (std::size_t node = 1; node < tree.size(); ++node)
      depths_.push_back(static_cast<std::int32_t>(pending) - 1 + tree.depth(node));
    return depths_;
  }

  std::vector<Token> tokens_, path_;
  std::vector<std::int32_t> depths_;
  std::vector<std::size_t> lines_;  // [node]
  std::vector<Place> places_;       // [node]
};

}  // namespace sluice::inline v0::detail
