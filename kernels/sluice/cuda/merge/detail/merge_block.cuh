// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of one thread block of the merge of beams: selects the candidates with which one sentence continues.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a MergeBlock.
/// \tparam lines_, kept_  the most lines and kept candidates of a merged group
template <int lines_, int kept_>
struct MergeMemory {
  static constexpr int lines = lines_, kept = kept_;
  static constexpr int tile_keys = 16 * (lines | 1);
  /// The most entries left of sorted lists, see MergeBlock.
  static constexpr int most_survivors = [] {
    int count = 0;
    for (int i = 1; i <= most_listed && i <= kept; ++i) count += kept / i < lines ? kept / i : lines;
    return count;
  }();

  Key tile[tile_keys];                     ///< a tile of entries of all lists
  Key totals[most_survivors];              ///< keys of candidates that may be among the best,
  std::uint32_t ties[most_survivors];      ///< and the tie-breakers: line and index in its list
  alignas(8) int count;                    ///< their number
  std::uint32_t ended[(kept_ + 31) / 32];  ///< a bit for every kept candidate that ends
};

/// The `keep` best candidates of a group of sorted lists, by base + log_prob in double precision; ties in the order of
/// their lines, then of their lists: the candidates that a BeamSearch on the host would pick from the whole lists.
///
/// Compares the i-th entries of all lists. If r of them beat an entry, then so do the first i + 1 entries of each of
/// those r lists, and the i entries before it in its own list, so it can be among the best only if (i + 1) * (r + 1) <=
/// keep. (The rank of the list's head cannot replace r: a good head may be followed by bad entries.) Of 50 lists of 51,
/// at most 396 are left for keep = 100; these are ranked by counting. All steps are parallel, and no two candidates are
/// equal.
///
/// Costs O(lines * candidates / threads) comparisons.
template <class Memory, class Block>
class MergeBlock {
 public:
  static constexpr int threads = Block::threads;

  SLUICE_DEVICE MergeBlock(Block& block, Memory& memory, MergeLaunch const& launch, std::int32_t group)
      : block_(block), memory_(memory), launch_(launch), group_(launch.groups[group]) {}

  SLUICE_DEVICE void run() {
    if (launch_.told != nullptr) tell();
    if (group_.keep == 0) return copy();
    if (block_.thread() == 0) memory_.count = 0;
    if (launch_.places != nullptr)
      for (int i = block_.thread(); i < (Memory::kept + 31) / 32; i += threads) memory_.ended[i] = 0;
    auto const columns = launch_.k < group_.keep ? launch_.k : group_.keep;
    auto const most = Memory::tile_keys / stride();
    for (int first = 0; first < columns; first += most) {
      auto const count = columns - first < most ? columns - first : most;
      stage(first, count);
      block_.sync(Barrier::staged);
      select(first, count);
      block_.sync(Barrier::selected);
    }
    keep_best();
    if (launch_.places == nullptr) return;
    block_.sync(Barrier::ended);
    place();
  }

 private:
  struct Listed {
    double base;
    Candidate candidate;
  };

  /// Odd, to avoid bank conflicts in both directions of the tile.
  SLUICE_DEVICE int stride() const { return group_.lines | 1; }

  SLUICE_DEVICE Listed listed(int line, int i) const {
    auto const& at = launch_.lines[group_.first + line];
    return {at.base, launch_.best[std::int64_t{at.row} * launch_.k + i]};
  }
  SLUICE_DEVICE int length(int line) const { return launch_.results[launch_.lines[group_.first + line].row].count; }

  SLUICE_DEVICE static double total(Listed const& x) { return x.base + static_cast<double>(x.candidate.log_prob); }

  /// In the order of the numbers; NaN as -infinity.
  SLUICE_DEVICE static Key key_of(double total) {
    if (!(total == total)) total = static_cast<double>(minus_infinity);
    auto const bits = __builtin_bit_cast(std::uint64_t, total + 0.0);  // -0 becomes 0: they are equal
    auto const sign = std::uint64_t{1} << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }

