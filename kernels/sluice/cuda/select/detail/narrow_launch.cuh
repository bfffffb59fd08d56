// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts what leaves away keys before they are sorted.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda {

/// From `keys` to `narrowed`, their numbers to `sizes`; a block a line. Adds to the stream; defined in narrow_kernel.cuh, see
/// launch_lines().
/// \tparam Launch  OrderLaunch or SelectLaunch
/// \throws Error  of CUDA
template <class Launch>
void launch_narrowing(Launch const& launch, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/select/detail/narrow_kernel.cuh>
#endif
