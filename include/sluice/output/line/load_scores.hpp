// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scores of any float type as floats, with a bias added.
#pragma once

#include <sluice/output/simd/half.hpp>
#include <sluice/output/simd/simd.hpp>

#include <cstddef>
#include <type_traits>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// to[i] = x[i] + bias[i] for i < n; bias may be nullptr (none).
template <class T>
void load_scores(T const* x, float const* bias, std::size_t n, float* to) {
  std::size_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (bias == nullptr) {
      if (n > 0) __builtin_memmove(to, x, n * sizeof(float));
      return;
    }
    for (; i + simd::lanes <= n; i += simd::lanes) simd::store(to + i, simd::load(x + i) + simd::load(bias + i));
    for (; i < n; ++i) to[i] = x[i] + bias[i];
  } else {
    if constexpr (simd::is_half<T> || simd::is_bfloat16<T>) {
      for (; i + simd::lanes <= n; i += simd::lanes) {
        simd::Halves halves;
        __builtin_memcpy(&halves, x + i, sizeof(halves));
        if constexpr (simd::is_half<T>) simd::store(to + i, simd::from_half(halves));
        else simd::store(to + i, simd::from_bfloat16(halves));
      }
    }
    for (; i < n; ++i) to[i] = static_cast<float>(x[i]);
    if (bias != nullptr) load_scores(to, bias, n, to);
  }
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
