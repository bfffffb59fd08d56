// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of LogSoftmaxTopK.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/detail/line_block.cuh>
#include <sluice/cuda/line/detail/line_cluster_kernel.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_loads.cuh>
#include <sluice/cuda/line/detail/line_ring_kernel.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Blocks per multiprocessor, which limits registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
template <bool masked>
inline constexpr int line_residents = line_blocks_at_once - 1;
#else
template <bool masked>
inline constexpr int line_residents = DirectLoads::four_blocks<masked> ? line_blocks_at_once : line_blocks_at_once - 1;
#endif

/// One block per part of every line, the parts of a line adjacent.
template <class Format, bool many, bool masked>
__global__ void __launch_bounds__(line_threads, line_residents<masked>)
    line_kernel(__grid_constant__ LineLaunch<Format> const launch) {
  using Block = DeviceBlock<line_threads>;
  using Memory = LineMemory<line_threads>;
  __shared__ alignas(16) unsigned char memory[sizeof(Memory)];
  Block block;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const splits = launch.splits_here();
  auto const row = number / splits;
  await_earlier();
  LineBlock<Format, many, masked, Block>(block, *reinterpret_cast<Memory*>(memory), launch, row,
                                         launch.first_split + number - row * splits)
      .run();
}

/// Blocks that read through rings start after all earlier work has ended.
template <class Format>
void launch_lines(LineLaunch<Format> const& lines, cudaStream_t stream, Start start) {
  if (lines.ring > 0) return launch_ring(lines, stream);
  if (lines.clusters != 0) return launch_clusters(lines, stream, start);
  auto const blocks = static_cast<unsigned>(lines.rows) * static_cast<unsigned>(lines.splits_here());
  lines.with_variant([&]<bool many, bool masked> {
    launch<line_kernel<Format, many, masked>>(blocks, line_threads, stream, start, "the kernel of LogSoftmaxTopK",
                                              lines);
  });
}

}  // namespace sluice::inline v0::cuda::detail
