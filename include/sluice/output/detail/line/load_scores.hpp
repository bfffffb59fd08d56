// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads scores of any float type as floats, with a bias added.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/half.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <cstddef>
#include <type_traits>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Whether T is read as whole vectors.
template <class T>
inline constexpr bool has_vectors = std::is_same_v<T, float> || simd::is_half<T> || simd::is_bfloat16<T>;

/// x[0 .. simd::lanes).
template <class T>
[[gnu::always_inline]] inline simd::Vec load_vector(T const* x) {
  static_assert(has_vectors<T>);
  if constexpr (std::is_same_v<T, float>) {
    return simd::load(x);
  } else {
    simd::Halves halves;
    __builtin_memcpy(&halves, x, sizeof(halves));
    if constexpr (simd::is_half<T>) return simd::from_half(halves);
    else return simd::from_bfloat16(halves);
  }
}

/// to[i] = x[i] + bias[i] for i < n; bias may be nullptr (none).
template <class T>
void load_scores(T const* x, float const* bias, std::size_t n, float* to) {
  std::size_t i = 0;
  if constexpr (has_vectors<T>) {
    for (; i + simd::lanes <= n; i += simd::lanes)
      simd::store(to + i, bias == nullptr ? load_vector(x + i) : load_vector(x + i) + simd::load(bias + i));
  }
  for (; i < n; ++i) to[i] = static_cast<float>(x[i]) + (bias == nullptr ? 0 : bias[i]);
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
