// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels behind lists of any length.
#pragma once

#include <sluice/cuda/block.cuh>
#include <sluice/cuda/error.cuh>
#include <sluice/cuda/line_order.cuh>
#include <sluice/cuda/line_order_launch.cuh>

#include <cub/device/device_segmented_radix_sort.cuh>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda {

inline constexpr int order_threads = 256;

template <class Format>
__global__ void __launch_bounds__(order_threads, 4) key_kernel(__grid_constant__ OrderLaunch<Format> const launch) {
  DeviceBlock<order_threads> block;
  write_keys(block, launch, static_cast<std::int32_t>(blockIdx.y), blockIdx.x, gridDim.x);
}

template <class Format>
__global__ void __launch_bounds__(order_threads, 4) list_kernel(__grid_constant__ OrderLaunch<Format> const launch) {
  DeviceBlock<order_threads> block;
  write_list(block, launch, static_cast<std::int32_t>(blockIdx.x));
}

template <class Format>
void launch_keys(OrderLaunch<Format> const& launch, cudaStream_t stream) {
  auto const groups = (launch.line.size + Format::wide - 1) / Format::wide;
  auto const parts = (groups + 4 * order_threads - 1) / (4 * order_threads);
  dim3 const blocks(static_cast<unsigned>(parts), static_cast<unsigned>(launch.line.rows));
  key_kernel<Format><<<blocks, order_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of keys");
}

template <class Format>
void launch_lists(OrderLaunch<Format> const& launch, cudaStream_t stream) {
  list_kernel<Format><<<static_cast<unsigned>(launch.line.rows), order_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of lists");
}

/// Where a row begins.
struct RowBegin {
  using difference_type = std::int64_t;
  using value_type = std::int64_t;
  using pointer = std::int64_t const*;
  using reference = std::int64_t;
  using iterator_category = std::random_access_iterator_tag;
  std::int64_t size, first;
  __host__ __device__ std::int64_t operator[](std::int64_t row) const { return (first + row) * size; }
  __host__ __device__ std::int64_t operator*() const { return first * size; }
  __host__ __device__ RowBegin operator+(std::int64_t rows) const { return {size, first + rows}; }
};

template <class AnyKey>
void sort_keys(void* memory, std::size_t& bytes, AnyKey const* keys, AnyKey* sorted, std::int64_t rows,
               std::int64_t size, cudaStream_t stream) {
  RowBegin const begin{size, 0};
  check(cub::DeviceSegmentedRadixSort::SortKeysDescending(memory, bytes, keys, sorted, rows * size, rows, begin,
                                                          begin + 1, 0, 8 * static_cast<int>(sizeof(AnyKey)), stream),
        "cub::DeviceSegmentedRadixSort");
}

}  // namespace sluice::inline v0::cuda
