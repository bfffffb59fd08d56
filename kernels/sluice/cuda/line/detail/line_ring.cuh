// SPDX-License-Identifier: Apache-2.0
/// \file
/// A ring of stages in shared memory, through which a block reads one part of a line after another.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Five stages of 8 KB and the block's other shared memory (28 KB) take 69 KB: three blocks of 256 threads and a producer
/// warp on a multiprocessor with 228 KB, with 72 registers per thread. That is one block less than without a ring, but
/// data in flight needs no registers, and so no threads. Together they have up to 120 KB in flight. About 30 KB saturate
/// an H200's memory (4.8 TB/s, 0.8 us, 132 multiprocessors), and 120 KB cover four microseconds of selecting (estimates,
/// not measured).
template <int threads>
struct RingMemory {
  static constexpr std::uint32_t stages = 5;
  static constexpr int loads =
      2;  ///< groups of a stage that each thread reads: as many as 16-bit scores have in flight at once
  static constexpr std::uint32_t groups = loads * threads;
  static constexpr std::int32_t under_way = static_cast<std::int32_t>(stages * groups * 16);  ///< bytes
  static_assert(LineShape::loads % loads == 0, "a part is a number of stages");

  /// One group more than counted: in an unaligned line, each group is assembled from two.
  alignas(16) unsigned char stage[stages][(groups + 1) * 16];
  std::uint64_t filled[stages], emptied[stages];  ///< mbarriers

  /// The current part. Stored here, since registers are scarce.
  struct Part {
    std::int32_t item;
    std::uint32_t begin;  ///< its first group
    std::uint32_t turn;   ///< the stage where it begins, plus `stages` in phases of odd parity
  } now;
};

/// The parts that a block reads, in order: part `first`, first + step, ... of a launch.
template <class Format, int threads>
class RingParts {
 public:
  SLUICE_DEVICE RingParts(LineLaunch<Format> const& launch, std::int32_t step) : launch_(launch), step_(step) {}

  SLUICE_DEVICE LineLaunch<Format> const& launch() const { return launch_; }
  SLUICE_DEVICE std::int32_t end() const { return launch_.parts_here(); }
  SLUICE_DEVICE LinePartNumber operator[](std::int32_t item) const { return launch_.part(item); }
  /// Whether the part's line is read.
  SLUICE_DEVICE bool reads(std::int32_t item) const { return launch_.reads((*this)[item].row); }
  /// The part after this one; end(): none.
  SLUICE_DEVICE std::int32_t after(std::int32_t item) const { return end() - item > step_ ? item + step_ : end(); }

  /// The groups of a part, including those beyond the end of the line.
  SLUICE_DEVICE GroupRange groups(std::int32_t item) const {
    auto const chunks = static_cast<std::int32_t>(LineShape::chunks<Format>(launch_.size, threads));
    auto const begin = (*this)[item].split * launch_.chunks;
    auto const end = chunks - begin < launch_.chunks ? chunks : begin + launch_.chunks;
    constexpr auto chunk = LineShape::loads * threads;
    return {static_cast<std::uint32_t>(begin * chunk), static_cast<std::uint32_t>(end * chunk)};
  }

 private:
  LineLaunch<Format> const& launch_;
  std::int32_t const step_;
};

/// The scores of the block's parts, which a RingProducer copies to the stages: during a part's selection, the first stages
/// of the next part are in flight.
///
/// The line's ends, which are not whole groups, do not go through the ring: every thread loads its own.
template <class Format, class Block>
class RingLoads {
 public:
  static constexpr int threads = Block::threads;
  using Memory = RingMemory<threads>;
  using Parts = RingParts<Format, threads>;
  template <int count, bool>
  static constexpr int ahead = count;  ///< the ring reads ahead

  SLUICE_DEVICE RingLoads(Memory& memory, Parts const& parts) : memory_(memory), parts_(parts) {}

  /// Called by the first thread, before a barrier behind which the ring is used.
  SLUICE_DEVICE void begin(Block& block, std::int32_t first) {
    for (std::uint32_t i = 0; i < Memory::stages; ++i)
      block.init_mbarrier(&memory_.filled[i], 1), block.init_mbarrier(&memory_.emptied[i], Block::warps);
    block.publish_mbarriers();
    memory_.now = {first, parts_.groups(first).begin, 0};
  }

  /// Whether there is another part, and which one.
  SLUICE_DEVICE bool some() const { return memory_.now.item < parts_.end(); }
  SLUICE_DEVICE LinePartNumber part() const { return parts_[memory_.now.item]; }

  /// Groups first, first + threads, ... of the part; called by all threads of the block, from the part's begin to its
  /// end.
  template <int count, class Reader>
  SLUICE_DEVICE void load(Block& block, Reader const& reader, std::uint32_t first, Words (&words)[count]) {
    static_assert(count % Memory::loads == 0);
    auto const turn = memory_.now.turn + (first - memory_.now.begin) / Memory::groups;
    SLUICE_UNROLL
    for (int i = 0; i < count; i += Memory::loads) {
      auto const at = turn + static_cast<std::uint32_t>(i / Memory::loads);
      auto const stage = at % Memory::stages, parity = at / Memory::stages % 2;
      block.wait(Barrier::filled, &memory_.filled[stage], parity);
      auto const* const from = memory_.stage[stage] + 16 * block.thread();
      auto const group = first + static_cast<std::uint32_t>(i * threads);
      if (reader.inside(group, group + (Memory::loads - 1) * threads)) {
        SLUICE_UNROLL
        for (int j = 0; j < Memory::loads; ++j) words[i + j] = reader.lift(block, from + 16 * j * threads);
      } else {
        SLUICE_UNROLL
        for (std::uint32_t j = 0; j < Memory::loads; ++j) {
          auto const one = group + j * threads;
          words[static_cast<std::uint32_t>(i) + j] =
              reader.inside(one, one) ? reader.lift(block, from + 16 * j * threads) : reader.load_ragged(block, one);
        }
      }
      block.sync_warp(Barrier::lifted);
      if (block.lane() == 0) block.arrive(Barrier::emptied, &memory_.emptied[stage]);
    }
  }

  /// Continues with the next part. All of this part must have been read, if its line is read, followed by a barrier of
  /// the block.
  SLUICE_DEVICE void advance(Block& block) {
    if (block.thread() != 0) return;
    auto& now = memory_.now;
    auto const part = parts_.groups(now.item);
    if (parts_.reads(now.item)) now.turn = (now.turn + (part.end - part.begin) / Memory::groups) % (2 * Memory::stages);
    now.item = parts_.after(now.item);
    now.begin = parts_.groups(now.item).begin;
  }

 private:
  Memory& memory_;
  Parts const parts_;
};

}  // namespace sluice::inline v0::cuda::detail
