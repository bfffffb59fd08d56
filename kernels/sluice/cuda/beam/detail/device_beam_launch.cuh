// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts the kernels of DeviceBeam.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/device/detail/start.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr int beam_warps = 2;  ///< per block; one sentence each

/// One launch each. Defined in device_beam_kernel.cuh, which needs nvcc (see instances.cuh).
/// \throws Error  of CUDA
template <int warps>
void launch_beam_begin(BeamTask const& task, std::int32_t count, cudaStream_t stream);
template <int warps>
void launch_beam_advance(BeamTask const& task, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda::detail
