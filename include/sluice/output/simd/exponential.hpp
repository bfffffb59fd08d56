// SPDX-License-Identifier: Apache-2.0
/// \file
/// e to the power of what is not positive, for sums of exponentials.
#pragma once

#include <sluice/output/simd/simd.hpp>

#include <cstdint>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace simd {

/// exp(x) for every lane x <= 0, within 2e-7 (1 + |x|) of itself; 1e-38 for whatever is below -87, -infinity too. exp(0)
/// is 1. Half of what an exp for all arguments costs.
[[gnu::always_inline]] inline Vec exp_of_negative(Vec x) {
  using Ints = std::int32_t __attribute__((vector_size(sizeof(Vec))));
  constexpr auto shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the lowest bits
  auto const power = max(Vec{} - 126.0f, x * 1.44269504f);
  auto const rounded = power + shift;
  auto const rest = power - (rounded - shift);  // in [-0.5, 0.5]
  // 2^rest, within 1e-7 of itself: minimax under the condition that 2^0 is 1.
  auto value = rest * 1.326473879e-3f + 9.671516667e-3f;
  value = value * rest + 5.550733753e-2f;
  value = value * rest + 2.402224202e-1f;
  value = value * rest + 6.931469776e-1f;
  value = value * rest + 1.0f;
  return reinterpret_cast<Vec>(reinterpret_cast<Ints>(value) + (reinterpret_cast<Ints>(rounded) << 23));
}

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
