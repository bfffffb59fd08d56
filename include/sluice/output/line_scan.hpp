// SPDX-License-Identifier: Apache-2.0
/// \file
/// One pass over a line of scores: maximum, sum of exponentials, and the maxima from which the k best are found without
/// looking at everything again.
#pragma once

#include <sluice/output/simd.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The online softmax (Milakov and Gimelshein 2018) with one maximum kept per lane: in every chunk of 1,024 scores, lane
/// l is the 16 scores at positions l, l + 64, l + 128 and so on. The k-th largest lane maximum is a lower bound of the
/// k-th largest score, so the k best are all in lanes whose maximum reaches it: at most 16 candidates for each, whatever
/// the order of the scores.
class LineScan {
 public:
  static constexpr std::size_t lanes = 64, depth = 16, chunk = lanes * depth;
  static constexpr float lowest = -std::numeric_limits<float>::infinity();

  /// Reads the line (which must stay alive for gather()); `sum` = whether the sum of exponentials is wanted.
  void scan(std::span<float const> line, bool sum) {
    line_ = line;
    auto const chunks = (line.size() + chunk - 1) / chunk;
    maxima_.resize(chunks * lanes);
    maximum_ = lowest, sum_ = 0, valid_ = true;
    for (std::size_t c = 0; c < chunks; ++c) {
      auto const first = c * chunk;
      auto const count = std::min(chunk, line.size() - first);
      float const* data = line.data() + first;
      if (count < chunk) {
        tail_.fill(lowest);
        std::copy_n(data, count, tail_.begin());
        data = tail_.data();
      }
      auto const top = lane_maxima(data, &maxima_[c * lanes]);
      if (top > maximum_) sum_ *= std::exp(static_cast<double>(maximum_ - top)), maximum_ = top;
      if (sum && top > lowest && valid_)
        sum_ += static_cast<double>(
            (Eigen::Map<Eigen::ArrayXf const>(data, static_cast<Eigen::Index>(count)) - maximum_).exp().sum());
    }
  }

  bool valid() const { return valid_; }  ///< no NaN, no +infinity
  float maximum() const { return maximum_; }
  double log_sum() const { return std::log(sum_); }  ///< of exp(score - maximum)

  /// A score that at least min(k, line size) scores reach.
  float threshold(std::size_t k) {
    if (k <= 1) return maximum_;
    if (k > maxima_.size()) return lowest;
    scratch_ = maxima_;
    auto const kth = scratch_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(scratch_.begin(), kth, scratch_.end(), std::greater{});
    return *kth;
  }

  /// Calls found(token, score) for every score >= threshold that is not -infinity.
  template <class F>
  void gather(float threshold, F&& found) const {
    for (std::size_t m = 0; m < maxima_.size(); ++m) {
      if (!(maxima_[m] >= threshold) || maxima_[m] == lowest) continue;
      auto const first = m / lanes * chunk + m % lanes;
      for (auto i = first; i < std::min(first - m % lanes + chunk, line_.size()); i += lanes)
        if (line_[i] >= threshold && line_[i] > lowest) found(static_cast<std::int32_t>(i), line_[i]);
    }
  }

 private:
  /// Lane maxima of a chunk to out[lanes]; returns the largest.
  float lane_maxima(float const* data, float* out) {
    constexpr auto lowest_lanes = simd::Vec{} + lowest;
    constexpr auto largest = simd::Vec{} + std::numeric_limits<float>::max();
    auto top = lowest_lanes;
    auto fine = top <= largest;  // all lanes true
    for (std::size_t l = 0; l < lanes; l += simd::lanes) {
      auto best = lowest_lanes;
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

  std::span<float const> line_;
  std::vector<float> maxima_, scratch_;
  std::array<float, chunk> tail_{};
  float maximum_ = lowest;
  double sum_ = 0;
  bool valid_ = true;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
