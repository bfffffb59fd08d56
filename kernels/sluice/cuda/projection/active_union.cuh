// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which tokens are active: the union of the tokens of the lines' clusters, as a bit for every token, and as a list.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/barrier.cuh>
#include <sluice/cuda/device/bits.cuh>
#include <sluice/cuda/device/host_device.cuh>
#include <sluice/cuda/device/key.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// What becomes of a union.
struct UnionResult {
  std::int32_t count = 0;  ///< active tokens
  std::int32_t wanted =
      1;  ///< that the searches ask for: the most that a line lists, and forbids among the active ones
  std::int32_t changed = 0;  ///< of the joint union: whether it is another than at the last call
};

/// The arguments of the three kernels; all pointers are the device's. Lines that share a union lie side by side.
struct UnionLaunch {
  std::int32_t words = 0;  ///< of a mask: ceil(V / 32)
  std::int32_t size = 0;   ///< V: tokens outside [0, V) are in no mask
  std::int32_t lines = 0, nearest = 1, unions = 0;

  std::uint32_t const* always = nullptr;   ///< [words]
  std::int64_t const* begin = nullptr;     ///< [clusters + 1], into
  Token const* cluster_tokens = nullptr;   ///< the tokens of each cluster
  Candidate const* found = nullptr;        ///< [lines, nearest]: the clusters of each line
  LineResult const* found_of = nullptr;    ///< [lines]: how many of them there are
  std::int32_t const* union_of = nullptr;  ///< [lines]; -1: none
  std::int32_t const* first = nullptr;     ///< [unions + 1]: where the lines of each begin
  LineQuery const* queries = nullptr;      ///< [lines]; edits and probes name tokens
  LineSelect const* selects = nullptr;     ///< [lines]: what takes another look at them, if anything does
  Edit const* edits = nullptr;
  Token const* probes = nullptr;

  std::uint32_t* joint = nullptr;   ///< [words]: what is active in any union
  std::uint32_t* own = nullptr;     ///< [unions, words]; nullptr: there is one union, the joint one
  std::uint32_t* before = nullptr;  ///< [words]: `joint` at the last call
  Token* tokens = nullptr;          ///< [V]: the joint union, ascending
  UnionResult* results = nullptr;   ///< [1 + unions]: of the joint union, of each

  SLUICE_HOST_DEVICE std::uint32_t* mask(std::int32_t u) const {
    return own != nullptr ? own + std::int64_t{u} * words : joint;
  }
};

SLUICE_DEVICE bool has_bit(std::uint32_t const* mask, std::uint32_t place) {
  return (mask[place / 32] >> (place % 32) & 1u) != 0;
}

/// Word `at` of all masks (the joint one, then every union's): what is active whatever the clusters say.
SLUICE_DEVICE void begin_union(UnionLaunch const& launch, std::int64_t at) {
  auto const word = launch.always[at % launch.words];
  if (at < launch.words) launch.joint[at] = word;
  else launch.own[at - launch.words] = word;
}

/// Marks what one line makes active: the tokens of its clusters, its probes, and tokens whose score it raises. A line without
/// a cluster (a NaN) is in cluster 0.
template <class Block>
SLUICE_DEVICE void mark_line(Block& block, UnionLaunch const& launch, std::int32_t line) {
  auto const u = launch.union_of[line];
  if (u < 0) return;
  auto const mark = [&](Token token) {
    auto const at = static_cast<std::uint32_t>(token);
    if (at >= static_cast<std::uint32_t>(launch.size)) return;
    block.set(launch.joint + at / 32, 1u << (at % 32));
    if (launch.own != nullptr) block.set(launch.mask(u) + at / 32, 1u << (at % 32));
  };
  auto const count = launch.found_of[line].count;
  for (std::int32_t n = 0; n < (count > 0 ? count : 1); ++n) {
    auto const cluster = count > 0 ? launch.found[std::int64_t{line} * launch.nearest + n].token : 0;
    auto const end = launch.begin[cluster + 1];
    for (auto i = launch.begin[cluster] + block.thread(); i < end; i += Block::threads)
      mark(block.read(launch.cluster_tokens + i));
  }
  auto const& query = launch.queries[line];
  for (int i = block.thread(); i < query.probe_count; i += Block::threads) mark(launch.probes[query.probes + i]);
  for (int i = block.thread(); i < query.edit_count; i += Block::threads) {
    auto const& edit = launch.edits[query.edits + i];
    if (edit.add > 0 || edit.penalty < 1) mark(edit.token);
  }
}

