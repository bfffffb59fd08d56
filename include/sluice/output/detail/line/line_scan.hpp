// SPDX-License-Identifier: Apache-2.0
/// \file
/// One pass over a line of scores, chunk by chunk: maximum, sum of exponentials, and the k best.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/line/best_scores.hpp>
#include <sluice/output/detail/simd/exponential.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// The online softmax (Milakov and Gimelshein 2018) with a top-k selection that reads only scores that may matter. In
/// each chunk of 1,024 scores, lane l holds the 16 scores at l, l + 64, l + 128 and so on, and the pass takes its
/// maximum. The bar is a lower bound of the k-th best so far. A block of chunks without a maximum above the bar is
/// skipped. In any other block, the bar is first raised to a score that k of its lanes reach. So a block yields at most
/// 16 scores for each of about k lanes in any order of scores, and few in random order.
///
/// Maxima and exponentials are taken together, the exponentials relative to the first chunk's maximum. If a score
/// exceeds it so far that float sums would suffer, or is not a number, the chunk is read again.
///
/// The result depends only on the scores and k, bit for bit, not on how the line is cut into blocks.
class LineScan {
 public:
  static constexpr std::size_t lanes = 64, depth = 16, chunk = lanes * depth, block = 32 * chunk;
  static constexpr std::size_t ahead = 1024;  ///< prefetch distance: hardware prefetching stops at page boundaries
  static constexpr float lowest = -std::numeric_limits<float>::infinity();

  /// Begins a new line: the k best are wanted, and the sum of exponentials if `sum`.
  void begin(std::size_t k, bool sum) {
    best_.begin(std::max<std::size_t>(k, 1));
    k_ = k, sum_wanted_ = sum;
    std::fill(std::begin(tops_), std::end(tops_), lowest);
    std::fill(std::begin(sums_), std::end(sums_), 0.0);
    limit_ = lowest, shift_ = 0, valid_ = true;
  }

  /// Adds the scores at first .. first + count - 1. Calls come in ascending order; count is a multiple of `chunk`, at
  /// most `block`. Scores past the line's end must be `lowest`.
  void add(std::size_t first, float const* data, std::size_t count) {
    add(first, data, count, [data](std::size_t i) {
      __builtin_prefetch(data + i + ahead);
      return simd::load(data + i);
    });
  }
  /// The same for scores that are not in `data` yet: fetch(i) returns those at i .. i + simd::lanes - 1, and stores
  /// them there.
  template <class Fetch>
  void add(std::size_t first, float const* data, std::size_t count, Fetch const& fetch) {
    alignas(64) float maxima[block / depth];
    add(first, data, count, fetch, maxima);
  }
  /// The same. Also writes the maximum of each lane of each chunk: [count / depth].
  template <class Fetch>
  void add(std::size_t first, float const* data, std::size_t count, Fetch const& fetch, float* maxima) {
    auto top = simd::broadcast(lowest);
    for (std::size_t c = 0; c < count / chunk; ++c)
      top = (simd::max)(top, take(data + c * chunk, c * chunk, fetch, maxima + c * lanes));
    simd::store(tops_, (simd::max)(simd::load(tops_), top));
    if (k_ > 0 && (simd::max)(top) > best_.bar()) collect(first, data, {maxima, count / depth}, (simd::max)(top));
  }

  /// Adds scores whose lane maxima, [count / depth], another scan has written. Only if no sum is wanted.
  SLUICE_LAZY void add_known(std::size_t first, float const* data, std::size_t count, float const* maxima) {
    if (k_ == 0 || count == 0) return;
    auto top = simd::load(maxima);
    for (std::size_t i = simd::lanes; i < count / depth; i += simd::lanes)
      top = (simd::max)(top, simd::load(maxima + i));
    if ((simd::max)(top) > best_.bar()) collect(first, data, {maxima, count / depth}, (simd::max)(top));
  }

