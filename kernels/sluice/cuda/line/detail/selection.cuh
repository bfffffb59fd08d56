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

inline constexpr int few_listed = 8;

/// The best key of a warp's lanes, in two reductions (redux.sync): of the high words, then of the low words of those
/// that have the highest.
template <class Block>
SLUICE_DEVICE detail::Key largest_of_warp(Block& block, detail::Key key) {
  auto const own = static_cast<std::uint32_t>(key >> 32);
  auto const high = block.largest(own);
  auto const low = block.largest(own == high ? static_cast<std::uint32_t>(key) : std::uint32_t{0});
  return static_cast<detail::Key>(high) << 32 | low;
}

/// threshold() for k <= few_listed. A warp finds its k best in k rounds; then one warp the k-th of these.
template <class Block>
SLUICE_DEVICE detail::Key few_threshold(Block& block, ThresholdMemory<Block::threads>& memory, detail::Key best,
                                        int k) {
  auto mine = detail::no_key;  // the lane's of the warp's best, in order
  auto left = best;
  SLUICE_ROLLED
  for (int i = 0; i < k; ++i) {
    auto const top = largest_of_warp(block, left);
    if (block.lane() == i) mine = top;
    if (left == top) left = detail::no_key;
  }
  if (block.lane() < few_listed) memory.sorted[few_listed * block.warp() + block.lane()] = mine;
  block.sync(detail::Barrier::sorted);
  if (block.warp() == 0) {  // the same again, over the warps' lists
    constexpr int of_lane = (few_listed * Block::warps + 31) / 32;
    detail::Key keys[of_lane];
    SLUICE_UNROLL
    for (int i = 0; i < of_lane; ++i) {
      auto const at = 32 * i + block.lane();
      keys[i] = at < few_listed * Block::warps ? memory.sorted[at] : detail::no_key;
    }
    auto top = detail::no_key;
    SLUICE_ROLLED
    for (int i = 0; i < k; ++i) {
      auto first = keys[0];
      SLUICE_UNROLL
      for (int j = 1; j < of_lane; ++j) first = keys[j] > first ? keys[j] : first;
      top = largest_of_warp(block, first);
      SLUICE_UNROLL
      for (int j = 0; j < of_lane; ++j) keys[j] = keys[j] == top ? detail::no_key : keys[j];
    }
    if (block.lane() == 0) memory.threshold = top != detail::no_key ? top : detail::no_key + 1;
  }
  block.sync(detail::Barrier::threshold);
  return memory.threshold;
}

/// The k-th best of one key per thread, each the thread's best: at least k keys of the block are as good, and only k
/// threads have any. If fewer than k threads have a key, the lowest key.
template <class Block>
SLUICE_DEVICE detail::Key threshold(Block& block, ThresholdMemory<Block::threads>& memory, detail::Key best, int k) {
  if (k <= few_listed) return few_threshold(block, memory, best, k);
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
