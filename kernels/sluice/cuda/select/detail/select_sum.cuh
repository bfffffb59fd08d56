// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums over a block's threads, in an order that depends on nothing but their number.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/select/detail/wide.cuh>

namespace sluice::inline v0::cuda {

/// What they need of the block's shared memory.
template <int threads>
struct SumMemory {
  double sums[threads / 32];
  int counts[threads / 32];
};

/// The sum of one number per thread, the same in all of them.
template <class Block>
SLUICE_DEVICE double sum_in_block(Block& block, SumMemory<Block::threads>& memory, double mine) {
  SLUICE_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) mine = wide_sum(mine, block.exchange(mine, distance));
  if (block.lane() == 0) memory.sums[block.warp()] = mine;
  block.sync(Barrier::tallied);
  double sum = 0;
  SLUICE_ROLLED
  for (int warp = 0; warp < Block::warps; ++warp) sum = wide_sum(sum, memory.sums[warp]);
  block.sync(Barrier::spent);
  return sum;
}

/// The sum of the numbers of this thread and all before it, on top of `before`.
template <class Block>
SLUICE_DEVICE double sum_up_to(Block& block, SumMemory<Block::threads>& memory, double before, double mine) {
  auto all = mine;  // of as many lanes as have been met
  SLUICE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    auto const other = block.exchange(all, distance);
    if ((block.lane() & distance) != 0) mine = wide_sum(other, mine);
    all = wide_sum(all, other);
  }
  if (block.lane() == 0) memory.sums[block.warp()] = all;
  block.sync(Barrier::tallied);
  SLUICE_ROLLED
  for (int warp = 0; warp < block.warp(); ++warp) before = wide_sum(before, memory.sums[warp]);
  block.sync(Barrier::spent);
  return wide_sum(before, mine);
}

/// What warps before this one count on top of `before`; `mine`: what this one counts; `all`: what all do.
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

/// The sum of the numbers of all threads before this one; `all`: of all.
template <class Block>
SLUICE_DEVICE int sum_before(Block& block, SumMemory<Block::threads>& memory, int mine, int& all) {
  auto before = 0, together = mine;  // of as many lanes as have been met
  SLUICE_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    auto const other = block.exchange(together, distance);
    if ((block.lane() & distance) != 0) before += other;
    together += other;
  }
  return add_warps(block, memory, before, together, all);
}

/// How many threads before this one say yes; `all`: how many do.
template <class Block>
SLUICE_DEVICE int count_before(Block& block, SumMemory<Block::threads>& memory, bool yes, int& all) {
  auto const votes = block.ballot(yes);
  return add_warps(block, memory, count_bits(votes & low_bits(block.lane())), count_bits(votes), all);
}

/// The first thread that says yes; Block::threads if none does.
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

}  // namespace sluice::inline v0::cuda
