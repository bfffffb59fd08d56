// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of verify().
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/verify/detail/verification_warp.cuh>
#include <sluice/cuda/verify/verification.cuh>
#include <sluice/cuda/verify/verify.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

template <int threads>
__global__ void __launch_bounds__(threads) verification_kernel(__grid_constant__ Verification const task) {
  DeviceBlock<threads> block;
  verify_block(block, task, static_cast<std::int32_t>(blockIdx.x));
}

template <int threads>
void launch_verification(Verification const& task, cudaStream_t stream) {
  constexpr int warps = threads / 32;
  auto const blocks = (static_cast<unsigned>(task.sentences) + warps - 1) / warps;
  verification_kernel<threads><<<blocks, threads, 0, stream>>>(task);
  check(cudaGetLastError(), "the kernel of verify");
}

}  // namespace sluice::inline v0::cuda::detail
