// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of a persistent thread block of LogSoftmaxTopK, which reads one part of a line after another.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/detail/line_block.cuh>
#include <sluice/cuda/line/detail/line_part.cuh>
#include <sluice/cuda/line/detail/line_ring.cuh>
#include <sluice/cuda/line/detail/line_ring_producer.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of such a block.
template <int threads>
struct RingBlockMemory {
  RingMemory<threads> ring;
  LineMemory<threads> line;
};

/// Parts first, first + step, ... of a launch without masks. No answer depends on which block takes a part, or when:
/// the block that finishes a line last merges it. The block has a warp more than Block::threads, which fills the ring.
/// \tparam many  false: k is 1
template <bool many, class Format, class Block>
SLUICE_DEVICE void run_parts(Block& block, RingBlockMemory<Block::threads>& memory, LineLaunch<Format> const& launch,
                             std::int32_t first, std::int32_t step) {
  using Ring = RingLoads<Format, Block>;
  static_assert(Block::producers == 32);
  typename Ring::Parts const parts(launch, step);
  Ring ring(memory.ring, parts);
  if (block.thread() == 0) ring.begin(block, first);
  block.sync_all(Barrier::ring);
  if (block.warp() == Block::warps) {
    if (block.lane() == 0) RingProducer<Format, Block>(memory.ring, parts).run(block, first);
    return;
  }
  while (ring.some()) {
    auto const part = ring.part();
    LineBlock<Format, many, false, Block, Ring&>(block, memory.line, launch, part.row, part.split, ring).run();
    ring.advance(block);
    block.sync(Barrier::answered);
  }
}

}  // namespace sluice::inline v0::cuda::detail
