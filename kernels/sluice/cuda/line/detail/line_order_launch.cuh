// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts what lists of any length need.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/detail/line_order.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda {

// Each adds to the stream; nothing is allocated and nothing waited for. Defined in line_order_kernel.cuh, see
// launch_lines(). They throw Error.

/// All scores as keys, to `keys`.
template <class Format>
void launch_keys(OrderLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// The lists, from `sorted`.
template <class Format>
void launch_lists(OrderLaunch<Format> const& launch, cudaStream_t stream, Start start);
/// Sorts the keys of each of `rows` rows of `size`, best first. Defined in key_sort.cuh, for instances.cuh alone.
/// \param memory  of `bytes` bytes; nullptr: only tells in `bytes` how many are needed
/// \param sizes   of the device: how many keys each row begins with; nullptr: all rows are full
template <class AnyKey>
void sort_keys(void* memory, std::size_t& bytes, AnyKey const* keys, AnyKey* sorted, std::int64_t rows,
               std::int64_t size, std::int32_t const* sizes, cudaStream_t stream);

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/line/detail/line_order_kernel.cuh>
#endif
