// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fills the ring through which a block reads.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/detail/line_ring.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Copies the parts of a block to its ring, stage after stage, as soon as all warps have read what a stage held. One
/// thread does this, in a warp of its own, so that no reader waits for other readers (CUTLASS, "Efficient GEMM", warp
/// specialisation).
template <class Format, class Block>
class RingProducer {
 public:
  using Memory = RingMemory<Block::threads>;
  using Parts = RingParts<Format, Block::threads>;

  SLUICE_DEVICE RingProducer(Memory& memory, Parts const& parts) : memory_(memory), parts_(parts) {}

  /// Copies everything that the block reads, beginning with part `first`.
  SLUICE_DEVICE void run(Block& block, std::int32_t first) {
    for (auto item = first; item < parts_.end(); item = parts_.after(item))
      if (parts_.reads(item)) copy(block, item);
  }

 private:
  /// Stages beyond the line's end are marked as filled.
  SLUICE_DEVICE void copy(Block& block, std::int32_t item) {
    LineReader<Format, false> const reader(parts_.launch(), parts_[item].row);
    auto const* const from = reader.aligned();  // the address of group 0
    auto const whole = reader.whole();          // the groups of the line that can be copied
    auto const part = parts_.groups(item);
    for (auto group = part.begin; group < part.end; group += Memory::groups) {
      // Before anybody has read it, a stage's mbarrier is as if a phase of odd parity had ended.
      block.wait(Barrier::emptied, &memory_.emptied[stage_], parity_);
      block.order_copies();
      auto const next = group + Memory::groups;
      auto const begin = whole.begin > group ? whole.begin : group;
      auto const end = whole.end < next ? whole.end : next;
      auto const bytes = begin < end ? (end - begin) * 16 + reader.copied_besides() : 0;
      block.arrive_expecting(&memory_.filled[stage_], bytes);
      if (bytes > 0)
        block.copy_bulk(memory_.stage[stage_] + (begin - group) * 16, from + std::uint64_t{begin} * 16, bytes,
                        &memory_.filled[stage_]);
      if (++stage_ == Memory::stages) stage_ = 0, parity_ ^= 1;
    }
  }

  Memory& memory_;
  Parts const parts_;
  std::uint32_t stage_ = 0;  // that is filled next
  unsigned parity_ = 1;      // of the phase of `emptied` that must have ended
};

}  // namespace sluice::inline v0::cuda::detail
