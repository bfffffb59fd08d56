// SPDX-License-Identifier: Apache-2.0
/// \file
/// One pass over a line of scores, chunk by chunk: maximum, sum of exponentials, the k best.
#pragma once

#include <sluice/output/line/best_scores.hpp>
#include <sluice/output/simd/exponential.hpp>
#include <sluice/output/simd/simd.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The online softmax (Milakov and Gimelshein 2018) with a selection that looks at a score only where it may matter: of
/// every chunk of 1,024 scores, lane l is the 16 scores at places l, l + 64, l + 128 and so on, of which the pass takes the
/// maximum. Blocks of some chunks whose maxima do not exceed the bar, a lower bound of the k-th best so far, are
/// done. Of another, the bar is raised to what k of its lanes reach before anything is picked out. So at most 16 scores for
/// each of some k lanes are picked from a block, whatever their order, and few where the order is random.
///
/// What comes out depends on the scores and k alone, bit for bit: not on how the line was cut into blocks.
class LineScan {
 public:
  static constexpr std::size_t lanes = 64, depth = 16, chunk = lanes * depth, block = 32 * chunk;
  static constexpr float lowest = -std::numeric_limits<float>::infinity();

  /// A new line, of which the k best are wanted, and perhaps the sum of exponentials.
  void begin(std::size_t k, bool sum) {
    best_.begin(std::max<std::size_t>(k, 1));
    k_ = k, sum_wanted_ = sum;
    maximum_ = lowest, sum_ = 0, valid_ = true;
  }

  /// The scores at places first .. first + count - 1, in ascending order of calls; count is a multiple of `chunk`, at most
  /// `block`. What lies behind the line's end must be `lowest`.
  void add(std::size_t first, float const* data, std::size_t count) {
    alignas(64) float maxima[block / depth];
    float tops[block / chunk];
    auto higher = false;
    for (std::size_t c = 0; c < count / chunk; ++c) {
      tops[c] = lane_maxima(data + c * chunk, maxima + c * lanes);
      if (sum_wanted_ && tops[c] > lowest && valid_) add_sum(data + c * chunk, tops[c]);
      maximum_ = std::max(maximum_, tops[c]);
      higher = higher || tops[c] > best_.bar();
    }
    if (higher && k_ > 0) collect(first, data, {maxima, count / depth}, tops);
  }

  /// The whole line at once; it may lie anywhere.
  void run(std::span<float const> line) {
    auto const whole = line.size() / chunk * chunk;
    for (std::size_t first = 0; first < whole; first += block)
      add(first, line.data() + first, std::min(block, whole - first));
    if (whole < line.size()) {
      alignas(64) std::array<float, chunk> tail;
      std::fill(std::copy(line.begin() + static_cast<std::ptrdiff_t>(whole), line.end(), tail.begin()), tail.end(),
                lowest);
      add(whole, tail.data(), chunk);
    }
  }

  /// After the last chunk: the k best, or all that are not -infinity where there are fewer. Best first, and of equal ones
  /// the first.
  std::span<Found const> best() { return k_ == 0 ? std::span<Found const>{} : best_.finish(); }

  bool valid() const { return valid_; }  ///< no NaN, no +infinity
  float maximum() const { return maximum_; }
  double log_sum() const { return std::log(sum_); }  ///< of exp(score - maximum)

 private:
  /// Lane maxima of a chunk to out[lanes]; returns the largest.
  float lane_maxima(float const* data, float* out) {
    constexpr auto lowest_lanes = simd::Vec{} + lowest;
    constexpr auto largest = simd::Vec{} + std::numeric_limits<float>::max();
    auto top = lowest_lanes;
    auto fine = top <= largest;  // all lanes true
    for (std::size_t l = 0; l < lanes; l += simd::lanes) {
      auto best = lowest_lanes;
#pragma GCC unroll 16
      for (std::size_t d = 0; d < depth; ++d) {
        auto const x = simd::load(data + d * lanes + l);
        best = simd::max(best, x);
        fine &= x <= largest;  // false for NaN and +infinity
      }
      simd::store(out + l, best);
      top = simd::max(top, best);
    }
    for (int i = 0; i < simd::lanes; ++i) valid_ = valid_ && fine[i] != 0;
    return simd::max(top);
  }

  void add_sum(float const* data, float top) {
    // Beyond this, 2^31 scores add less than a double holds of the sum.
    constexpr float negligible = 60;
    if (top > maximum_) {
      sum_ *= maximum_ > lowest ? std::exp(static_cast<double>(maximum_) - static_cast<double>(top)) : 0;
    } else if (maximum_ - top > negligible) {
      return;
    }
    auto const maximum = simd::broadcast(std::max(maximum_, top));
    simd::Vec sums[4] = {};
    for (std::size_t i = 0; i < chunk; i += 4 * simd::lanes)
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j)
        sums[j] += simd::exp_of_negative(simd::load(data + i + j * simd::lanes) - maximum);
    sum_ += static_cast<double>(simd::sum((sums[0] + sums[1]) + (sums[2] + sums[3])));
  }

  /// Takes what may be among the k best from a block, and raises the bar.
  void collect(std::size_t first, float const* data, std::span<float const> maxima, float const* tops) {
    // k lanes that reach a score make k scores that do; an equal one in a later block comes behind all of them.
    auto least = std::nextafter(best_.bar(), std::numeric_limits<float>::infinity());
    auto const raised = simd::count_at_least(maxima.data(), maxima.size(), least) > k_;
    if (raised) {
      auto const low = simd::least_from(maxima.data(), maxima.size(), least);
      least = reached_by(maxima, k_, low, maximum_);
    }
    for (std::size_t c = 0; c < maxima.size() / lanes; ++c) {
      if (tops[c] < least || tops[c] <= best_.bar()) continue;
      best_.take(first + c * chunk, data + c * chunk, chunk, least);
      best_.tidy();
    }
    if (raised) best_.raise(least);
  }

  BestScores best_;
  std::size_t k_ = 0;
  double sum_ = 0;
  float maximum_ = lowest;
  bool sum_wanted_ = false, valid_ = true;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
