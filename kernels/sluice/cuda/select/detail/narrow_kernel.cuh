// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel that drops keys before the sort.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/select/detail/narrow_launch.cuh>
#include <sluice/cuda/select/detail/select_narrow.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr int narrow_threads = 512;

template <class Launch>
__global__ void __launch_bounds__(narrow_threads, 2) narrow_kernel(__grid_constant__ Launch const launch) {
  __shared__ NarrowMemory<narrow_threads> memory;
  DeviceBlock<narrow_threads> block;
  await_earlier();
  narrow_line(block, memory, launch, static_cast<std::int32_t>(blockIdx.x));
}

template <class Launch>
void launch_narrowing(Launch const& lines, cudaStream_t stream, Start start) {
  launch<narrow_kernel<Launch>>(static_cast<unsigned>(lines.line.rows), narrow_threads, stream, start,
                                "the kernel that leaves away keys", lines);
}

}  // namespace sluice::inline v0::cuda::detail
