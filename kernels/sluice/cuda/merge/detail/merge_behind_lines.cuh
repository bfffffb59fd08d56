// SPDX-License-Identifier: Apache-2.0
/// \file
/// The merge of beams in the block that finishes the last line of a group.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/detail/line_block.cuh>
#include <sluice/cuda/line/detail/line_loads.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/detail/merge_block.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The line kernel's arguments for the merge; all pointers are device pointers. Every row is a line of one group.
struct MergeBehindLaunch {
  MergeLaunch merge{};                     ///< for lists and results of the same launch
  std::int32_t const* group_of = nullptr;  ///< [rows]; null: every `each` adjacent rows form a group, used or not
  std::int32_t each = 0;
  unsigned* tickets = nullptr;  ///< [group_count], zero; zero again afterwards
};

/// The part of a LineTask in host memory.
struct MergeBehindTask {
  MergeBehindLaunch launch;
  bool merged = false;  ///< set if the launch that makes the lists also merges them
};

/// The shared memory of a block: for a line first, then perhaps for a merge.
/// \tparam Merge  a MergeMemory
template <int threads, class Merge>
union MergeBehindMemory {
  LineMemory<threads> line;
  struct {
    Merge merge;
    int last;
  } behind;
};

/// A block's part of a line (LineBlock), with lists. If this finishes the last line of a group, the block also merges
/// the group (MergeBlock), as a separate launch would. No block waits for another.
template <class Format, class Merge, class Block>
class MergingBlock {
 public:
  using Memory = MergeBehindMemory<Block::threads, Merge>;

  SLUICE_DEVICE MergingBlock(Block& block, Memory& memory, LineLaunch<Format> const& launch,
                             MergeBehindLaunch const& behind, std::int32_t row, std::int32_t split)
      : block_(block), memory_(memory), launch_(launch), behind_(behind), row_(row), split_(split) {}

  /// Whether the block has merged a group.
  SLUICE_DEVICE bool run() {
    if (!LineBlock<Format, true, false, Block, DirectLoads, true>(block_, memory_.line, launch_, row_, split_).run())
      return false;
    auto const group = behind_.group_of != nullptr ? behind_.group_of[row_] : row_ / behind_.each;
    if (!arrives_last(group)) return false;
    MergeBlock<Merge, Block>(block_, memory_.behind.merge, behind_.merge, group).run();
    return true;
  }

 private:
  /// Whether all other lines of the group are finished. Fences as in LineBlock.
  SLUICE_DEVICE bool arrives_last(std::int32_t group) {
    block_.sync(Barrier::told);
    if (block_.thread() == 0) {
      auto const rows = behind_.group_of != nullptr ? behind_.merge.groups[group].lines : behind_.each;
      auto const others = static_cast<unsigned>(rows - 1);
      block_.fence();
      memory_.behind.last = block_.ticket(behind_.tickets + group, others) == others ? 1 : 0;
      block_.fence();
    }
    block_.sync(Barrier::joined);
    return memory_.behind.last != 0;
  }

  Block& block_;
  Memory& memory_;
  LineLaunch<Format> const& launch_;
  MergeBehindLaunch const& behind_;
  std::int32_t row_, split_;
};

}  // namespace sluice::inline v0::cuda::detail