  SLUICE_DEVICE void tell() {
    for (int line = block_.thread(); line < group_.lines; line += threads) {
      auto const row = launch_.lines[group_.first + line].row;
      launch_.told[row] = launch_.results[row];
    }
  }

  /// Copies a group that is not merged.
  SLUICE_DEVICE void copy() {
    for (int j = block_.thread(); j < group_.lines * launch_.k; j += threads) {
      auto const line = j / launch_.k, i = j - line * launch_.k;
      if (i < length(line)) write(group_.kept + j, line, listed(line, i));
    }
  }

  /// Loads entries first .. first + count - 1 of all lists into the tile, [count, stride].
  SLUICE_DEVICE void stage(int first, int count) {
    for (int j = block_.thread(); j < group_.lines * count; j += threads) {
      auto const line = j / count, i = j - line * count;
      memory_.tile[i * stride() + line] = first + i < length(line) ? key_of(total(listed(line, first + i))) : no_key;
    }
  }

  /// Lists the tile's entries that may be among the best.
  SLUICE_DEVICE void select(int first, int count) {
    for (int j = block_.thread(); j < group_.lines * count; j += threads) {
      auto const i = j / group_.lines, line = j - i * group_.lines;
      auto const* const column = memory_.tile + i * stride();
      auto const key = column[line];
      if (key == no_key) continue;
      auto const limit = group_.keep / (first + i + 1);
      int better = 0;
      if (limit < group_.lines) {
        SLUICE_UNROLL_4
        for (int other = 0; other < group_.lines; ++other)
          better += column[other] > key || (column[other] == key && other < line) ? 1 : 0;
      }
      if (better >= limit) continue;
      auto const at = static_cast<unsigned>(block_.add(&memory_.count, 1));
      if (at >= static_cast<unsigned>(Memory::most_survivors)) continue;  // cannot happen
      memory_.totals[at] = key;
      memory_.ties[at] = static_cast<std::uint32_t>(line * most_listed + first + i);
    }
  }

  SLUICE_DEVICE int survivors() const {
    return memory_.count < Memory::most_survivors ? memory_.count : Memory::most_survivors;
  }

  SLUICE_DEVICE void keep_best() {
    auto const count = survivors();
    for (int j = block_.thread(); j < count; j += threads) {
      auto const key = memory_.totals[j];
      auto const tie = memory_.ties[j];
      int rank = 0;
      SLUICE_UNROLL_4
      for (int other = 0; other < count; ++other)
        rank += memory_.totals[other] > key || (memory_.totals[other] == key && memory_.ties[other] < tie) ? 1 : 0;
      if (rank >= group_.keep) continue;
      auto const line = static_cast<int>(tie / most_listed);
      auto const x = listed(line, static_cast<int>(tie % most_listed));
      write(group_.kept + rank, line, x);
      if (launch_.places != nullptr && ends(x.candidate.token))
        block_.set(&memory_.ended[rank / 32], std::uint32_t{1} << (rank % 32));
    }
  }

  SLUICE_DEVICE void write(std::int32_t at, int line, Listed const& x) {
    launch_.kept[at] = {line, x.candidate.token, x.candidate.log_prob};
    if (launch_.totals != nullptr) launch_.totals[at] = total(x);
  }

  SLUICE_DEVICE bool ends(Token token) const {
    auto found = false;
    for (std::int32_t i = 0; i < launch_.end_count; ++i) found = found || launch_.ends[i] == token;
    return found;
  }

  /// Every kept candidate counts those of its kind that come before it.
  SLUICE_DEVICE void place() {
    auto const count = survivors() < group_.keep ? survivors() : group_.keep;
    for (int rank = block_.thread(); rank < count; rank += threads) {
      auto const word = memory_.ended[rank / 32], bit = std::uint32_t{1} << (rank % 32);
      auto ended = count_bits(word & (bit - 1));
      for (int i = 0; i < rank / 32; ++i) ended += count_bits(memory_.ended[i]);
      launch_.places[group_.kept + rank] = (word & bit) != 0 ? ~ended : rank - ended;
    }
  }

  Block& block_;
  Memory& memory_;
  MergeLaunch const& launch_;
  MergeGroup const group_;
};

}  // namespace sluice::inline v0::cuda::detail
