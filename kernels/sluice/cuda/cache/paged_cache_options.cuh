// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options of a PagedCache on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda {

/// Options of a cuda::PagedCache.
struct PagedCacheOptions {
  std::size_t elements_per_position = 0;  ///< > 0: for all layers together
  std::int32_t positions_per_page = 16;   ///< > 0
  std::int32_t planes = 1;      ///< > 0, a divisor of elements_per_position: the layout of a page (see PageView)
  std::int32_t max_pages = 0;   ///< > 0: all are allocated at once
  std::int32_t max_rows = 0;    ///< > 0: the most rows of a step
  std::int32_t max_length = 0;  ///< > 0: the most positions of a slot

  std::size_t plane_size() const {
    return elements_per_position / static_cast<std::size_t>(planes) * static_cast<std::size_t>(positions_per_page);
  }
  std::size_t page_size() const { return plane_size() * static_cast<std::size_t>(planes); }

  /// \throws std::invalid_argument  if an option is out of range
  void check(std::size_t element_bytes) const {
    require(elements_per_position > 0, "PagedCache: elements_per_position", elements_per_position, "must be > 0");
    require(positions_per_page > 0, "PagedCache: positions_per_page", positions_per_page, "must be > 0");
    require(planes > 0 && elements_per_position % static_cast<std::size_t>(planes) == 0, "PagedCache: planes", planes,
            "must divide elements_per_position");
    require(plane_size() * element_bytes % 16 == 0, "PagedCache: bytes of a plane", plane_size() * element_bytes,
            "must be a multiple of 16");
    require(page_size() * element_bytes / 16 < 0x7fffffff, "PagedCache: bytes of a page", page_size() * element_bytes,
            "must be below 2^35");
    require(max_pages > 0, "PagedCache: max_pages", max_pages, "must be > 0");
    require(max_rows > 0, "PagedCache: max_rows", max_rows, "must be > 0");
    require(max_length > 0, "PagedCache: max_length", max_length, "must be > 0");
  }
};

}  // namespace sluice::inline v0::cuda
