// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches the kernels for lists of any length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/select/detail/line_order.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

// Each function enqueues work, allocates nothing and does not wait. Defined in line_order_kernel.cuh, see
// launch_lines(). They throw Error.

/// Makes keys of all scores, into `keys`.
template <class Format>
void launch_keys(OrderLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Makes the lists from them, one block per line; overwrites them.
template <class Format>
void launch_lists(OrderLaunch<Format> const& launch, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/select/detail/line_order_kernel.cuh>
#endif
