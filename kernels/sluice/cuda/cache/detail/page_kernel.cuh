// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of cuda::PagedCache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/cache/detail/page_copies.cuh>
#include <sluice/cuda/cache/paged_cache.cuh>
#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

template <int threads>
__global__ void __launch_bounds__(threads, 4) page_kernel(__grid_constant__ PageCopies const task) {
  DeviceBlock<threads> block;
  copy_pages(block, task, static_cast<std::int32_t>(blockIdx.x));
}

template <int threads>
void launch_page_copies(PageCopies const& task, cudaStream_t stream) {
  auto const blocks = static_cast<unsigned>(task.count) * static_cast<unsigned>(task.parts);
  page_kernel<threads><<<blocks, threads, 0, stream>>>(task);
  check(cudaGetLastError(), "the kernel of PagedCache");
}

}  // namespace sluice::inline v0::cuda::detail
