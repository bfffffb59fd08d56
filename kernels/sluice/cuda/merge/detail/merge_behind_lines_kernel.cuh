// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of LogSoftmaxTopK followed by a merge of beams.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/detail/line_kernel.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines_launch.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Blocks per multiprocessor. The merge takes a few registers more than lists alone: with 16-bit scores, those of one
/// block.
template <class Format>
inline constexpr int merging_line_residents = Format::wide == 4 ? line_residents<false> : line_blocks_at_once - 1;

/// As line_kernel.
template <class Format>
__global__ void __launch_bounds__(line_threads, merging_line_residents<Format>)
    merging_line_kernel(__grid_constant__ LineLaunch<Format> const launch,
                        __grid_constant__ MergeBehindLaunch const behind) {
  using Block = DeviceBlock<line_threads>;
  using Program = MergingBlock<Format, SmallMerge, Block>;
  using Memory = typename Program::Memory;
  __shared__ alignas(16) unsigned char memory[sizeof(Memory)];
  Block block;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const row = number / launch.splits;
  await_earlier();
  Program(block, *reinterpret_cast<Memory*>(memory), launch, behind, row, number - row * launch.splits).run();
}

template <class Format>
void launch_merging_lines(LineLaunch<Format> const& lines, MergeBehindLaunch const& behind, cudaStream_t stream,
                          Start start) {
  auto const blocks = static_cast<unsigned>(lines.rows) * static_cast<unsigned>(lines.splits);
  launch<merging_line_kernel<Format>>(blocks, line_threads, stream, start, "the kernel of LogSoftmaxTopK, with a merge",
                                      lines, behind);
}

}  // namespace sluice::inline v0::cuda::detail
