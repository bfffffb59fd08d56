// SPDX-License-Identifier: Apache-2.0
/// \file
/// Look-ups in the sorted places of a SuffixCache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/suffix_segment.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// What follows the last negative token.
inline std::span<Token const> after_negative(std::span<Token const> tokens) {
  std::size_t i = tokens.size();
  while (i > 0 && tokens[i - 1] >= 0) --i;
  return tokens.subspan(i);
}

/// What look-ups see of a SuffixCache: it never changes, but for the times of use.
struct SuffixPlaces {
  std::vector<std::shared_ptr<SuffixSegment const>> segments{};  ///< none is empty
  std::int32_t depth = 1;
  std::uint32_t clock = 0;
  Token largest = -1;
};

/// The places of a segment that share their last tokens with a context: at first none, then more of them as fewer tokens are asked
/// for. They surround the point where the context would be sorted.
class SuffixMatch {
 public:
  SLUICE_LAZY SuffixMatch(SuffixSegment const& segment, std::span<Token const> context, std::int32_t depth)
      : segment_(&segment), block_(segment.block(context, depth)) {}

  /// Asks for the memory that find() reads. Segments are asked one after another, so that their waits are one.
  SLUICE_LAZY void fetch() const { segment_->fetch_tokens(block_); }
  /// Finds the point. To be called first.
  SLUICE_LAZY void find(std::span<Token const> context, std::int32_t depth) {
    point_ = first_ = last_ = segment_->lower_bound(block_, context, depth);
    look(context, depth);
  }

  /// Asks for the memory that widen() reads with this `most`, and that fetch() has not asked for. To be called after find().
  SLUICE_LAZY void fetch_near(std::size_t most) const {
    auto const begin = point_ > most ? point_ - most : 0, end = (std::min)(point_ + most, segment_->order.size());
    segment_->fetch_tokens({begin, (std::max)(begin, (std::min)(block_.first, end))});
    segment_->fetch_tokens({(std::min)((std::max)(block_.last, begin), end), end});
  }

  SuffixSegment const& segment() const { return *segment_; }
  std::size_t size() const { return last_ - first_; }
  std::uint32_t place(std::size_t i) const { return segment_->order[first_ + i]; }
  /// How many tokens the nearest places outside share with the context.
  std::int32_t next() const { return (std::max)(left_, right_); }

  /// Takes all places that share at least `shared` tokens, or the nearest ones: not more than `most` on each side are looked at.
  /// O(log most) comparisons.
  SLUICE_LAZY void widen(std::span<Token const> context, std::int32_t shared, std::int32_t depth, std::size_t most) {
    if (left_ < shared && right_ < shared) return;
    auto const& all = segment_->order;
    auto const begin = point_ > most ? point_ - most : 0;
    auto const order = all.first((std::min)(all.size(), most < all.size() - point_ ? point_ + most : all.size()));
    auto const within = [&](std::size_t i) { return segment_->common(order[i], context, shared) >= shared; };
    std::size_t stride = 1;
    while (left_ >= shared && first_ >= begin + stride && within(first_ - stride)) first_ -= stride, stride *= 2;
    for (stride /= 2; stride > 0; stride /= 2)
      while (first_ >= begin + stride && within(first_ - stride)) first_ -= stride;
    stride = 1;
    while (right_ >= shared && last_ + stride <= order.size() && within(last_ + stride - 1))
      last_ += stride, stride *= 2;
    for (stride /= 2; stride > 0; stride /= 2)
      while (last_ + stride <= order.size() && within(last_ + stride - 1)) last_ += stride;
    look(context, depth);
  }

 private:
  SLUICE_LAZY void look(std::span<Token const> context, std::int32_t depth) {
    auto const& order = segment_->order;
    left_ = first_ > 0 ? segment_->common(order[first_ - 1], context, depth) : -1;
    right_ = last_ < order.size() ? segment_->common(order[last_], context, depth) : -1;
  }

  SuffixSegment const* segment_;
  SuffixSegment::Block block_;
  std::size_t point_ = 0, first_ = 0, last_ = 0;
  std::int32_t left_ = -1, right_ = -1;  // tokens that the neighbours share; -1: there is none
};

}  // namespace sluice::inline v0::detail
