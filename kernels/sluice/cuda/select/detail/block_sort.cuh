// SPDX-License-Identifier: Apache-2.0
/// \file
/// A block's sort of keys: in shared memory as many as fit there, any number by merging tiles of these.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/detail/selection.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a block.
template <int threads>
struct SortMemory {
  static constexpr int each = 8;               ///< keys of a thread
  static constexpr int most = each * threads;  ///< keys that it can sort there
  Key keys[most];
  std::int32_t cuts[threads];  ///< where tiles of a merge begin, in the first of its two runs
};

/// Sorts distinct keys, best first. Every warp sorts 32; then runs are merged in pairs: a key's place is its own index
/// plus the number of better keys in the other run, found by binary search, so a merge has two barriers, whatever the
/// keys. All threads of a block call the functions together.
template <class Block>
class BlockSort {
 public:
  using Memory = SortMemory<Block::threads>;
  static constexpr int threads = Block::threads, each = Memory::each, most = Memory::most;

  SLUICE_DEVICE BlockSort(Block& block, Memory& memory) : block_(block), memory_(memory) {}

  /// The first `count` of Memory::keys, at most `most`, which the block has written before a barrier.
  SLUICE_DEVICE void sort(std::int32_t count) {
    auto const padded = (count + 31) / 32 * 32;
    SLUICE_ROLLED
    for (int at = block_.thread(); at - block_.lane() < padded; at += threads)  // a warp's lanes together
      memory_.keys[at] = sort_warp(block_, at < count ? memory_.keys[at] : no_key);
    block_.sync(Barrier::sorted);
    SLUICE_ROLLED
    for (std::int32_t width = 32; width < padded; width *= 2) {
      Key mine[each];
      SLUICE_UNROLL
      for (int i = 0; i < each; ++i) mine[i] = place_of_thread(i) < padded ? memory_.keys[place_of_thread(i)] : no_key;
      std::int32_t to[each];
      place(mine, width, to, [&](std::int32_t at) -> Run {
        auto const pair = at & ~(2 * width - 1), second = pair + width;
        auto const of_first = at < second;
        auto const rest = padded > second ? padded - second : 0;
        auto const length = !of_first ? width : rest < width ? rest : width;
        return {of_first ? second : pair, at < padded ? length : 0, of_first ? 0 : -width};
      });
      block_.sync(Barrier::placed);
      SLUICE_UNROLL
      for (int i = 0; i < each; ++i)
        if (place_of_thread(i) < padded) memory_.keys[to[i]] = mine[i];
      block_.sync(Barrier::ordered);
    }
  }

  /// Any number of keys in other memory, which the block has written before a barrier. Their passes: one for the tiles
  /// of `most`, then one for each doubling.
  /// \param other  as large as `keys`; both are overwritten
  /// \return where they are then
  SLUICE_DEVICE Key* sort(Key* keys, Key* other, std::int32_t count) {
    for (std::int32_t begin = 0; begin < count; begin += most) {
      auto const some = count - begin < most ? count - begin : most;
      for (int i = block_.thread(); i < some; i += threads) memory_.keys[i] = keys[begin + i];
      block_.sync(Barrier::loaded);
      sort(some);
      for (int i = block_.thread(); i < some; i += threads) keys[begin + i] = memory_.keys[i];
      block_.sync(Barrier::stored);
    }
    for (std::int64_t width = most; width < count; width *= 2) {
      merge(keys, other, width, count);
      auto* const swapped = keys;
      keys = other, other = swapped;
    }
    return keys;
  }

 private:
  /// What a key has to know to find its place among those of two adjacent runs.
  struct Run {
    std::int32_t other, length;  ///< where the other run is, and how many keys it has
    std::int32_t apart;          ///< its place among its own run's keys, minus the one where it is
  };

  SLUICE_DEVICE std::int32_t place_of_thread(int i) const { return i * threads + block_.thread(); }