  /// Scans the whole line at once; any alignment.
  void run(std::span<float const> line) {
    auto const whole = line.size() / chunk * chunk;
    for (std::size_t first = 0; first < whole; first += block)
      add(first, line.data() + first, (std::min)(block, whole - first));
    if (whole < line.size()) {
      alignas(64) std::array<float, chunk> tail;
      std::fill(std::copy(line.begin() + static_cast<std::ptrdiff_t>(whole), line.end(), tail.begin()), tail.end(),
                lowest);
      add(whole, tail.data(), chunk);
    }
  }

  /// After the last chunk: the k best, or all that are not -infinity if there are fewer. Best first, equal scores in
  /// order of index.
  SLUICE_LAZY std::span<Found const> best() { return k_ == 0 ? std::span<Found const>{} : best_.finish(); }

  bool valid() const { return valid_; }  ///< no NaN, no +infinity
  float maximum() const { return (simd::max)(simd::load(tops_)); }
  /// The logarithm of the sum of exp(score - maximum()); at least 0.
  double log_sum() const {
    auto const maximum = this->maximum();
    if (!(limit_ > lowest)) return std::log(0.0);
    double sum = 0;
    for (auto const x : sums_) sum += x;
    // The largest term is 1. Replaces its rounded value in the sum by 1, so that a certain token has probability 1.
    auto const around = maximum - shift_;
    auto const counted = exponentials_.add(simd::Vec{}, simd::broadcast(around))[0];
    auto const rest = (std::max)(0.0, sum - static_cast<double>(counted));
    return std::log1p(rest * std::exp(exponentials_.reference() - static_cast<double>(around)));
  }

 private:
  /// Scans a chunk: adds its exponentials, writes its lane maxima to maxima[lanes] and returns their maximum.
  template <class Fetch>
  simd::Vec take(float const* data, std::size_t at, Fetch const& fetch, float* maxima) {
    if (limit_ > lowest && shift_ == 0) {
      simd::Vec top, sum;
      pass<true>([&](std::size_t i) { return fetch(at + i); }, maxima, top, sum);
      // A NaN makes the sum NaN, and +infinity exceeds all limits.
      auto const sound = simd::at_least(simd::broadcast(limit_), top) & simd::at_least(sum, sum);
      if (sound == simd::at_least(simd::Vec{}, simd::Vec{})) {
        add(sum);
        return top;
      }
      return look_closely(
          data, [data](std::size_t i) { return simd::load(data + i); }, maxima);
    }
    return look_closely(
        data, [&](std::size_t i) { return fetch(at + i); }, maxima);
  }

  /// Lane maxima, and sums of exponentials of the chunk's scores. If !Sum, `sum` is negative if a score is NaN or
  /// +infinity.
  template <bool Sum, class Scores>
  [[gnu::always_inline]] void pass(Scores const& scores, float* maxima, simd::Vec& top, simd::Vec& sum) const {
    constexpr std::size_t width = simd::lanes, group = std::min<std::size_t>(simd::registers / 8, lanes / width);
    auto const exponentials = exponentials_;
    top = simd::broadcast(lowest);
    simd::Vec sums[group] = {};
    auto const largest = simd::broadcast((std::numeric_limits<float>::max)());
    auto fine = simd::Vec{} <= largest;  // all lanes true
    for (std::size_t l = 0; l < lanes; l += group * width) {
      simd::Vec best[group];
      for (auto& b : best) b = simd::broadcast(lowest);
#pragma GCC unroll 1
      for (std::size_t d = 0; d < chunk; d += lanes)
#pragma GCC unroll 4
        for (std::size_t g = 0; g < group; ++g) {
          auto const x = scores(l + d + g * width);
          best[g] = (simd::max)(best[g], x);
          if constexpr (Sum) sums[g] = exponentials.add(sums[g], x);
          else fine &= x <= largest;  // false for NaN and +infinity
        }
      for (std::size_t g = 0; g < group; ++g)
        simd::store(maxima + l + g * width, best[g]), top = (simd::max)(top, best[g]);
    }
    sum = sums[0];
    for (std::size_t g = 1; g < group; ++g) sum += sums[g];
    if constexpr (!Sum) sum = fine ? simd::Vec{} : simd::Vec{} - 1.0f;
  }

