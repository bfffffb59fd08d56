// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transposes rows to columns.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// Units of four bytes: to[k * stride + i] = from[i][k] for first <= k < last; a row that is nullptr counts as zeros.
inline void transpose(std::array<std::byte const*, 4> const& from, std::ptrdiff_t first, std::ptrdiff_t last,
                      std::byte* to, std::ptrdiff_t stride) {
  using Four = float __attribute__((vector_size(16)));
  constexpr std::ptrdiff_t unit = 4;
  auto k = first;
  if (from[0] != nullptr && from[1] != nullptr && from[2] != nullptr && from[3] != nullptr) {
    for (; k + 4 <= last; k += 4) {
      Four row[4];
      for (std::size_t i = 0; i < 4; ++i) __builtin_memcpy(&row[i], from[i] + k * unit, sizeof(Four));
      auto const low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
      auto const high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
      auto const low2 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
      auto const high2 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      Four const column[4] = {
          __builtin_shufflevector(low, low2, 0, 1, 4, 5), __builtin_shufflevector(low, low2, 2, 3, 6, 7),
          __builtin_shufflevector(high, high2, 0, 1, 4, 5), __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
      for (std::ptrdiff_t i = 0; i < 4; ++i) __builtin_memcpy(to + (k + i) * stride * unit, &column[i], sizeof(Four));
    }
  }
  for (; k < last; ++k)
    for (std::size_t i = 0; i < 4; ++i) {
      auto* const place = to + (k * stride + static_cast<std::ptrdiff_t>(i)) * unit;
      if (from[i] == nullptr) std::memset(place, 0, unit);
      else std::memcpy(place, from[i] + k * unit, unit);
    }
}

/// The same for 32 rows at arbitrary addresses; `row(j)` is the first byte of row j, or nullptr. Writes to[k * 32 + j].
template <class Row>
void transpose_panel(Row const& row, std::ptrdiff_t units, std::byte* to) {
  constexpr std::ptrdiff_t rows = 32, unit = 4;
  constexpr std::ptrdiff_t part = 64;  // of a panel, written while it is in the L1 cache
  std::array<std::array<std::byte const*, 4>, rows / 4> from{};
  for (std::ptrdiff_t j = 0; j < rows; ++j)
    from[static_cast<std::size_t>(j / 4)][static_cast<std::size_t>(j % 4)] = row(j);
  for (std::ptrdiff_t k = 0; k < units; k += part) {
    auto const end = (std::min)(k + part, units);
    for (std::size_t j = 0; j < from.size(); ++j) {
      for (auto const* const line : from[j]) {
        // The rows are scattered, so the hardware prefetcher cannot predict them in time.
        for (auto next = end; line != nullptr && next < (std::min)(end + part, units); next += 16)
          __builtin_prefetch(line + next * unit);
      }
      transpose(from[j], k, end, to + static_cast<std::ptrdiff_t>(j) * 4 * unit, rows);
    }
  }
}

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
