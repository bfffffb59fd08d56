// SPDX-License-Identifier: Apache-2.0
/// \file
/// The k best of the scores added so far.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/simd/simd_count.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// A score and its index in the line.
struct Found {
  std::int32_t place;
  float score;
};

/// Returns one of `scores` that at least k scores reach, and few more than k unless many are equal. `low` <= the k-th
/// best <= `high`. Uses counting, so no branch depends on a single score. scores.size() is a multiple of simd::lanes.
SLUICE_LAZY float reached_by(std::span<float const> scores, std::size_t k, float low, float high) {
  auto const enough = k + k / 4 + 2;
  // A bisection over the floats' order, not their values: at most 32 steps for any scores.
  auto const order = [](float x) {
    auto const bits = std::bit_cast<std::int32_t>(x);
    return std::int64_t{bits ^ ((bits >> 31) & 0x7fffffff)};
  };
  auto const number = [](std::int64_t place) {
    auto const bits = static_cast<std::int32_t>(place);
    return std::bit_cast<float>(bits ^ ((bits >> 31) & 0x7fffffff));
  };
  auto below = order(low), above = order(high) + 1;  // at least k scores reach `below`, fewer reach `above`
  while (above - below > 1) {
    auto const middle = below + (above - below) / 2;
    auto const count = simd::count_at_least(scores.data(), scores.size(), number(middle));
    (count < k ? above : below) = middle;
    if (count >= k && count <= enough) break;
  }
  return simd::least_from(scores.data(), scores.size(), number(below));
}

/// Takes scores in ascending order of index. Now and then, drops those that can no longer be among the k best.
/// Allocates nothing once it has seen its largest k.
class BestScores {
 public:
  static constexpr float lowest = -std::numeric_limits<float>::infinity();

  /// \param k  >= 1
  SLUICE_LAZY void begin(std::size_t k) {
    k_ = k, size_ = 0, limit_ = k + k / 2 + 64;
    bar_ = lowest, top_ = lowest;
  }

  /// A new score is among the k best only if it exceeds this.
  float bar() const { return bar_; }
  /// Raises the bar; k of the scores taken must reach it.
  SLUICE_LAZY void raise(float bar) { bar_ = (std::max)(bar_, bar); }

  /// Takes those of n scores (a multiple of simd::lanes) that reach `least`; the first has index `first`.
  SLUICE_LAZY void take(std::size_t first, float const* scores, std::size_t n, float least) {
    auto const room = size_ + n + static_cast<std::size_t>(simd::lanes);
    if (scores_.size() < room) scores_.resize(room), places_.resize(room);
    auto const bars = simd::broadcast(least);
    auto* const taken = scores_.data();
    auto* const places = places_.data();
    auto size = size_;
    auto top = top_;
    for (std::size_t i = 0; i < n; i += simd::lanes)
      for (auto bits = simd::at_least(simd::load(scores + i), bars); bits != 0; bits &= bits - 1) {
        auto const place = i + static_cast<std::size_t>(std::countr_zero(bits));
        auto const x = scores[place];
        taken[size] = x;
        places[size++] = static_cast<std::int32_t>(first + place);
        top = top < x ? x : top;
      }
    size_ = size, top_ = top;
  }
  /// Drops scores below the k-th best, if that is worth the time.
  SLUICE_LAZY void tidy() {
    if (size_ > limit_) tighten();
  }

  /// The k best scores, or all if there are fewer; best first, equal scores in ascending order of index.
  SLUICE_LAZY std::span<Found const> finish() {
    if (size_ > k_) tighten();
    found_.resize(size_);
    constexpr std::size_t few = 128;
    if (size_ <= few) {
      rank();
    } else {
      for (std::size_t i = 0; i < size_; ++i) found_[i] = {places_[i], scores_[i]};
      std::sort(found_.begin(), found_.end(),
                [](Found a, Found b) { return a.score != b.score ? a.score > b.score : a.place < b.place; });
    }
    return std::span(found_).first((std::min)(size_, k_));
  }

 private:
  /// The scores, padded to whole vectors.
  SLUICE_LAZY std::span<float const> whole() {
    auto const size = (size_ + simd::lanes - 1) / simd::lanes * simd::lanes;
    std::fill(scores_.data() + size_, scores_.data() + size, lowest);
    return {scores_.data(), size};
  }

  SLUICE_LAZY void tighten() {
    auto const low = bar_ > lowest ? bar_ : *std::min_element(scores_.data(), scores_.data() + size_);
    bar_ = reached_by(whole(), k_, low, top_);
    // Of the scores equal to the bar, only the first ones can be needed.
    std::size_t higher = 0;
    for (std::size_t i = 0; i < size_; ++i) higher += static_cast<std::size_t>(scores_[i] > bar_);
    auto equal = higher < k_ ? k_ - higher : 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      auto const x = scores_[i];
      scores_[kept] = x, places_[kept] = places_[i];
      auto const among = static_cast<std::size_t>(x == bar_) & static_cast<std::size_t>(equal != 0);
      equal -= among;
      kept += static_cast<std::size_t>(x > bar_) | among;
    }
    size_ = kept;
  }

  /// Sorts by counting, for each score, how many scores come before it.
  SLUICE_LAZY void rank() {
    auto const scores = whole();
    constexpr auto lanes = static_cast<std::size_t>(simd::lanes);
    constexpr auto all = static_cast<std::uint32_t>((std::uint64_t{1} << lanes) - 1);
    for (std::size_t i = 0; i < size_; ++i) {
      auto const x = simd::broadcast(scores[i]);
      // Equal scores with a lower index come before it, those with a higher index after it.
      auto const here = i / lanes * lanes;
      int ahead = 0;
      for (std::size_t j = 0; j < here; j += lanes) ahead += std::popcount(simd::at_least(simd::load(&scores[j]), x));
      auto const before = (std::uint32_t{1} << (i - here)) - 1;
      auto const last = simd::load(&scores[here]);
      ahead += std::popcount((simd::at_least(last, x) & before) | (~simd::at_least(x, last) & all & ~before));
      for (auto j = here + lanes; j < scores.size(); j += lanes)
        ahead += std::popcount(~simd::at_least(x, simd::load(&scores[j])) & all);
      found_[static_cast<std::size_t>(ahead)] = {places_[i], scores[i]};
    }
  }

  std::size_t k_ = 0, size_ = 0, limit_ = 0;
  float bar_ = lowest, top_ = lowest;
  AlignedVector<float> scores_;
  AlignedVector<std::int32_t> places_;
  Buffer<Found> found_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
