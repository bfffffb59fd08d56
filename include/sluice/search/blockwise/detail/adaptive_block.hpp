// SPDX-License-Identifier: Apache-2.0
/// \file
/// How many guesses pay.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::detail {

/// What the rounds of one sentence have shown of its guesses, and how many the next round should ask for. What is long past is
/// forgotten, by a tenth a round.
class AdaptiveBlock {
 public:
  void reset() { *this = {}; }

  /// What a guess for each sentence, made and verified, adds to a step, as a part of it.
  void set_cost(double added) { added_ = added; }
  double cost() const { return added_; }

  /// A guess was looked at; `first`: of its round.
  void count(bool right, bool first) {
    auto const left = first ? 0.9 : 1.0;
    tried_ = left * tried_ + 1, right_ = left * right_ + right;
  }
  /// So many guesses came where `wanted` in a row were asked for: more where they branch.
  void count_guesses(std::size_t guesses, std::int32_t wanted) {
    spread_ = 0.8 * spread_ + 0.2 * static_cast<double>(guesses) / wanted;
  }
  /// A round asks for so many.
  void ask(std::int32_t count) { resting_ = count == 0 ? resting_ + 1 : 0; }

  /// Guesses looked at, and those of them that were right.
  double tried() const { return tried_; }
  double right() const { return right_; }

  /// The guesses in a row, of at most `most`, that bring most tokens for the time. O(most).
  std::int32_t best(std::int32_t most) const {
    if (most == 0) return 0;
    // With a guess right at each place with probability p: tokens a round over time a round.
    auto const p = right_ / tried_;
    auto best = 0;
    double best_rate = 1, tokens = 1, chance = 1;
    for (std::int32_t g = 1; g <= most; ++g) {
      tokens += chance *= p;
      if (auto const rate = tokens / (1 + added_ * spread_ * g); rate > best_rate) best = g, best_rate = rate;
    }
    return best == 0 && resting_ >= 64 ? 1 : best;  // now and then: guesses may have become better
  }

 private:
  double right_ = 1, tried_ = 2;  // guesses, by and by forgotten
  double spread_ = 1;             // guesses made for each wanted in a row, by and by forgotten
  double added_ = 0;
  std::int32_t resting_ = 0;  // rounds without guesses
};

}  // namespace sluice::inline v0::detail
