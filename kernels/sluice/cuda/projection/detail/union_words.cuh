// SPDX-License-Identifier: Apache-2.0
/// \file
/// The first step of unions: some words of the mask of one.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/detail/line_edits.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a UnionWords block.
template <int threads>
struct UnionWordsMemory {
  std::int32_t clusters[threads];
};

/// One word of a union per thread of a block: the tokens that are always active, and the words of the lines' clusters;
/// then the tokens that lines activate individually: probes, and tokens whose scores they raise. A line without a
/// cluster (NaN) is in cluster 0.
template <class Block>
class UnionWords {
 public:
  using Memory = UnionWordsMemory<Block::threads>;

  /// The number of blocks for a union.
  SLUICE_HOST_DEVICE static std::int32_t slices(UnionLaunch const& launch) {
    return (launch.words + Block::threads - 1) / Block::threads;
  }
  /// \param number  of the block, in [0, unions * slices)
  SLUICE_DEVICE UnionWords(Block& block, Memory& memory, UnionLaunch const& launch, std::int32_t number)
      : block_(block),
        memory_(memory),
        launch_(launch),
        u_(number / slices(launch)),
        first_((number - u_ * slices(launch)) * Block::threads) {}

  SLUICE_DEVICE void run() {
    auto const set = launch_.allowed(u_);
    if (set >= 0) return copy(launch_.masks + set);
    cover();
    block_.sync(Barrier::covered);
    for (auto line = launch_.first_of(u_) + block_.warp(); line < launch_.first_of(u_ + 1); line += Block::warps)
      if (launch_.union_at(line) == u_) mark(launch_.query(line));
  }

 private:
  /// Copies a set in place of everything else.
  SLUICE_DEVICE void copy(std::uint32_t const* set) const {
    auto const at = first_ + block_.thread();
    if (at < launch_.words) launch_.mask(u_)[at] = set[at] & low_bits(launch_.size - 32 * at);
  }

  /// Combines the words of all clusters: loads cluster numbers to shared memory, as many at a time as fit.
  SLUICE_DEVICE void cover() {
    auto const at = first_ + block_.thread();
    auto const here = at < launch_.words;
    auto word = here ? launch_.always[at] : 0u;
    auto const begin = launch_.first_of(u_);
    auto const count = (launch_.first_of(u_ + 1) - begin) * launch_.nearest;
    SLUICE_ROLLED
    for (std::int32_t first = 0; first < count; first += Block::threads) {
      auto const mine = first + block_.thread();
      if (mine < count)
        memory_.clusters[block_.thread()] = fresh(begin + mine / launch_.nearest, mine % launch_.nearest);
      block_.sync(Barrier::named);
      auto const rest = count - first, tile = rest < Block::threads ? rest : Block::threads;
      SLUICE_UNROLL_4
      for (std::int32_t i = 0; i < tile; ++i) {
        auto const cluster = memory_.clusters[i];
        if (cluster >= 0 && here) word |= block_.read(launch_.clusters + std::int64_t{cluster} * launch_.words + at);
      }
      block_.sync(Barrier::taken);
    }
    if (here) launch_.mask(u_)[at] = word;
  }

  /// The n-th cluster of a line; -1 if it has none, or if the line before has it too, as is common in a beam.
  SLUICE_DEVICE std::int32_t fresh(std::int32_t line, std::int32_t n) const {
    auto const cluster = cluster_of(line, n);
    return line > launch_.first_of(u_) && cluster_of(line - 1, n) == cluster ? -1 : cluster;
  }
  SLUICE_DEVICE std::int32_t cluster_of(std::int32_t line, std::int32_t n) const {
    if (launch_.union_at(line) != u_) return -1;
    auto const count = launch_.found_of[line].count;
    if (count == 0) return n == 0 ? 0 : -1;
    return n < count ? launch_.found[std::int64_t{line} * launch_.nearest + n].token : -1;
  }

  /// Marks the tokens that lie in the block's words; run by one warp.
  SLUICE_DEVICE void mark(LineQuery const& query) {
    for (int i = block_.lane(); i < query.probe_count; i += 32) mark(launch_.probes[query.probes + i]);
    auto const* const edits = launch_.edits + query.edits;
    EditRange range{0, query.edit_count};
    if (launch_.ascending != 0) {
      auto const bound = [&](std::int32_t word) { return static_cast<std::uint32_t>(word) * 32; };
      range.begin = first_edit_of_warp(block_, edits, query.edit_count, bound(first_));
      range.end = first_edit_of_warp(block_, edits, query.edit_count, bound(first_ + Block::threads));
    }
    for (int i = range.begin + block_.lane(); i < range.end; i += 32)
      if (edits[i].add > 0 || edits[i].penalty < 1) mark(edits[i].token);
  }
  SLUICE_DEVICE void mark(Token token) {
    auto const at = static_cast<std::uint32_t>(token);
    if (at < static_cast<std::uint32_t>(launch_.size) && at / 32 - static_cast<std::uint32_t>(first_) < Block::threads)
      block_.set(launch_.mask(u_) + at / 32, 1u << (at % 32));
  }

  Block& block_;
  Memory& memory_;
  UnionLaunch const& launch_;
  std::int32_t const u_, first_;
};

}  // namespace sluice::inline v0::cuda::detail
