// SPDX-License-Identifier: Apache-2.0
/// \file
/// The most frequent beginnings of some continuations, as a chain or a tree of guesses.
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

/// Guesses: tokens, the parent of each (-1: none), and how many of them are expected to be right.
struct PathGuesses {
  std::vector<Token> tokens{};
  std::vector<std::int32_t> parents{};
  double expected = 0;
  std::size_t witness = 0;  ///< a continuation that begins with the first path

  void clear() { tokens.clear(), parents.clear(), expected = 0, witness = 0; }
};

/// Orders the beginnings of continuations by how many begin so. Allocates nothing once warm.
class FrequentPaths {
 public:
  struct Bounds {
    std::int32_t depth = 0;  ///< guesses on a path
    std::int32_t nodes = 0;  ///< in all
    std::int32_t leaves = 1;
    double cost = 0;  ///< see TreeBudget
    double sure =
        1;  ///< how far what followed is trusted: a guess is expected to be right so often, for each guess up to it
    double least = 0;  ///< a path that fewer of the continuations take (as a fraction of them) is not followed
  };

  /// The best first: each guess is counted by the continuations that agree with it and with all before it. Among equally frequent
  /// ones the one whose parent came first, then the lower token. O(guesses * continuations * log).
  SLUICE_LAZY void find(std::span<std::span<Token const> const> continuations, Bounds const& bounds,
                        PathGuesses& made) {
    made.clear();
    order_.resize(continuations.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    waiting_.clear();
    budget_.reset(bounds.nodes, bounds.leaves, bounds.cost);
    auto const all = static_cast<double>(continuations.size());
    trust_.clear();
    auto trust = bounds.sure;
    for (std::int32_t depth = 0; depth < bounds.depth || depth == 0; ++depth, trust *= bounds.sure)
      trust_.push_back(trust);
    expand(continuations, {.first = 0, .last = order_.size(), .depth = 0, .parent = -1});
    auto first_path = std::int32_t{-1};  // the last guess of it
    while (!waiting_.empty()) {
      auto best = waiting_.begin();
      for (auto i = best; i != waiting_.end(); ++i)
        if (i->last - i->first > best->last - best->first) best = i;
      auto const now = *best;
      waiting_.erase(best);
      auto const chance = static_cast<double>(now.last - now.first) / all;
      if (chance < bounds.least) break;
      auto const right = chance * trust_[static_cast<std::size_t>(now.depth)];
      if (budget_.over(right) || !budget_.admit(now.parent, right)) continue;
      auto const number = static_cast<std::int32_t>(made.tokens.size());
      made.tokens.push_back(continuations[order_[now.first]][static_cast<std::size_t>(now.depth)]);
      made.parents.push_back(now.parent);
      made.expected += right;
      if (now.parent == first_path) first_path = number, made.witness = order_[now.first];
      if (now.depth + 1 < bounds.depth)
        expand(continuations, {.first = now.first, .last = now.last, .depth = now.depth + 1, .parent = number});
    }
  }

 private:
  /// Continuations order_[first] to order_[last - 1] agree in their first `depth` tokens, and in the one after them.
  struct Node {
    std::size_t first, last;
    std::int32_t depth, parent;
  };

  SLUICE_LAZY void expand(std::span<std::span<Token const> const> continuations, Node all) {
    auto const depth = static_cast<std::size_t>(all.depth);
    auto const token = [&](std::size_t i) {
      auto const& one = continuations[order_[i]];
      return depth < one.size() ? one[depth] : Token{-1};
    };
    auto same = true;
    for (auto i = all.first + 1; same && i < all.last; ++i) same = token(i) == token(all.first);
    if (!same)
      std::sort(order_.begin() + static_cast<std::ptrdiff_t>(all.first),
                order_.begin() + static_cast<std::ptrdiff_t>(all.last), [&](std::size_t a, std::size_t b) {
                  auto const x = depth < continuations[a].size() ? continuations[a][depth] : Token{-1};
                  auto const y = depth < continuations[b].size() ? continuations[b][depth] : Token{-1};
                  return x != y ? x < y : a < b;
                });
    for (auto i = all.first; i < all.last;) {
      auto end = i + 1;
      while (end < all.last && token(end) == token(i)) ++end;
      if (token(i) >= 0) waiting_.push_back({i, end, all.depth, all.parent});
      i = end;
    }
  }

  TreeBudget budget_;
  std::vector<std::size_t> order_;
  std::vector<Node> waiting_;
  std::vector<double> trust_;  // [depth]: how far a guess there is trusted
};

}  // namespace sluice::inline v0::detail
