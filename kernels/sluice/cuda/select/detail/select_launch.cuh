// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts what takes another look at lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda {

// Each adds to the stream; nothing is allocated and nothing waited for. Defined in select_kernel.cuh, see launch_lines(). They
// throw Error.

/// The keys of all lines that want some, to `keys`; how many, to `sizes`.
template <class Format>
void launch_select_keys(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// What noise has drawn, from `sorted`.
template <class Format>
void launch_draws(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// All else, from `sorted`.
template <class Format>
void launch_selection(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/select/detail/select_kernel.cuh>
#endif
