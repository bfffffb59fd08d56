// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the rows of a step find their keys and values in a paged KV cache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// For attention kernels: row i of the step, and its positions 0 .. length(i) - 1, including the new ones.
///
/// A page is [planes, positions, elements of a position / planes]: with one plane, position after position; with two,
/// for example, all keys, then all values.
template <class T>
struct PageView {
  T* pool = nullptr;                      ///< [pages, page_size]
  std::int32_t const* table = nullptr;    ///< [rows, stride]: the row's pages, in order
  std::int32_t const* lengths = nullptr;  ///< [rows]
  std::int32_t stride = 0;
  std::int32_t rows = 0;
  std::int32_t positions = 1;  ///< of a page
  std::int32_t planes = 1;     ///< of a page
  std::int64_t size = 0;       ///< elements of a position in one plane; page_size = planes * positions * size

  SLUICE_HOST_DEVICE std::int32_t length(std::int32_t row) const { return lengths[row]; }
  /// The page that holds the row's position.
  SLUICE_HOST_DEVICE T* page(std::int32_t row, std::int32_t position) const {
    auto const number = table[static_cast<std::int64_t>(row) * stride + position / positions];
    return pool + static_cast<std::int64_t>(number) * planes * positions * size;
  }
  /// The position's elements of one plane.
  SLUICE_HOST_DEVICE T* at(std::int32_t row, std::int32_t position, std::int32_t plane = 0) const {
    return page(row, position) + (static_cast<std::int64_t>(plane) * positions + position % positions) * size;
  }
};

}  // namespace sluice::inline v0::cuda
