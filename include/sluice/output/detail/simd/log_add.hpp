// SPDX-License-Identifier: Apache-2.0
/// \file
/// log(exp(a) + exp(b)).
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/fused.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <limits>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace simd {

/// exp(x) for every lane x <= 0, relative error below 3e-7; 1e-38 for x below -87, including -infinity.
[[gnu::always_inline]] inline Vec precise_exp_of_negative(Vec x) {
  constexpr auto shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the lowest bits
  auto const bounded = (max)(Vec{} - 87.0f, x);
  auto const power = bounded * 1.44269504f + shift;
  auto const whole = power - shift;
  // log 2 in two parts; the first times any power here is exact (Cody and Waite).
  auto const rest = (bounded - whole * 0.693359375f) - whole * -2.12194440e-4f;  // in [-0.35, 0.35]
  // exp(rest) as a Taylor series; the first omitted term is 3e-9.
  auto value = rest * (1.0f / 5040) + 1.0f / 720;
  value = value * rest + 1.0f / 120;
  value = value * rest + 1.0f / 24;
  value = value * rest + 1.0f / 6;
  value = value * rest + 0.5f;
  value = value * rest + 1.0f;
  value = value * rest + 1.0f;
  return reinterpret_cast<Vec>(reinterpret_cast<Ints>(value) + (reinterpret_cast<Ints>(power) << 23));
}

/// log(1 + x) for every lane x in [0, 1], relative error below 3e-7.
[[gnu::always_inline]] inline Vec log_of_one_more(Vec x) {
  // 2 artanh s, where s = x / (2 + x) <= 1/3; the first omitted term of the series is 4e-9.
  auto const s = x / (x + 2.0f), square = s * s;
  auto value = square * (1.0f / 15) + 1.0f / 13;
  value = value * square + 1.0f / 11;
  value = value * square + 1.0f / 9;
  value = value * square + 1.0f / 7;
  value = value * square + 0.2f;
  value = value * square + 1.0f / 3;
  value = value * square + 1.0f;
  return 2.0f * s * value;
}

/// log(exp(a) + exp(b)) lane by lane. The error is a few units in the last place of the larger of a, b and of the
/// amount added to it (at most log 2). -infinity is the logarithm of zero.
[[gnu::always_inline]] inline Vec log_add(Vec a, Vec b) {
  constexpr auto finite = std::numeric_limits<float>::lowest();  // -infinity minus itself would be NaN
  auto const larger = (max)(a, b), smaller = a < b ? a : b;
  return larger + log_of_one_more(precise_exp_of_negative(smaller - (max)(larger, Vec{} + finite)));
}

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