/// Shared by a block of UnionBlock.
template <int threads>
struct UnionMemory {
  int warps[2][threads / 32];
  int differs;
};

/// Block 0 lists the joint union, the others count one union each.
template <class Block>
class UnionBlock {
 public:
  using Memory = UnionMemory<Block::threads>;

  SLUICE_DEVICE UnionBlock(Block& block, Memory& memory, UnionLaunch const& launch)
      : block_(block), memory_(memory), launch_(launch) {}

  SLUICE_DEVICE void run(std::int32_t number) {
    if (number == 0) list();
    else count(number - 1);
  }

 private:
  /// All words in order, a tile of one word per thread at a time: the bits before a word are counted by a scan.
  SLUICE_DEVICE void list() {
    auto const thread = block_.thread();
    if (thread == 0) memory_.differs = 0;
    int base = 0;
    auto differs = false;
    for (int first = 0, tile = 0; first < launch_.words; first += Block::threads, ++tile) {
      auto const at = first + thread;
      auto word = at < launch_.words ? launch_.joint[at] : 0u;
      if (at < launch_.words && launch_.before[at] != word) {
        differs = true;
        launch_.before[at] = word;
      }
      auto const mine = count_bits(word);
      auto before = 0, sum = mine;  // of the lanes below, of the 2, 4, 8, ... lanes around
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
    if (thread == 0) launch_.results[0] = {base, 1, memory_.differs > 0 ? 1 : 0};
  }

  SLUICE_DEVICE void count(std::int32_t u) {
    auto const thread = block_.thread();
    auto const* const mask = launch_.mask(u);
    auto active = 0, wanted = 1;
    for (int i = thread; i < launch_.words; i += Block::threads) active += count_bits(mask[i]);
    for (int line = launch_.first[u] + thread; line < launch_.first[u + 1]; line += Block::threads) {
      if (launch_.union_of[line] != u) continue;
      auto const& query = launch_.queries[line];
      auto asked = query.best;
      if (launch_.selects != nullptr && launch_.selects[line].best > asked) asked = launch_.selects[line].best;
      for (int i = 0; i < query.edit_count; ++i) {
        auto const& edit = launch_.edits[query.edits + i];
        auto const token = static_cast<std::uint32_t>(edit.token);
        if (edit.add == minus_infinity && token < static_cast<std::uint32_t>(launch_.size) && has_bit(mask, token))
          ++asked;
      }
      wanted = asked > wanted ? asked : wanted;
    }
    SLUICE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) {
      active += block_.exchange(active, distance);
      auto const other = block_.exchange(wanted, distance);
      wanted = other > wanted ? other : wanted;
    }
    if (block_.lane() == 0) memory_.warps[0][block_.warp()] = active, memory_.warps[1][block_.warp()] = wanted;
    block_.sync(Barrier::united);
    if (thread != 0) return;
    SLUICE_ROLLED
    for (int warp = 1; warp < Block::warps; ++warp) {
      active += memory_.warps[0][warp];
      wanted = memory_.warps[1][warp] > wanted ? memory_.warps[1][warp] : wanted;
    }
    launch_.results[1 + u] = {active, wanted, 0};
  }

  Block& block_;
  Memory& memory_;
  UnionLaunch const& launch_;
};

}  // namespace sluice::inline v0::cuda
