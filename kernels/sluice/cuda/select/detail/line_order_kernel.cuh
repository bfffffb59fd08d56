// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels for lists of any length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/select/detail/line_order.cuh>
#include <sluice/cuda/select/detail/line_order_launch.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr int order_threads = 256;

template <class Format>
__global__ void __launch_bounds__(order_threads, 4) key_kernel(__grid_constant__ OrderLaunch<Format> const launch) {
  DeviceBlock<order_threads> block;
  await_earlier();
  write_keys(block, launch, static_cast<std::int32_t>(blockIdx.y), blockIdx.x, gridDim.x);
}

template <class Format>
__global__ void __launch_bounds__(list_threads, 1) list_kernel(__grid_constant__ OrderLaunch<Format> const launch) {
  __shared__ NarrowMemory<list_threads> memory;
  DeviceBlock<list_threads> block;
  await_earlier();
  write_list(block, memory, launch, static_cast<std::int32_t>(blockIdx.x));
}

template <class Format>
void launch_keys(OrderLaunch<Format> const& lines, cudaStream_t stream, Start start) {
  auto const groups = (lines.line.size + Format::wide - 1) / Format::wide;
  auto const parts = (groups + 4 * order_threads - 1) / (4 * order_threads);
  dim3 const blocks(static_cast<unsigned>(parts), static_cast<unsigned>(lines.line.rows));
  launch<key_kernel<Format>>(blocks, order_threads, stream, start, "the kernel of keys", lines);
}

template <class Format>
void launch_lists(OrderLaunch<Format> const& lines, cudaStream_t stream, Start start) {
  launch<list_kernel<Format>>(static_cast<unsigned>(lines.line.rows), list_threads, stream, start,
                              "the kernel of lists", lines);
}

}  // namespace sluice::inline v0::cuda::detail
