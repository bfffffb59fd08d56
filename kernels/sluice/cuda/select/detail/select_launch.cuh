// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches further passes over lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

inline constexpr int select_threads = 256;  ///< of a block that makes keys

/// The number of blocks that share a line where keys are made: each thread has four groups of 16 bytes.
template <class Format>
std::int32_t select_parts(std::int32_t size) {
  auto const groups = (size + Format::wide - 1) / Format::wide;
  return (groups + 4 * select_threads - 1) / (4 * select_threads);
}

// Each function enqueues work, allocates nothing and does not wait. Defined in select_kernel.cuh, see launch_lines().
// They throw Error.

/// Makes the keys of all lines that need them. With `parts`, only the best of each part.
template <class Format>
void launch_select_keys(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Makes everything else from them, one block per line; overwrites them.
template <class Format>
void launch_selection(SelectLaunch<Format> const& launch, cudaStream_t stream, Start start);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/select/detail/select_kernel.cuh>
#endif
