// SPDX-License-Identifier: Apache-2.0
/// \file
/// A ring of stages in shared memory, through which a block reads one part of a line after the other.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/score_format.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// Five stages of 8 KB and what a block has besides (28 KB) are 69 KB: three blocks of 256 threads on a multiprocessor of 228 KB,
/// with 80 registers a thread. That is a block less than without a ring; but it is not registers, and so not threads, that hold
/// what is under way. Together they have up to 120 KB on their way; about 30 KB keep an H200's memory busy (4.8 TB/s, 0.8 us, 132
/// multiprocessors), and 120 KB last for four microseconds of selecting (estimates, not measured).
template <int threads>
struct RingMemory {
  static constexpr std::uint32_t stages = 5;
  static constexpr int loads =
      2;  ///< groups of a stage that each thread reads: what 16-bit scores have under way at once
  static constexpr std::uint32_t groups = loads * threads;
  static_assert(LineShape::loads % loads == 0, "a part is a number of stages");

  /// One group more than is counted: where a line is not aligned, each is cut from two.
  alignas(16) unsigned char stage[stages][(groups + 1) * 16];
  std::uint64_t filled[stages], emptied[stages];  ///< mbarriers

  /// The part that is read. Here, since registers are few.
  struct Part {
    std::int32_t item;
    std::uint32_t begin;  ///< its first group
    std::uint32_t turn;   ///< the stage where it begins; more by `stages` in phases of odd parity
  } now;

  /// What is copied next; the first thread's alone.
  struct Cursor {
    unsigned char const* from;  ///< where group 0 would be copied from
    GroupRange whole;           ///< of the line, those that can be copied
    GroupRange left;            ///< of the part, those to come
    std::uint32_t besides;      ///< bytes of every copy besides its groups
    std::int32_t item;
  } next;
};

/// The scores of the block's parts, in the order in which it takes them: part `first`, first + step, ... of a launch. While one
/// is selected from, the first stages of the next are on their way.
///
/// The first thread fills a stage again as soon as all warps have read it. What is not a whole group inside of the line (its
/// ends) does not go through the ring: every thread loads its own.
template <class Format, class Block>
class RingLoads {
 public:
  static constexpr int threads = Block::threads;
  using Memory = RingMemory<threads>;
  template <class, int count, bool many>
  static constexpr int ahead = count;  ///< it is the ring that is ahead

  SLUICE_DEVICE RingLoads(Block& block, Memory& memory, LineLaunch<Format> const& launch, std::int32_t first,
                          std::int32_t step)
      : memory_(memory), launch_(launch), step_(step) {
    if (block.thread() == 0) {
      for (std::uint32_t i = 0; i < Memory::stages; ++i)
        block.init_mbarrier(&memory.filled[i], 1), block.init_mbarrier(&memory.emptied[i], Block::warps);
      block.publish_mbarriers();
      memory.now = {first, groups(first).begin, 0};
      memory.next.item = first, memory.next.left = {};
      if (first < launch.parts_here()) open(first);
    }
    block.sync(Barrier::ring);
    if (block.thread() == 0)
      for (std::uint32_t i = 0; i < Memory::stages; ++i) fill(block, i);
  }

  /// Whether there is another part, and which.
  SLUICE_DEVICE bool some() const { return memory_.now.item < launch_.parts_here(); }
  SLUICE_DEVICE LinePartNumber part() const { return launch_.part(memory_.now.item); }

  /// Groups first, first + threads, ... of the part, by all threads of the block, from its begin to its end.
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
      if (block.thread() == 0) {
        block.wait(Barrier::emptied, &memory_.emptied[stage], parity);
        block.order_copies();
        fill(block, stage);
      }
    }
  }

  /// Goes on to the next part, once all of this one has been read and a barrier of the block has come since; another has to
  /// follow.
  SLUICE_DEVICE void advance(Block& block) {
    if (block.thread() != 0) return;
    auto& now = memory_.now;
    auto const part = groups(now.item);
    now.turn = (now.turn + (part.end - part.begin) / Memory::groups) % (2 * Memory::stages);
    now.item = launch_.parts_here() - now.item > step_ ? now.item + step_ : launch_.parts_here();
    now.begin = groups(now.item).begin;
  }

 private:
  /// Of a part; those behind the end of the line count.
  SLUICE_DEVICE GroupRange groups(std::int32_t item) const {
    auto const chunks = static_cast<std::int32_t>(LineShape::chunks<Format>(launch_.size, threads));
    auto const begin = launch_.part(item).split * launch_.chunks;
    auto const end = chunks - begin < launch_.chunks ? chunks : begin + launch_.chunks;
    constexpr auto chunk = LineShape::loads * threads;
    return {static_cast<std::uint32_t>(begin * chunk), static_cast<std::uint32_t>(end * chunk)};
  }

  /// Begins to copy a part.
  SLUICE_DEVICE void open(std::int32_t item) {
    LineReader<Format, false> const reader(launch_, launch_.part(item).row);
    auto& next = memory_.next;
    next = {reader.aligned(), reader.whole(), groups(item), reader.copied_besides(), item};
  }

  /// Adds the copy of what comes next; where that is nothing (behind the line's end), says that the stage is there. The first
  /// thread alone.
  SLUICE_DEVICE void fill(Block& block, std::uint32_t stage) {
    auto& next = memory_.next;
    if (next.left.begin == next.left.end) {
      if (launch_.parts_here() - next.item <= step_) return;  // there is none
      open(next.item + step_);
    }
    auto const group = next.left.begin;
    next.left.begin = group + Memory::groups;
    auto const begin = next.whole.begin > group ? next.whole.begin : group;
    auto const end = next.whole.end < next.left.begin ? next.whole.end : next.left.begin;
    auto const bytes = begin < end ? (end - begin) * 16 + next.besides : 0;
    block.arrive_expecting(&memory_.filled[stage], bytes);
    if (bytes > 0)
      block.copy_bulk(memory_.stage[stage] + (begin - group) * 16, next.from + std::uint64_t{begin} * 16, bytes,
                      &memory_.filled[stage]);
  }

  Memory& memory_;
  LineLaunch<Format> const& launch_;
  std::int32_t const step_;
};

}  // namespace sluice::inline v0::cuda
