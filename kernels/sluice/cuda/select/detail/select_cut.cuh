// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the sorted scores of a line are cut.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>
#include <sluice/cuda/select/detail/select_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

template <int threads>
struct CutMemory {
  SumMemory<threads> sum;
  double held;
  int left, right;
};

/// The standard deviation of a line's finite scores, from their keys in order of places.
template <class Block>
SLUICE_DEVICE double deviation_of(Block& block, SumMemory<Block::threads>& memory, Key const* keys, std::int32_t size) {
  double count = 0, sum = 0, square = 0;
  for (auto i = block.thread(); i < size; i += Block::threads)
    if (keys[i] != no_key) count += 1, sum = double_sum(sum, static_cast<double>(score_of(keys[i])));
  count = sum_in_block(block, memory, count);
  if (count < 1) return 0;
  auto const mean = double_quotient(sum_in_block(block, memory, sum), count);
  for (auto i = block.thread(); i < size; i += Block::threads) {
    if (keys[i] == no_key) continue;
    auto const beside = double_sum(static_cast<double>(score_of(keys[i])), -mean);
    square = double_sum(square, double_product(beside, beside));
  }
  return double_root(double_quotient(sum_in_block(block, memory, square), count));
}

/// The best finite scores of a line, or all of them, best first, with queries about this order. Where an answer is a
/// range that ends before the last of them, it is that for all scores. All threads of a block call them together.
template <class Block>
class SortedScores {
 public:
  using Memory = CutMemory<Block::threads>;

  SLUICE_DEVICE SortedScores(Block& block, Memory& memory, Key const* sorted, std::int32_t size, DoubleNorm norm)
      : block_(block), memory_(memory), sorted_(sorted), size_(size), norm_(norm) {}

  SLUICE_DEVICE std::int32_t size() const { return size_; }
  SLUICE_DEVICE Key key(std::int32_t i) const { return sorted_[i]; }
  SLUICE_DEVICE float score(std::int32_t i) const { return score_of(sorted_[i]); }

  /// The number of scores >= bar.
  SLUICE_DEVICE std::int32_t count_from(double bar) const {
    return count_while([&](std::int32_t i) { return static_cast<double>(score(i)) >= bar; });
  }

  /// The number of best scores whose total probability reaches the bound.
  SLUICE_DEVICE std::int32_t holding(double bound) {
    std::int32_t left = 0, right = 0;
    take(0, bound, 0, left, right);
    return right;
  }

  /// Two ranges of the order.
  struct Pieces {
    std::int32_t first[2], last[2];
    SLUICE_DEVICE bool holds(std::int32_t i) const {
      return (i >= first[0] && i < last[0]) || (i >= first[1] && i < last[1]);
    }
  };
  /// The scores whose information is nearest to the entropy, until their probability reaches the bound. Of equal scores
  /// the lower tokens, which come first in this order; among the more probable ones, that may leave a gap.
  SLUICE_DEVICE Pieces typical(double bound, double entropy) {
    auto const middle = count_while([&](std::int32_t i) { return norm_(score(i)) + entropy >= 0; });
    std::int32_t left = 0, right = 0;
    take(middle, bound, entropy, left, right);
    auto const begin = middle - left;
    Pieces pieces{{begin, begin}, {begin, middle + right}};
    if (left == 0 || begin == 0 || score(begin - 1) != score(begin)) return pieces;
    auto const equal = score(begin);
    auto const first = count_while([&](std::int32_t i) { return score(i) > equal; });
    auto const last = count_while([&](std::int32_t i) { return score(i) >= equal; });
    return {{first, last}, {first + last - begin, middle + right}};
  }

 private:
  /// The length of the prefix that has a property which holds exactly for a prefix.
  template <class Property>
  SLUICE_DEVICE std::int32_t count_while(Property const& has) const {
    std::int32_t low = 0, high = size_;
    while (low < high) {
      auto const middle = low + (high - low) / 2;
      if (has(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /// From `middle` outwards, nearest to -entropy first: how many on both sides hold `bound` together. Handles as many
  /// as there are threads at a time; each thread finds its own in the merged order of both sides by binary search.
  SLUICE_DEVICE void take(std::int32_t middle, double bound, double entropy, std::int32_t& left, std::int32_t& right) {
    auto const distance = [&](std::int32_t i) {
      auto const x = norm_(score(i)) + entropy;
      return x < 0 ? -x : x;
    };
    double held = 0;
    while (left + right < size_ && held < bound) {
      auto const rest_left = middle - left, rest_right = size_ - middle - right;
      auto const thread = static_cast<std::int32_t>(block_.thread());
      auto const exists = thread < rest_left + rest_right;
      auto low = thread > rest_right ? thread - rest_right : 0, high = thread < rest_left ? thread : rest_left;
      while (exists && low < high) {
        auto const i = low + (high - low) / 2;
        if (distance(middle - left - 1 - i) <= distance(middle + right + thread - 1 - i)) low = i + 1;
        else high = i;
      }
      auto const from_left = left + low, from_right = right + thread - low;  // taken before this thread's
      auto const at_left =
          exists && low < rest_left &&
          (thread - low >= rest_right || distance(middle - 1 - from_left) <= distance(middle + from_right));
      auto const at = at_left ? middle - 1 - from_left : middle + from_right;
      auto const sum = sum_up_to(block_, memory_.sum, held, exists ? double_exp(norm_(score(at))) : 0.0);
      auto const first = first_in_block(block_, memory_.sum, exists && sum >= bound);
      auto const all = rest_left + rest_right;
      auto const last = first < Block::threads ? first : (all < Block::threads ? all : Block::threads) - 1;
      if (thread == last) {
        memory_.held = sum;
        memory_.left = from_left + (at_left ? 1 : 0), memory_.right = from_right + (at_left ? 0 : 1);
      }
      block_.sync(Barrier::reached);
      held = memory_.held, left = memory_.left, right = memory_.right;
      block_.sync(Barrier::spent);
    }
  }

  Block& block_;
  Memory& memory_;
  Key const* const sorted_;
  std::int32_t const size_;
  DoubleNorm const norm_;
};

}  // namespace sluice::inline v0::cuda::detail
