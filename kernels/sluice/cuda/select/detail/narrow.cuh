// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the best of a line's keys by counting digits, so that only these have to be sorted (a radix selection like AIR
/// top-k: Zhang et al. 2023, "Parallel Top-K Algorithms on GPU: A Comprehensive Study and New Methods").
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/select/detail/select_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a block.
template <int threads>
struct NarrowMemory {
  static constexpr int digit_bits = 11;
  int bins[1 << digit_bits];
  SumMemory<threads> sum;
  int digit, better, equal;  ///< the digit that the k-th best has; how many have a better one, and how many that
  int count;
};

/// Narrows a line of keys; all keys but no_key are distinct.
template <class Block>
class NarrowBlock {
 public:
  using Memory = NarrowMemory<Block::threads>;

  SLUICE_DEVICE NarrowBlock(Block& block, Memory& memory, Key const* keys, std::int32_t size)
      : block_(block), memory_(memory), keys_(keys), size_(size) {}

  /// The k-th best key, or one that few more keys reach; the lowest key if there are at most k.
  SLUICE_DEVICE Key bar(std::int32_t k) {
    constexpr std::int32_t few = 256;
    Key prefix = 0;
    auto shift = 64;
    for (;;) {
      auto const bits = shift < Memory::digit_bits ? shift : Memory::digit_bits;
      count(prefix, shift, bits);
      if (find(k) <= k) return no_key + 1;  // can happen only in the first round
      shift -= bits;
      prefix = prefix << bits | static_cast<Key>(memory_.digit);
      k -= memory_.better;
      if (memory_.equal - k <= few || shift == 0) break;
    }
    auto const least = prefix << shift;
    return least > no_key ? least : no_key + 1;
  }

  /// Copies all keys that reach `least`, in any order; returns their number.
  SLUICE_DEVICE std::int32_t gather(Key least, Key* to) {
    if (block_.thread() == 0) memory_.count = 0;
    block_.sync(Barrier::cleared);
    for (auto i = block_.thread(); i < size_; i += Block::threads)
      if (keys_[i] >= least) to[block_.add(&memory_.count, 1)] = keys_[i];
    block_.sync(Barrier::kept);
    auto const count = memory_.count;
    block_.sync(Barrier::spent);
    return count;
  }

 private:
  /// Counts, for each digit, the keys with this prefix that continue with it.
  SLUICE_DEVICE void count(Key prefix, int shift, int bits) {
    for (auto i = block_.thread(); i < 1 << Memory::digit_bits; i += Block::threads) memory_.bins[i] = 0;
    block_.sync(Barrier::cleared);
    for (auto i = block_.thread(); i < size_; i += Block::threads) {
      auto const key = keys_[i];
      if (key == no_key || (shift < 64 && key >> shift != prefix)) continue;
      auto const digit = static_cast<int>(key >> (shift - bits)) & ((1 << bits) - 1);
      block_.add(&memory_.bins[digit], 1);
    }
    block_.sync(Barrier::marked);
  }

  /// Finds the digit of the k-th best of these keys; returns the number of keys with it. Every thread reads adjacent
  /// digits, from the highest on.
  SLUICE_DEVICE std::int32_t find(std::int32_t k) {
    constexpr int each = (1 << Memory::digit_bits) / Block::threads;
    auto const highest = (1 << Memory::digit_bits) - 1 - each * block_.thread();
    auto mine = 0;
    for (int i = 0; i < each; ++i) mine += memory_.bins[highest - i];
    auto all = 0;
    auto better = sum_before(block_, memory_.sum, mine, all);
    for (int i = 0; i < each && better < k; ++i) {
      auto const equal = memory_.bins[highest - i];
      if (better + equal >= k) memory_.digit = highest - i, memory_.better = better, memory_.equal = equal;
      better += equal;
    }
    block_.sync(Barrier::reached);
    return all;
  }

  Block& block_;
  Memory& memory_;
  Key const* const keys_;
  std::int32_t const size_;
};

}  // namespace sluice::inline v0::cuda::detail
