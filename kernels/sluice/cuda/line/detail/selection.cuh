// SPDX-License-Identifier: Apache-2.0
/// \file
/// The k best of a block's keys.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The keys of a warp's lanes, best first (bitonic sort).
template <class Block>
SLUICE_DEVICE detail::Key sort_warp(Block& block, detail::Key key) {
  auto const lane = block.lane();
  SLUICE_UNROLL
  for (int size = 2; size <= 32; size *= 2) {
    SLUICE_UNROLL
    for (int distance = size / 2; distance > 0; distance /= 2) {
      auto const other = block.exchange(key, distance);
      auto const wants_better = ((lane & distance) == 0) == ((lane & size) == 0);
      key = (key > other) == wants_better ? key : other;
    }
  }
  return key;
}

/// The number of better keys in sorted lists of 32 keys, summed over several adjacent lists. All lists are searched at
/// once: each search has six dependent memory reads.
template <int lists>
SLUICE_DEVICE int better_than(detail::Key key, detail::Key const* sorted) {
  int counts[lists] = {};
  SLUICE_UNROLL
  for (int step = 16; step > 0; step /= 2) {
    SLUICE_UNROLL
    for (int i = 0; i < lists; ++i)
      if (sorted[32 * i + counts[i] + step - 1] > key) counts[i] += step;
  }
  int sum = 0;
  SLUICE_UNROLL
  for (int i = 0; i < lists; ++i) sum += counts[i] + (sorted[32 * i + counts[i]] > key ? 1 : 0);
  return sum;
}

/// The number of `count` keys that are better: the key's rank.
SLUICE_DEVICE int rank_of(detail::Key key, detail::Key const* keys, int count) {
  int rank = 0;
  SLUICE_UNROLL_4
  for (int i = 0; i < count; ++i) rank += keys[i] > key ? 1 : 0;
  return rank;
}

/// The shared memory that threshold() needs.
template <int threads>
struct ThresholdMemory {
  detail::Key sorted[threads];
  detail::Key threshold;
};

/// The k-th best of one key per thread, each the thread's best: at least k keys of the block are as good, and only k
/// threads have any. If fewer than k threads have a key, the lowest key.
template <class Block>
SLUICE_DEVICE detail::Key threshold(Block& block, ThresholdMemory<Block::threads>& memory, detail::Key best, int k) {
  auto const key = sort_warp(block, best);
  memory.sorted[block.thread()] = key;
  block.sync(detail::Barrier::sorted);
  auto const rank = better_than<Block::warps>(key, memory.sorted);
  if (key != detail::no_key && rank == k - 1) memory.threshold = key;
  if (key == detail::no_key && rank < k) memory.threshold = detail::no_key + 1;  // all of them write the same value
  block.sync(detail::Barrier::threshold);
  return memory.threshold;
}

/// The best of one key per thread.
template <class Block>
SLUICE_DEVICE detail::Key best_of_block(Block& block, ThresholdMemory<Block::threads>& memory, detail::Key best) {
  SLUICE_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) {
    auto const other = block.exchange(best, distance);
    best = other > best ? other : best;
  }
  if (block.lane() == 0) memory.sorted[block.warp()] = best;
  block.sync(detail::Barrier::sorted);
  for (int warp = 0; warp < Block::warps; ++warp) best = memory.sorted[warp] > best ? memory.sorted[warp] : best;
  return best;
}

}  // namespace sluice::inline v0::cuda::detail
