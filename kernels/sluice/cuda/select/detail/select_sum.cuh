// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums over a block's threads, in an order that depends only on their number.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>

namespace sluice::inline v0::cuda::detail {

/// The shared memory that sums need.
template <int threads>
struct SumMemory {
  double sums[threads / 32];
  int counts[threads / 32];
};

/// The sum of one number per thread, returned to all threads.
template <class Block>
SLUICE_DEVICE double sum_in_block(Block& block, SumMemory<Block::threads>& memory, double mine) {
  SLUICE_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) mine = double_sum(mine, block.exchange(mine, distance));
  if (block.lane() == 0) memory.sums[block.warp()] = mine;
  block.sync(Barrier::tallied);
  double sum = 0;
  SLUICE_ROLLED
  for (int warp = 0; warp < Block::warps; ++warp) sum = double_sum(sum, memory.sums[warp]);
  block.sync(Barrier::spent);
  return sum;
}

/// The inclusive prefix sum over the threads, plus `before`.
template <class Block>
SLUICE_DEVICE double sum_up_to(Block& block, SumMemory<Block::threads>& memory, double before, double mine) {
  auto all = mine;  // over the lanes added so far
  SLUICE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    auto const other = block.exchange(all, distance);
    if ((block.lane() & distance) != 0) mine = double_sum(other, mine);
    all = double_sum(all, other);
  }
  if (block.lane() == 0) memory.sums[block.warp()] = all;
  block.sync(Barrier::tallied);
  SLUICE_ROLLED
  for (int warp = 0; warp < block.warp(); ++warp) before = double_sum(before, memory.sums[warp]);
  block.sync(Barrier::spent);
  return double_sum(before, mine);
}

/// The sum over earlier warps, plus `before`; `mine`: this warp's sum; `all`: the sum over all warps.
template <class Block>
SLUICE_DEVICE int add_warps(Block& block, SumMemory<Block::threads>& memory, int before, int mine, int& all) {
  if (block.lane() == 0) memory.counts[block.warp()] = mine;
  block.sync(Barrier::tallied);
  all = 0;
  SLUICE_ROLLED
  for (int warp = 0; warp < Block::warps; ++warp) {
    if (warp < block.warp()) before += memory.counts[warp];
    all += memory.counts[warp];
  }
  block.sync(Barrier::spent);
  return before;
}

/// The exclusive prefix sum over the threads; `all`: the total.
template <class Block>
SLUICE_DEVICE int sum_before(Block& block, SumMemory<Block::threads>& memory, int mine, int& all) {
  auto before = 0, together = mine;  // over the lanes added so far
  SLUICE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    auto const other = block.exchange(together, distance);
    if ((block.lane() & distance) != 0) before += other;
    together += other;
  }
  return add_warps(block, memory, before, together, all);
}

/// The number of earlier threads with a true value; `all`: of all threads.
template <class Block>
SLUICE_DEVICE int count_before(Block& block, SumMemory<Block::threads>& memory, bool yes, int& all) {
  auto const votes = block.ballot(yes);
  return add_warps(block, memory, count_bits(votes & low_bits(block.lane())), count_bits(votes), all);
}

/// The first thread with a true value; Block::threads if there is none.
template <class Block>
SLUICE_DEVICE int first_in_block(Block& block, SumMemory<Block::threads>& memory, bool yes) {
  auto const votes = block.ballot(yes);
  if (block.lane() == 0) memory.counts[block.warp()] = lowest_bit(votes);
  block.sync(Barrier::tallied);
  auto first = Block::threads;
  SLUICE_ROLLED
  for (int warp = Block::warps - 1; warp >= 0; --warp)
    if (memory.counts[warp] < 32) first = 32 * warp + memory.counts[warp];
  block.sync(Barrier::spent);
  return first;
}

}  // namespace sluice::inline v0::cuda::detail
