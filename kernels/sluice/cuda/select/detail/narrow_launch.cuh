// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches the kernel that drops keys before the sort.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

/// Copies keys that matter from `keys` to `narrowed`, and their numbers to `sizes`; one block per line. Enqueues work;
/// defined in narrow_kernel.cuh, see launch_lines().
/// \tparam Launch  OrderLaunch or SelectLaunch
/// \throws Error  of CUDA
template <class Launch>
void launch_narrowing(Launch const& launch, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/select/detail/narrow_kernel.cuh>
#endif
