// SPDX-License-Identifier: Apache-2.0
/// \file
/// A running sum of exponentials (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax").
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/rounding.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <limits>

namespace sluice::inline v0::cuda::detail {

/// sum = sum of exp(x - maximum). A NaN or +infinity among the x makes `sum` NaN for good; -infinity adds 0.
struct PartialSum {
  float maximum = std::numeric_limits<float>::lowest();  // finite, to avoid -infinity - -infinity
  float sum = 0;

  /// exp(x - from), in base 2, which the hardware provides.
  template <class Block>
  SLUICE_DEVICE static float exp(float x, float from) {
    return Block::exp2(rounded_product(rounded_difference(x, from), 1.4426950408889634f));
  }

  /// `sum` rescaled to a higher maximum.
  template <class Block>
  SLUICE_DEVICE void raise(float to) {
    sum = rounded_product(sum, exp<Block>(maximum, to));
    maximum = to;
  }

  template <class Block>
  SLUICE_DEVICE void add(PartialSum other) {
    auto const top = larger(other.maximum, maximum);
    raise<Block>(top), other.template raise<Block>(top);
    add(other.sum);
  }
  /// Adds a sum with the same maximum.
  SLUICE_DEVICE void add(float other) { sum = rounded_sum(sum, other); }
};

/// The sum over a warp, the same bits in each of its lanes.
template <class Block>
SLUICE_DEVICE PartialSum sum_of_warp(Block& block, PartialSum mine) {
  auto top = mine.maximum;
  SLUICE_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) top = larger(block.exchange(top, distance), top);
  mine.template raise<Block>(top);
  SLUICE_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) mine.add(block.exchange(mine.sum, distance));
  return mine;
}

/// The sum of `count` sums read(0) .. read(count - 1). Every warp computes it, in an order that depends only on
/// `count`.
template <class Block, class Read>
SLUICE_DEVICE PartialSum sum_of(Block& block, int count, Read const& read) {
  PartialSum mine;
  for (int i = block.lane(); i < count; i += 32) mine.add<Block>(read(i));
  return sum_of_warp(block, mine);
}

/// The same for many sums, some per thread. The order depends on `count` and the size of the block.
/// \param warp_sums  [warps], shared
template <class Block, class Read>
SLUICE_DEVICE PartialSum sum_of_block(Block& block, PartialSum* warp_sums, int count, Read const& read) {
  PartialSum mine;
  for (int i = block.thread(); i < count; i += Block::threads) mine.add<Block>(read(i));
  mine = sum_of_warp(block, mine);
  if (block.lane() == 0) warp_sums[block.warp()] = mine;
  block.sync(Barrier::summed);
  return sum_of(block, Block::warps, [&](int i) { return warp_sums[i]; });
}

}  // namespace sluice::inline v0::cuda::detail
