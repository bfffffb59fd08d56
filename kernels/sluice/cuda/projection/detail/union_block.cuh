// SPDX-License-Identifier: Apache-2.0
/// \file
/// The later steps of unions: the result of each, the joint union, and its tokens in order.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a UnionBlock.
template <int threads>
struct UnionMemory {
  int warps[2][threads / 32];
  int differs;
};

/// After UnionWords: one block per union decides what its lines may give; other blocks form the joint union, one word
/// per thread; then one block lists its tokens.
template <class Block>
class UnionBlock {
 public:
  using Memory = UnionMemory<Block::threads>;

  SLUICE_DEVICE UnionBlock(Block& block, Memory& memory, UnionLaunch const& launch)
      : block_(block), memory_(memory), launch_(launch) {}

  /// The number of blocks that settle().
  SLUICE_HOST_DEVICE static std::int32_t settling(UnionLaunch const& launch) {
    return launch.unions + (launch.own != nullptr ? (launch.words + Block::threads - 1) / Block::threads : 0);
  }

  SLUICE_DEVICE void settle(std::int32_t number) {
    if (number < launch_.unions) settle_one(number);
    else join((number - launch_.unions) * Block::threads + block_.thread());
  }

  /// Lists all words in order, one tile of a word per thread at a time; a scan counts the bits before each word. Lists
  /// all tokens if that is wanted.
  SLUICE_DEVICE void list() {
    auto const thread = block_.thread();
    if (thread == 0) memory_.differs = 0;
    auto const whole = launch_.list_all != 0 && any_full();
    int base = 0;
    auto differs = false;
    for (int first = 0, tile = 0; first < launch_.words; first += Block::threads, ++tile) {
      auto const at = first + thread;
      auto word = at < launch_.words ? launch_.joint[at] : 0u;
      if (launch_.before != nullptr && at < launch_.words && launch_.before[at] != word) {
        differs = true;
        launch_.before[at] = word;
      }
      if (whole && at < launch_.words) word = low_bits(launch_.size - 32 * at);
      auto const mine = count_bits(word);
      auto before = 0, sum = mine;  // over the lower lanes; over 2, 4, 8, ... lanes
      SLUICE_UNROLL
      for (int distance = 1; distance < 32; distance *= 2) {
        auto const other = block_.exchange(sum, distance);
        if ((block_.lane() & distance) != 0) before += other;
        sum += other;
      }
      auto* const warps = memory_.warps[tile % 2];  // the other is still being read
      if (block_.lane() == 0) warps[block_.warp()] = sum;
      block_.sync(Barrier::scanned);
      auto* to = launch_.tokens + base + before;
      SLUICE_ROLLED
      for (int warp = 0; warp < Block::warps; ++warp) {
        if (warp < block_.warp()) to += warps[warp];
        base += warps[warp];
      }
      for (; word != 0; word &= word - 1) *to++ = static_cast<Token>(at * 32 + lowest_bit(word));
    }
    if (differs) block_.add(&memory_.differs, 1);
    block_.sync(Barrier::united);
    if (thread == 0) launch_.results[0] = {base, 0, memory_.differs > 0 ? 1 : 0};
  }

 private:
  /// Whether all tokens are active for any line; every warp checks for itself.
  SLUICE_DEVICE bool any_full() {
    auto full = launch_.without != 0;
    for (int u = block_.lane(); u < launch_.unions; u += 32) full = full || launch_.results[1 + u].part == 0;
    return block_.ballot(full) != 0;
  }

  SLUICE_DEVICE void join(std::int32_t at) {
    if (at >= launch_.words) return;
    std::uint32_t word = 0;
    SLUICE_UNROLL_4
    for (std::int32_t u = 0; u < launch_.unions; ++u) word |= launch_.mask(u)[at];
    launch_.joint[at] = word;
  }

  /// Lines may give only the union's tokens, unless these are too many, or fewer than a search asks for (tokens that a
  /// line lists, and those of them that it forbids; a mask may leave fewer), or the lines allow different sets, or a
  /// set acts after the softmax.
  SLUICE_DEVICE void settle_one(std::int32_t u) {
    auto const* const mask = launch_.mask(u);
    auto const set = launch_.allowed(u);
    auto active = 0, wanted = 1;
    for (int i = block_.thread(); i < launch_.words; i += Block::threads) active += count_bits(mask[i]);
    for (auto line = launch_.first_of(u) + block_.warp(); line < launch_.first_of(u + 1); line += Block::warps) {
      if (launch_.union_at(line) != u) continue;
      auto const& query = launch_.query(line);
      if (launch_.allowed(query) != set || (query.only >= 0 && query.only != set)) wanted = 0x7fffffff;
      if (set >= 0) continue;
      auto asked = 0;
      for (int i = block_.lane(); i < query.edit_count; i += 32) {
        auto const& edit = launch_.edits[query.edits + i];
        auto const token = static_cast<std::uint32_t>(edit.token);
        if (edit.add == minus_infinity && token < static_cast<std::uint32_t>(launch_.size) && has_bit(mask, token))
          ++asked;
      }
      SLUICE_UNROLL
      for (int distance = 16; distance > 0; distance /= 2) asked += block_.exchange(asked, distance);
      auto const listed = launch_.selects != nullptr ? launch_.selects[line].best : 0;
      asked += listed > query.best ? listed : query.best;
      wanted = asked > wanted ? asked : wanted;
    }
    SLUICE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) active += block_.exchange(active, distance);
    if (block_.lane() == 0) memory_.warps[0][block_.warp()] = active, memory_.warps[1][block_.warp()] = wanted;
    block_.sync(Barrier::united);
    if (block_.thread() != 0) return;
    SLUICE_ROLLED
    for (int warp = 1; warp < Block::warps; ++warp) {
      active += memory_.warps[0][warp];
      wanted = memory_.warps[1][warp] > wanted ? memory_.warps[1][warp] : wanted;
    }
    launch_.results[1 + u] = {active, active > 0 && active <= launch_.most && active >= wanted ? 1 : 0, 0};
  }

  Block& block_;
  Memory& memory_;
  UnionLaunch const& launch_;
};

}  // namespace sluice::inline v0::cuda::detail
