// SPDX-License-Identifier: Apache-2.0
/// \file
/// The best of a line's keys in order: finds them by counting digits (a radix selection like AIR top-k: Zhang et al.
/// 2023, "Parallel Top-K Algorithms on GPU: A Comprehensive Study and New Methods"), so that only these are sorted.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/select/detail/block_sort.cuh>
#include <sluice/cuda/select/detail/select_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Threads of a block that makes lists: it has a multiprocessor to itself, and sorts 4,096 keys in shared memory. The
/// order of sums depends on it.
inline constexpr int list_threads = 512;

/// The shared memory of a block.
template <int threads>
struct NarrowMemory {
  static constexpr int digit_bits = 11;
  SortMemory<threads> sort;
  int bins[1 << digit_bits];
  SumMemory<threads> sum;
  int digit, better, equal;  ///< the digit that the k-th best has; how many have a better one, and how many that
  int count;
};

/// The best keys of a line, in order.
struct BestKeys {
  Key const* sorted = nullptr;
  std::int32_t count = 0;     ///< the best of the line
  std::int32_t together = 0;  ///< with the wanted ones behind them
  bool all = false;           ///< the line has no more
};

/// Narrows a line of keys; all keys but no_key are distinct.
template <class Block>
class NarrowBlock {
 public:
  using Memory = NarrowMemory<Block::threads>;
  using Sort = BlockSort<Block>;
  static constexpr std::int32_t few = Sort::most / 16;    ///< keys more than asked for
  static constexpr std::int32_t most = Sort::most - few;  ///< keys asked for, if a block sorts them in shared memory
  static constexpr std::int32_t usual = 3 * Sort::most / 16;  ///< keys asked for, if nobody knows how many are needed

  /// \param spare  as large as `keys`
  SLUICE_DEVICE NarrowBlock(Block& block, Memory& memory, Key* keys, Key* spare, std::int32_t size)
      : block_(block), memory_(memory), keys_(keys), spare_(spare), size_(size) {}

  /// The k best keys, or few more, in order; behind them those of `wanted` that are not among them. In shared memory,
  /// with the line's keys unchanged, if k + wanted_count <= most; else in the line's memory, or in the spare one.
  /// \param k       > 0
  /// \param wanted  keys of the line, in other memory
  SLUICE_DEVICE BestKeys best(std::int32_t k, Key const* wanted = nullptr, std::int32_t wanted_count = 0) {
    auto const least = k < size_ ? bar(k) : no_key + 1;
    auto const here = (k < size_ ? k : size_) <= most - wanted_count;
    auto* const to = here ? memory_.sort.keys : spare_;
    BestKeys found;
    found.all = least == no_key + 1;
    found.count = found.together = gather(keys_, size_, least, ~Key{}, 0, to);
    if (!found.all && wanted_count > 0)
      found.together = gather(wanted, wanted_count, no_key + 1, least, found.count, to);
    Sort sort(block_, memory_.sort);
    if (here) sort.sort(found.together), found.sorted = to;
    else found.sorted = sort.sort(spare_, keys_, found.together);
    return found;
  }

 private:
  /// The k-th best key, or one that at most `few` more reach; the lowest key if there are at most k.
  SLUICE_DEVICE Key bar(std::int32_t k) {
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

  /// Copies all keys in [least, bound), in any order, to to[before] and behind; returns how many are there then.
  SLUICE_DEVICE std::int32_t gather(Key const* keys, std::int32_t size, Key least, Key bound, std::int32_t before,
                                    Key* to) {
    if (block_.thread() == 0) memory_.count = before;
    block_.sync(Barrier::cleared);
    each(keys, size, [&](Key key) {
      if (key >= least && key < bound) to[block_.add(&memory_.count, 1)] = key;
    });
    block_.sync(Barrier::kept);
    auto const count = memory_.count;
    block_.sync(Barrier::spent);
    return count;
  }

  /// Calls use(key) for the thread's keys, several of which are on their way at once.
  template <class Use>
  SLUICE_DEVICE void each(Key const* keys, std::int32_t size, Use const& use) const {
    constexpr int ahead = 8;
    SLUICE_ROLLED
    for (std::int32_t i = 0; i < size; i += ahead * Block::threads) {  // no overflow: sizes end below 2^31 - 2^16
      Key some[ahead];
      SLUICE_UNROLL
      for (int j = 0; j < ahead; ++j) {
        auto const at = i + j * Block::threads + block_.thread();
        some[j] = at < size ? keys[at] : no_key;
      }
      SLUICE_UNROLL
      for (int j = 0; j < ahead; ++j) use(some[j]);
    }
  }

  /// Counts, for each digit, the keys with this prefix that continue with it.
  SLUICE_DEVICE void count(Key prefix, int shift, int bits) {
    for (auto i = block_.thread(); i < 1 << Memory::digit_bits; i += Block::threads) memory_.bins[i] = 0;
    block_.sync(Barrier::cleared);
    each(keys_, size_, [&](Key key) {
      if (key == no_key || (shift < 64 && key >> shift != prefix)) return;
      auto const digit = static_cast<int>(key >> (shift - bits)) & ((1 << bits) - 1);
      block_.add(&memory_.bins[digit], 1);
    });
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
  Key* const keys_;
  Key* const spare_;
  std::int32_t const size_;
};

}  // namespace sluice::inline v0::cuda::detail
