// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches the kernels for lists of any length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/detail/line_order.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

// Each function enqueues work, allocates nothing and does not wait. Defined in line_order_kernel.cuh, see
// launch_lines(). They throw Error.

/// Makes keys of all scores, into `keys`.
template <class Format>
void launch_keys(OrderLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Makes the lists, from `sorted`.
template <class Format>
void launch_lists(OrderLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Sorts the keys of each of `rows` rows of `size`, best first. Defined in key_sort.cuh, for instances.cuh only. Returns where the
/// sorted keys will be: `keys` or `other`. Both are overwritten, so that no third buffer of their size is needed.
/// \param memory  of `bytes` bytes; nullptr: only writes the required size to `bytes`
/// \param sizes   device pointer: the number of keys at the start of each row; nullptr: all rows are full
template <class AnyKey>
AnyKey* sort_keys(void* memory, std::size_t& bytes, AnyKey* keys, AnyKey* other, std::int64_t rows, std::int64_t size,
                  std::int32_t const* sizes, cudaStream_t stream);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/line/detail/line_order_kernel.cuh>
#endif
