// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chooses the number of guesses per round.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::detail {

/// Statistics of one sentence's guesses, and the number of guesses to request in the next round. Old rounds decay by a
/// tenth per round.
class AdaptiveBlock {
 public:
  void reset() { *this = {}; }

  /// Sets the cost of drafting and verifying one guess per sentence, as a fraction of a step.
  void set_cost(double added) { added_ = added; }
  double cost() const { return added_; }

  /// Counts a verified guess; `first`: the first of its round.
  void count(bool right, bool first) {
    auto const left = first ? 0.9 : 1.0;
    tried_ = left * tried_ + 1, right_ = left * right_ + right;
  }
  /// Counts the guesses that came when `wanted` on one path were requested: more than that in a tree.
  void count_guesses(std::size_t guesses, std::int32_t wanted) {
    spread_ = 0.8 * spread_ + 0.2 * static_cast<double>(guesses) / wanted;
  }
  /// Counts a round that requests `count` guesses.
  void ask(std::int32_t count) { resting_ = count == 0 ? resting_ + 1 : 0; }

  /// Guesses verified, and how many of them were right.
  double tried() const { return tried_; }
  double right() const { return right_; }

  /// The number of guesses on one path, at most `most`, with the highest rate of tokens. O(most).
  std::int32_t best(std::int32_t most) const {
    if (most == 0) return 0;
    // With each guess right with probability p: the tokens of a round divided by its time.
    auto const p = right_ / tried_;
    auto best = 0;
    double best_rate = 1, tokens = 1, chance = 1;
    for (std::int32_t g = 1; g <= most; ++g) {
      tokens += chance *= p;
      if (auto const rate = tokens / (1 + added_ * spread_ * g); rate > best_rate) best = g, best_rate = rate;
    }
    return best == 0 && resting_ >= 64 ? 1 : best;  // retry now and then: guesses may have become better
  }

 private:
  double right_ = 1, tried_ = 2;  // guesses; old ones decay
  double spread_ = 1;             // guesses per guess requested on one path; old ones decay
  double added_ = 0;
  std::int32_t resting_ = 0;  // rounds without guesses
};

}  // namespace sluice::inline v0::detail