  /// Where the keys at place_of_thread(i) go: behind the better ones of their own run and of the other. All searches are
  /// made at once: their reads do not wait for each other.
  /// \param longest  a power of two, at least the length of each run
  template <class RunOf>
  SLUICE_DEVICE void place(Key const (&mine)[each], std::int32_t longest, std::int32_t (&to)[each],
                           RunOf const& run_of) const {
    SLUICE_UNROLL
    for (int i = 0; i < each; ++i) to[i] = 0;
    SLUICE_ROLLED
    for (auto step = longest; step > 0; step /= 2) {
      SLUICE_UNROLL
      for (int i = 0; i < each; ++i) {
        auto const run = run_of(place_of_thread(i));
        auto const next = to[i] + step;
        if (next > run.length) continue;
        if (memory_.keys[run.other + next - 1] > mine[i])
          to[i] = next;  // fillers meet none: only the last 32 keys have any
      }
    }
    SLUICE_UNROLL
    for (int i = 0; i < each; ++i) to[i] += place_of_thread(i) + run_of(place_of_thread(i)).apart;
  }

  /// Merges runs of `width`, a multiple of `most`, in pairs: tile by tile of `most`, through shared memory.
  SLUICE_DEVICE void merge(Key const* from, Key* to, std::int64_t width, std::int32_t count) {
    constexpr std::int32_t round = threads - 1;
    auto const tiles = (count + most - 1) / most;
    SLUICE_ROLLED
    for (std::int32_t base = 0; base < tiles; base += round) {
      auto const tile = std::int64_t{base} + block_.thread();
      if (tile < tiles) memory_.cuts[block_.thread()] = cut(from, width, count, tile * most);
      block_.sync(Barrier::parted);
      SLUICE_ROLLED
      for (std::int32_t i = 0; i < round && base + i < tiles; ++i) {
        auto const begin = std::int64_t{base + i} * most, end = begin + most < count ? begin + most : count;
        auto const pair = begin / (2 * width) * (2 * width), second = pair + width;
        auto const last = end == count || end == pair + 2 * width;  // of the pair
        auto const in_first = count - pair < width ? count - pair : width;
        auto const first_begin = memory_.cuts[i],
                   first_end = last ? static_cast<std::int32_t>(in_first) : memory_.cuts[i + 1];
        merge_tile(from + pair + first_begin, first_end - first_begin, from + second + (begin - pair - first_begin),
                   static_cast<std::int32_t>(end - begin), to + begin);
      }
    }
  }

  /// How many keys of a pair's first run are among those of the pair that go before `at`.
  SLUICE_DEVICE std::int32_t cut(Key const* keys, std::int64_t width, std::int64_t count, std::int64_t at) const {
    auto const pair = at / (2 * width) * (2 * width), rest = count - pair;
    auto const in_first = rest < width ? rest : width;
    auto const in_second = rest - in_first < width ? rest - in_first : width;
    auto const before = at - pair;
    auto low = before > in_second ? before - in_second : 0, high = before < in_first ? before : in_first;
    auto const *const first = keys + pair, *const second = first + width;
    while (low < high) {
      auto const middle = low + (high - low) / 2;
      if (first[middle] > second[before - 1 - middle]) low = middle + 1;
      else high = middle;
    }
    return static_cast<std::int32_t>(low);
  }

  /// Merges `in_first` keys of one run with the next of the other, `count` in all.
  SLUICE_DEVICE void merge_tile(Key const* first, std::int32_t in_first, Key const* second, std::int32_t count,
                                Key* to) {
    Key mine[each];
    SLUICE_UNROLL
    for (int i = 0; i < each; ++i) {
      auto const at = place_of_thread(i);
      mine[i] = at >= count ? no_key : at < in_first ? first[at] : second[at - in_first];
      if (at < count) memory_.keys[at] = mine[i];
    }
    block_.sync(Barrier::loaded);
    std::int32_t places[each];
    place(mine, most, places, [&](std::int32_t at) -> Run {
      auto const of_first = at < in_first;
      auto const length = of_first ? count - in_first : in_first;
      return {of_first ? in_first : 0, at < count ? length : 0, of_first ? 0 : -in_first};
    });
    SLUICE_UNROLL
    for (int i = 0; i < each; ++i)
      if (place_of_thread(i) < count) to[places[i]] = mine[i];
    block_.sync(Barrier::stored);
  }

  Block& block_;
  Memory& memory_;
};

}  // namespace sluice::inline v0::cuda::detail
