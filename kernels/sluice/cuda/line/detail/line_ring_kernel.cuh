// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of LogSoftmaxTopK with persistent blocks that read through rings, for sm_90 and newer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/relaxed_capture.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_ring_block.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sluice::inline v0::cuda::detail {

/// Persistent blocks that take parts in turn. Compiled for less than sm_90, it has no body; line_ring_blocks() says
/// whether it has one.
template <class Format, bool many>
__global__ void __launch_bounds__(line_threads + line_ring_producers, line_ring_blocks_at_once)
    line_ring_kernel(__grid_constant__ LineLaunch<Format> const launch) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  __trap();
#else
  using Block = DeviceBlock<line_threads, line_ring_producers>;
  extern __shared__ __align__(16) unsigned char line_ring_memory[];
  Block block;
  run_parts<many>(block, *reinterpret_cast<RingBlockMemory<line_threads>*>(line_ring_memory), launch,
                  static_cast<std::int32_t>(blockIdx.x), static_cast<std::int32_t>(gridDim.x));
#endif
}

template <class Format>
int line_ring_blocks() {
  RelaxedCapture const relaxed;  // the kernels may have to be loaded
  auto most = (std::numeric_limits<int>::max)();
  auto const prepare = [&](auto* kernel) {
    constexpr int bytes = sizeof(RingBlockMemory<line_threads>);
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    int blocks = 0;
    if (attributes.ptxVersion >= 90) {
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
      check(
          cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
          "cudaFuncSetAttribute");
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, line_threads + line_ring_producers, bytes),
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    }
    most = (std::min)(most, blocks);
  };
  prepare(&line_ring_kernel<Format, false>), prepare(&line_ring_kernel<Format, true>);
  return most;
}

/// For a launch with `ring`, after line_ring_blocks() has been called.
/// \throws Error  of CUDA
template <class Format>
void launch_ring(LineLaunch<Format> const& launch, cudaStream_t stream) {
  auto const blocks = static_cast<unsigned>((std::min)(launch.parts_here(), launch.ring));
  constexpr auto bytes = sizeof(RingBlockMemory<line_threads>);
  constexpr auto threads = line_threads + line_ring_producers;
  if (launch.k > 1) line_ring_kernel<Format, true><<<blocks, threads, bytes, stream>>>(launch);
  else line_ring_kernel<Format, false><<<blocks, threads, bytes, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of LogSoftmaxTopK");
}

}  // namespace sluice::inline v0::cuda::detail
