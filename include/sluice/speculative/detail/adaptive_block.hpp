// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chooses the number of guesses per round.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

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
    if (first) verified_ = now_right_ = 0;
    auto& one = found_[place(verified_)];
    one.tried = 0.9 * one.tried + 1, one.right = 0.9 * one.right + right;
    ++verified_, now_right_ += right;
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
  /// The guesses of the last round that were verified, one after the other, and how many of them were right.
  struct Round {
    std::int32_t verified = 0, right = 0;
  };
  Round round() const { return {verified_, now_right_}; }
  void begin_round() { verified_ = now_right_ = 0; }

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

  /// The same by what was measured: costs and rates as in Draft. Guesses after i right ones are believed to be right as often as
  /// those of this sentence were, or of others if this one has had few. No more guesses than it is known what they cost.
  SLUICE_LAZY std::int32_t best(std::int32_t most, std::span<double const> costs, std::span<double const> rates) const {
    auto best = 0;
    double best_rate = 1.01, tokens = 1, chance = 1;
    for (std::int32_t g = 1; g <= most; ++g) {
      auto const& one = found_[place(g - 1)];
      auto const i = (std::min)(static_cast<std::size_t>(g - 1), rates.size() - 1);
      tokens += chance *= (one.right + 4 * rates[i]) / (one.tried + 4);
      auto const cost = cost_of(spread_ * g, costs);
      if (cost < 0) continue;
      if (auto const rate = tokens / (1 + cost); rate > best_rate) best = g, best_rate = rate;
    }
    return best;
  }

 private:
  struct Found {
    double tried = 0, right = 0;
  };
  static std::size_t place(std::int32_t depth) { return static_cast<std::size_t>((std::min)(depth, 15)); }
  /// What so many guesses cost, between those that were measured; < 0: not known.
  SLUICE_LAZY static double cost_of(double guesses, std::span<double const> costs) {
    auto const last = static_cast<double>(costs.size());
    if (guesses > last) return costs.back() * guesses / last;
    auto const low = std::floor(guesses), part = guesses - low;
    auto const at = [&](double g) { return g < 1 ? 0.0 : costs[static_cast<std::size_t>(g) - 1]; };
    if (part == 0) return at(low);
    return at(low) < 0 || at(low + 1) < 0 ? -1.0 : at(low) + part * (at(low + 1) - at(low));
  }

  double right_ = 1, tried_ = 2;  // guesses; old ones decay
  double spread_ = 1;             // guesses per guess requested on one path; old ones decay
  double added_ = 0;
  std::array<Found, 16> found_{};  // [depth]: old ones decay
  std::int32_t resting_ = 0;       // rounds without guesses
  std::int32_t verified_ = 0, now_right_ = 0;
};

}  // namespace sluice::inline v0::detail
