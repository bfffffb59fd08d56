// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which guesses may join a tree of them.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

/// What a tree of guesses has taken of what it may hold: guesses, paths and, where a guess costs something, those that are
/// worth it. For who guesses (DraftTree says what the search takes) and for the search, which trusts nobody. Allocates nothing
/// once warm.
template <class = void>
class LazyTreeBudget {
 public:
  /// An empty tree. \param cost  of a guess, as a part of a step; 0: every guess is worth it
  void reset(std::int32_t nodes, std::int32_t leaves, double cost = 0) {
    nodes_ = nodes, leaves_ = leaves, cost_ = cost;
    children_.assign(1, 0), paths_ = 0, expected_ = 1;
  }

  std::int32_t size() const { return static_cast<std::int32_t>(children_.size()) - 1; }  ///< guesses so far

  /// Whether none may join that is as often right as `chance` or less often: the tree is full, or a step that is longer by one
  /// guess would bring fewer tokens in its time.
  bool over(double chance = 1) const {
    return size() >= nodes_ || (cost_ > 0 && chance < cost_ * expected_ / (1 + cost_ * size()));
  }

  /// Takes a guess that is right, with all before it, as often as `chance`, if it may join; then it is number size() - 1.
  /// \param parent  the number of the guess that it follows; -1: none. A second one behind the same parent is one path more
  bool admit(std::int32_t parent, double chance = 1) {
    auto& siblings = children_[static_cast<std::size_t>(std::int64_t{parent} + 1)];
    auto const opens = siblings > 0 || paths_ == 0;
    if (over(chance) || (opens && paths_ >= leaves_)) return false;
    paths_ += opens, ++siblings, expected_ += chance;
    children_.push_back(0);
    return true;
  }

 private:
  std::int32_t nodes_ = 0, leaves_ = 1, paths_ = 0;
  double cost_ = 0, expected_ = 1;         // tokens that a round brings
  std::vector<std::int32_t> children_{0};  // [guess + 1]
};
using TreeBudget = LazyTreeBudget<>;

}  // namespace sluice::inline v0::detail
