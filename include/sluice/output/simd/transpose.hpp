// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rows to columns, four at a time.
#pragma once

#include <sluice/output/simd/simd.hpp>

#include <array>
#include <cstddef>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace packed {

/// to[k * stride + i] = from[i][k] for first <= k < last; a row that is nullptr counts as zeros.
inline void transpose(std::array<float const*, 4> const& from, std::ptrdiff_t first, std::ptrdiff_t last, float* to,
                      std::ptrdiff_t stride) {
  using Four = float __attribute__((vector_size(16)));
  auto k = first;
  if (from[0] != nullptr && from[1] != nullptr && from[2] != nullptr && from[3] != nullptr) {
    for (; k + 4 <= last; k += 4) {
      Four row[4];
      for (std::size_t i = 0; i < 4; ++i) __builtin_memcpy(&row[i], from[i] + k, sizeof(Four));
      auto const low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
      auto const high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
      auto const low2 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
      auto const high2 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      Four const column[4] = {
          __builtin_shufflevector(low, low2, 0, 1, 4, 5), __builtin_shufflevector(low, low2, 2, 3, 6, 7),
          __builtin_shufflevector(high, high2, 0, 1, 4, 5), __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
      for (std::ptrdiff_t i = 0; i < 4; ++i) __builtin_memcpy(to + (k + i) * stride, &column[i], sizeof(Four));
    }
  }
  for (; k < last; ++k)
    for (std::size_t i = 0; i < 4; ++i)
      to[k * stride + static_cast<std::ptrdiff_t>(i)] = from[i] == nullptr ? 0 : from[i][k];
}

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
