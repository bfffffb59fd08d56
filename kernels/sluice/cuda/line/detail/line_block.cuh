// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of one thread block of LogSoftmaxTopK: reads its part of a line; the last block of a line makes the
/// line's answer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/line/detail/line_cluster.cuh>
#include <sluice/cuda/line/detail/line_loads.cuh>
#include <sluice/cuda/line/detail/line_part.cuh>
#include <sluice/cuda/line/detail/selection.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// A block reads its part of the line (LinePart). The block that finishes a line last merges the results of all, and no
/// block waits for another. Or the line's blocks are a cluster: they leave their results in the first one's shared
/// memory, wait for each other, and the first one merges.
///
/// Sums are added in an order that depends only on V and the type, and each addition is rounded, so answers do not
/// depend on how lines are split.
/// \tparam many    false: k is 1
/// \tparam masked  false: no query has a mask
/// \tparam Loads   how the part is read: DirectLoads, or RingLoads&
/// \tparam told    whether to store lists and results for other blocks, which this block notifies after a fence
/// \tparam clustered  the line's blocks are a cluster: suits_clusters()
template <class Format, bool many, bool masked, class Block, class Loads = DirectLoads, bool told = false,
          bool clustered = false>
class LineBlock : private LinePart<Format, many, masked, Block, Loads> {
  using Part = LinePart<Format, many, masked, Block, Loads>;
  using Part::base_, Part::block_, Part::chunks_, Part::launch_, Part::memory_, Part::reader_, Part::row_, Part::split_;
  using Part::rank_elements, Part::select, Part::select_one, Part::streamed;
  using Part::threads, Part::wide;

 public:
  using Memory = std::conditional_t<clustered, ClusterMemory<threads>, typename Part::Memory>;

  SLUICE_DEVICE LineBlock(Block& block, Memory& memory, LineLaunch<Format> const& launch, std::int32_t row,
                          std::int32_t split, Loads loads = {})
      : Part(block, memory, launch, row, split, loads) {}

  /// Runs the block; returns whether it has made the line's answer.
  SLUICE_DEVICE bool run() {
    if (!launch_.reads(row_)) {
      if (split_ == 0) finish({}, 0);
      block_.sync(Barrier::ranked);  // before a ring moves on
      return split_ == 0;
    }
    if constexpr (clustered) block_.arrive_cluster(Barrier::begun);
    auto const best = this->read(clustered || launch_.splits == 1);
    auto const asked = launch_.query(row_).best;
    auto const k = asked < launch_.k ? asked : launch_.k;
    auto found = 0;
    if (k > 0) found = many ? select(best, k) : select_one(best);
    if (k == 0 && (clustered || launch_.splits == 1)) block_.sync(Barrier::ranked);  // the sums are there
    if constexpr (clustered) return meet(k, found);
    if (launch_.splits == 1) {
      finish(sum([&](int i) { return memory_.sums[i]; }), found);
      return true;
    }
    if (tiled()) leave_probes();
    leave(k, found);
    if (!arrives_last()) return false;
    if (k > 0) found = many ? merge(k) : merge_one();
    auto const* const sums = launch_.sums + std::int64_t{row_} * chunks_ * Block::warps;
    finish(sum([&](int i) { return block_.load(sums + i); }), found);
    return true;
  }

 private:
  /// Leaves list and sums with the cluster's first block, which merges them.
  SLUICE_DEVICE bool meet(int k, int found) {
    block_.wait_cluster(Barrier::begun);  // only from then on is there the first block's memory
    for (int i = block_.thread(); i < k; i += threads)
      block_.store_first(&memory().left[i * launch_.splits + split_], i < found ? memory_.best[i] : no_key);
    auto const sums = launch_.chunks * Block::warps, first = split_ * sums;
    for (int i = block_.thread(); i < sums && first + i < chunks_ * Block::warps; i += threads)
      block_.store_first(&memory().all_sums[first + i], memory_.sums[i]);
    if (block_.thread() == 0) memory_.element_count = 0;
    block_.sync_cluster(Barrier::met);
    if (split_ != 0) return false;
    if (k > 0) found = many ? merge(k) : merge_one();
    finish(sum([&](int i) { return memory().all_sums[i]; }), found);
    return true;
  }
  SLUICE_DEVICE Memory& memory() const { return static_cast<Memory&>(memory_); }

  /// Number i of the lists that the blocks have left, rank after rank.
  SLUICE_DEVICE Key left(int i) {
    if constexpr (clustered) return memory().left[i];
    else return block_.load(keys() + i);
  }

  /// Writes the list to the workspace, for the line's last block.
  SLUICE_DEVICE void leave(int k, int found) {
    for (int i = block_.thread(); i < k; i += threads)
      block_.store(keys() + std::int64_t{i} * launch_.splits + split_, i < found ? memory_.best[i] : no_key);
    block_.sync(Barrier::written);
  }

