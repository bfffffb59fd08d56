// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scores of any float type as floats, with a bias added.
#pragma once

#include <sluice/output/simd/simd.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// to[i] = x[i] + bias[i] for i < n; bias may be nullptr (none).
template <class T>
void load_scores(T const* x, float const* bias, std::size_t n, float* to) {
  std::size_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (bias == nullptr) {
      std::copy_n(x, n, to);
      return;
    }
    for (; i + simd::lanes <= n; i += simd::lanes) simd::store(to + i, simd::load(x + i) + simd::load(bias + i));
    for (; i < n; ++i) to[i] = x[i] + bias[i];
  } else {
    if constexpr (std::is_same_v<T, Eigen::half>) {
      auto const size = static_cast<Eigen::Index>(n);
      Eigen::Map<Eigen::ArrayXf>(to, size) =
          Eigen::Map<Eigen::Array<Eigen::half, Eigen::Dynamic, 1> const>(x, size).template cast<float>();
    } else if constexpr (std::is_same_v<T, Eigen::bfloat16>) {
      using Halves = std::uint16_t __attribute__((vector_size(simd::lanes * sizeof(std::uint16_t))));
      using Bits = std::uint32_t __attribute__((vector_size(simd::lanes * sizeof(std::uint32_t))));
      for (; i + simd::lanes <= n; i += simd::lanes) {
        Halves halves;
        __builtin_memcpy(&halves, x + i, sizeof(halves));
        simd::store(to + i, reinterpret_cast<simd::Vec>(__builtin_convertvector(halves, Bits) << 16));
      }
      for (; i < n; ++i) to[i] = static_cast<float>(x[i]);
    } else {
      for (; i < n; ++i) to[i] = static_cast<float>(x[i]);
    }
    if (bias != nullptr) load_scores(to, bias, n, to);
  }
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
