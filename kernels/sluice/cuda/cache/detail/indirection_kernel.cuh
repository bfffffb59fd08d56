// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of CacheIndirection.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/cache/cache_indirection.cuh>
#include <sluice/cuda/cache/detail/indirection_block.cuh>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>
#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// One block per tile of every group.
template <int threads>
__global__ void __launch_bounds__(threads, 4) indirection_kernel(__grid_constant__ IndirectionLaunch const launch) {
  using Block = DeviceBlock<threads>;
  __shared__ IndirectionMemory<threads> memory;
  Block block;
  IndirectionBlock<Block>(block, memory, launch, static_cast<std::int32_t>(blockIdx.x)).run();
}

template <int threads>
void launch_indirection(IndirectionLaunch const& launch, cudaStream_t stream) {
  auto const blocks = static_cast<unsigned>(launch.groups()) * static_cast<unsigned>(launch.tiles());
  indirection_kernel<threads><<<blocks, threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of CacheIndirection");
}

}  // namespace sluice::inline v0::cuda::detail