  /// Writes the probes of the block's part, which is overwritten before the last block runs.
  SLUICE_DEVICE void leave_probes() {
    auto const& query = launch_.query(row_);
    for (int i = block_.thread(); i < query.probe_count; i += threads) {
      auto const at = query.probes + i;
      auto const place = static_cast<std::uint32_t>(launch_.probes[at]);
      if (place / wide - base_ < streamed()) block_.store(launch_.probe_parts + at, reader_.ranked(block_, place));
    }
  }

  /// Whether all other blocks of the line have written their lists. Fences are cumulative: one thread's, behind a barrier, releases what
  /// the whole block has stored, and in front of a barrier it acquires for the whole block (PTX ISA, "Memory Consistency Model").
  SLUICE_DEVICE bool arrives_last() {
    if (block_.thread() == 0) {
      auto const others = static_cast<unsigned>(launch_.splits - 1);
      block_.fence();
      memory_.last = block_.ticket(launch_.tickets + row_, others) == others ? 1 : 0;
      block_.fence();
      memory_.element_count = 0;
    }
    block_.sync(Barrier::ticket);
    return memory_.last != 0;
  }

  /// Neighbouring threads read neighbouring blocks' keys of one rank, which spreads the best keys over many threads.
  SLUICE_DEVICE int merge(int k) {
    auto const count = k * launch_.splits;
    auto best = no_key;
    for (int i = block_.thread(); i < count; i += threads) {
      auto const key = left(i);
      best = key > best ? key : best;
    }
    auto const bar = threshold(block_, memory_.threshold, best, k);
    if (best >= bar) {
      for (int i = block_.thread(); i < count; i += threads) {
        auto const key = left(i);
        if (key >= bar) memory_.elements[block_.add(&memory_.element_count, 1)] = key;
      }
    }
    block_.sync(Barrier::elements);
    return rank_elements(k);
  }

  SLUICE_DEVICE int merge_one() {
    auto best = no_key;
    for (int i = block_.thread(); i < launch_.splits; i += threads) {
      auto const key = left(i);
      best = key > best ? key : best;
    }
    best = best_of_block(block_, memory_.threshold, best);
    if (block_.thread() == 0) memory_.best[0] = best;
    block_.sync(Barrier::ranked);
    return best != no_key ? 1 : 0;
  }

  /// The line's sum, from the sums of its warps.
  template <class Read>
  SLUICE_DEVICE PartialSum sum(Read const& read) {
    auto const count = chunks_ * Block::warps;
    if (chunks_ <= LineShape::most_chunks) return sum_of(block_, count, read);
    return sum_of_block(block_, memory_.warp_sums, count, read);
  }

  /// Writes the line's answer.
  SLUICE_DEVICE void finish(PartialSum sum, int found) {
    auto const& query = launch_.query(row_);
    auto const valid = sum.sum == sum.sum;
    auto const normalise = query.normalise != 0 && sum.sum > 0;
    auto const maximum = normalise ? static_cast<double>(sum.maximum) : 0.0;
    auto const log_sum = normalise ? static_cast<double>(Block::log(sum.sum)) : 0.0;
    auto const log_prob = [&](float x) { return static_cast<float>(static_cast<double>(x) - maximum - log_sum); };
    if (!valid) found = 0;
    auto const thread = block_.thread();
    for (int i = thread; i < found; i += threads) {
      auto const key = memory_.best[i];
      auto const place = static_cast<Token>(place_of(key));
      auto const token = launch_.tokens != nullptr ? launch_.tokens[place] : place;
      put(launch_.best + std::int64_t{row_} * launch_.k + i, Candidate{token, log_prob(score_of(key))});
    }
    for (int i = thread; i < query.probe_count; i += threads) {
      auto const at = query.probes + i;
      auto const place = static_cast<std::uint32_t>(launch_.probes[at]);
      auto const left = tiled() && place < static_cast<std::uint32_t>(launch_.size);
      auto const x = left ? block_.load(launch_.probe_parts + at) : reader_.ranked(block_, place);
      launch_.probe_values[at] = valid ? log_prob(x) : not_a_number;
    }
    if (thread == 0 && launch_.totals != nullptr) launch_.totals[row_] = sum;
    if (thread == 0)
      put(launch_.results + row_, LineResult{found, valid ? 1 : 0, valid ? static_cast<float>(maximum + log_sum) : 0});
  }

  template <class Value>
  SLUICE_DEVICE void put(Value* to, Value const& value) {
    if constexpr (told) block_.store(to, value);
    else *to = value;
  }

  SLUICE_DEVICE bool tiled() const { return launch_.tile_splits > 0; }
  SLUICE_DEVICE Key* keys() const { return launch_.keys + std::int64_t{row_} * launch_.k * launch_.splits; }
};

}  // namespace sluice::inline v0::cuda::detail
