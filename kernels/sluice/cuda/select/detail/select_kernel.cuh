// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels that make further passes over lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>
#include <sluice/cuda/select/detail/select_block.cuh>
#include <sluice/cuda/select/detail/select_keys.cuh>
#include <sluice/cuda/select/detail/select_launch.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

template <class Format>
__global__ void __launch_bounds__(select_threads, 3)
    select_key_kernel(__grid_constant__ SelectLaunch<Format> const launch) {
  DeviceBlock<select_threads> block;
  await_earlier();
  write_select_keys(block, launch, static_cast<std::int32_t>(blockIdx.y), blockIdx.x, gridDim.x);
}

template <class Format>
__global__ void __launch_bounds__(select_threads, 3)
    best_key_kernel(__grid_constant__ SelectLaunch<Format> const launch) {
  __shared__ ThresholdMemory<select_threads> memory;
  DeviceBlock<select_threads> block;
  await_earlier();
  write_best_key(block, memory, launch, static_cast<std::int32_t>(blockIdx.y), blockIdx.x);
}

template <class Format>
__global__ void __launch_bounds__(list_threads, 1) select_kernel(__grid_constant__ SelectLaunch<Format> const launch) {
  using Block = DeviceBlock<list_threads>;
  using Program = SelectBlock<Format, Block>;
  __shared__ typename Program::Memory memory;
  Block block;
  await_earlier();
  Program(block, memory, launch, static_cast<std::int32_t>(blockIdx.x)).run();
}

template <class Format>
void launch_select_keys(SelectLaunch<Format> const& lines, cudaStream_t stream, Start start) {
  auto const parts = lines.parts > 0 ? lines.parts : select_parts<Format>(lines.line.size);
  dim3 const blocks(static_cast<unsigned>(parts), static_cast<unsigned>(lines.line.rows));
  if (lines.parts > 0)
    launch<best_key_kernel<Format>>(blocks, select_threads, stream, start, "the kernel of draws", lines);
  else launch<select_key_kernel<Format>>(blocks, select_threads, stream, start, "the kernel of keys", lines);
}

template <class Format>
void launch_selection(SelectLaunch<Format> const& lines, cudaStream_t stream, Start start) {
  launch<select_kernel<Format>>(static_cast<unsigned>(lines.line.rows), list_threads, stream, start,
                                "the kernel of lists by probability", lines);
}

}  // namespace sluice::inline v0::cuda::detail
