// SPDX-License-Identifier: Apache-2.0
/// \file
/// A warp that works independently.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/block.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

/// A block of 32 threads. Several may share one of the device's blocks, without waiting for each other.
struct DeviceWarp : DeviceBlock<32> {
  __device__ __forceinline__ int thread() const { return lane(); }
  __device__ __forceinline__ int warp() const { return 0; }
  __device__ __forceinline__ void sync(Barrier) { __syncwarp(); }
};

}  // namespace sluice::inline v0::cuda::detail
