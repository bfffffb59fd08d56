// SPDX-License-Identifier: Apache-2.0
/// \file
/// CUB's sort of keys. Only instances.cuh includes it; other files compiled by nvcc use the instances there. CUB
/// declares a namespace `cuda`, which makes `cuda` ambiguous after `using namespace sluice`.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/line/detail/line_order_launch.cuh>

#include <cub/device/device_segmented_radix_sort.cuh>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace sluice::inline v0::cuda::detail {

/// Where a row begins; with sizes, where its keys end.
struct RowBound {
  using difference_type = std::int64_t;
  using value_type = std::int64_t;
  using pointer = std::int64_t const*;
  using reference = std::int64_t;
  using iterator_category = std::random_access_iterator_tag;
  std::int64_t size, first;
  std::int32_t const* sizes = nullptr;  ///< [rows], the device's
  __host__ __device__ std::int64_t operator[](std::int64_t row) const {
    return (first + row) * size + (sizes != nullptr ? sizes[first + row] : 0);
  }
  __host__ __device__ std::int64_t operator*() const { return (*this)[0]; }
  __host__ __device__ RowBound operator+(std::int64_t rows) const { return {size, first + rows, sizes}; }
};

template <class AnyKey>
AnyKey* sort_keys(void* memory, std::size_t& bytes, AnyKey* keys, AnyKey* other, std::int64_t rows, std::int64_t size,
                  std::int32_t const* sizes, cudaStream_t stream) {
  RowBound const begin{size, 0}, end = sizes != nullptr ? RowBound{size, 0, sizes} : begin + 1;
  cub::DoubleBuffer<AnyKey> both(keys, other);  // with one buffer to read and one to write, CUB would want a third
  check(cub::DeviceSegmentedRadixSort::SortKeysDescending(memory, bytes, both, rows * size, rows, begin, end, 0,
                                                          8 * static_cast<int>(sizeof(AnyKey)), stream),
        "cub::DeviceSegmentedRadixSort");
  return both.Current();
}

}  // namespace sluice::inline v0::cuda::detail