  void add(simd::Vec sum) {
    float lane[simd::lanes];
    simd::store(lane, sum);
    for (int i = 0; i < simd::lanes; ++i) sums_[i] += static_cast<double>(lane[i]);
  }

  /// As take(), for a chunk with unchecked scores. `scores` returns what is in `data`, or stores it there.
  template <class Scores>
  simd::Vec look_closely(float const* data, Scores const& scores, float* maxima) {
    simd::Vec top, sum;
    pass<false>(scores, maxima, top, sum);
    valid_ = valid_ && !((simd::max)(-sum) > 0);
    if (!sum_wanted_) return top;
    auto const highest = (simd::max)(top);
    if (!valid_ || highest == lowest) return top;
    if (highest > limit_) centre(highest);
    alignas(64) std::array<float, lanes> again;
    auto const shift = simd::broadcast(shift_);
    pass<true>([&](std::size_t i) { return simd::load(data + i) - shift; }, again.data(), sum, sum);
    add(sum);
    return top;
  }

  /// Makes further exponentials relative to about `around`.
  void centre(float around) {
    auto const before = exponentials_.reference() + static_cast<double>(shift_);
    shift_ = std::abs(around) > simd::Exponentials::farthest ? around : 0;
    exponentials_ = simd::Exponentials(around - shift_);
    if (limit_ > lowest) {
      auto const factor = std::exp(before - (exponentials_.reference() + static_cast<double>(shift_)));
      for (auto& x : sums_) x *= factor;
    }
    limit_ = around + simd::Exponentials::above;
  }

  /// Collects the scores of a block that may be among the k best, and raises the bar. `top` is the block's maximum.
  void collect(std::size_t first, float const* data, std::span<float const> maxima, float top) {
    // k lanes that reach a score mean at least k scores that do; an equal score in a later block ranks after all of
    // them.
    auto least = std::nextafter(best_.bar(), -lowest);
    alignas(64) float folded[block / depth];
    auto const groups = fold(maxima, folded);
    auto const raised = simd::count_at_least(groups.data(), groups.size(), least) > k_;
    if (raised) least = reached_by(groups, k_, simd::least_from(groups.data(), groups.size(), least), top);
    for (std::size_t c = 0; c < maxima.size() / lanes; ++c) {
      auto highest = simd::load(&maxima[c * lanes]);
      for (std::size_t l = simd::lanes; l < lanes; l += simd::lanes)
        highest = (simd::max)(highest, simd::load(&maxima[c * lanes + l]));
      auto const bar = (std::max)(least, std::nextafter(best_.bar(), -lowest));  // may have risen meanwhile
      if (simd::at_least(highest, simd::broadcast(bar)) == 0) continue;
      best_.take(first + c * chunk, data + c * chunk, chunk, bar);
      best_.tidy();
    }
    if (raised) best_.raise(least);
  }

  /// Folds the lane maxima to as few as still distinguish the k best.
  std::span<float const> fold(std::span<float const> maxima, float* to) const {
    auto const size = (4 * k_ + lanes - 1) / lanes * lanes;
    if (2 * size > maxima.size()) return maxima;
    for (std::size_t i = 0; i < size; i += simd::lanes) {
      auto best = simd::load(&maxima[i]);
      for (auto j = i + size; j < maxima.size(); j += size) best = (simd::max)(best, simd::load(&maxima[j]));
      simd::store(to + i, best);
    }
    return {to, size};
  }

  BestScores best_;
  std::size_t k_ = 0;
  simd::Exponentials exponentials_;
  double sums_[simd::lanes] = {};  ///< of exp(score - shift_ - reference)
  float tops_[simd::lanes] = {};   ///< their largest is the maximum so far
  float limit_ = lowest;           ///< the highest score that may be added; `lowest` before the first chunk
  float shift_ = 0;                ///< not 0: subtracted from scores that are too large for Exponentials
  bool sum_wanted_ = false, valid_ = true;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
