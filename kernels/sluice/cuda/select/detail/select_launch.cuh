// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches further passes over lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

// Each function enqueues work, allocates nothing and does not wait. Defined in select_kernel.cuh, see launch_lines().
// They throw Error.

/// Makes the keys of all lines that need them, into `keys`; their numbers into `sizes`.
template <class Format>
void launch_select_keys(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Reads the tokens drawn by noise, from `sorted`.
template <class Format>
void launch_draws(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Makes everything else, from `sorted`.
template <class Format>
void launch_selection(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/select/detail/select_kernel.cuh>
#endif
