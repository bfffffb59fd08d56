// SPDX-License-Identifier: Apache-2.0
/// \file
/// The budget of a tree of guesses.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

/// Counts what a tree of guesses holds against its limits: guesses, paths and, if a guess has a cost, whether it pays. Used by
/// models that guess (DraftTree has the limits) and by the search, which checks the limits again. No allocation once warm.
class TreeBudget {
 public:
  /// An empty tree. \param cost  of a guess, as a fraction of a step; 0: every guess pays
  SLUICE_LAZY void reset(std::int32_t nodes, std::int32_t leaves, double cost = 0) {
    nodes_ = nodes, leaves_ = leaves, cost_ = cost;
    children_.assign(1, 0), paths_ = 0, expected_ = 1;
  }

  std::int32_t size() const { return static_cast<std::int32_t>(children_.size()) - 1; }  ///< guesses so far

  /// Whether no guess that is right with probability `chance` or less may join: the tree is full, or one more guess would lower
  /// the tokens per time.
  bool over(double chance = 1) const {
    return size() >= nodes_ || (cost_ > 0 && chance < cost_ * expected_ / (1 + cost_ * size()));
  }

  /// Adds a guess if it may join; it is then number size() - 1.
  /// \param parent  the number of its parent; -1: none. A second child of the same parent is one more path
  /// \param chance  the probability that it and all its ancestors are right
  SLUICE_LAZY bool admit(std::int32_t parent, double chance = 1) {
    auto& siblings = children_[static_cast<std::size_t>(std::int64_t{parent} + 1)];
    auto const opens = siblings > 0 || paths_ == 0;
    if (over(chance) || (opens && paths_ >= leaves_)) return false;
    paths_ += opens, ++siblings, expected_ += chance;
    children_.push_back(0);
    return true;
  }

 private:
  std::int32_t nodes_ = 0, leaves_ = 1, paths_ = 0;
  double cost_ = 0, expected_ = 1;         // expected_: tokens that a round yields
  std::vector<std::int32_t> children_{0};  // [guess + 1]
};

}  // namespace sluice::inline v0::detail
