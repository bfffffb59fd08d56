// SPDX-License-Identifier: Apache-2.0
/// \file
/// A row of floats in 8 bits, the same on every processor.
#pragma once

#include <sluice/output/simd/simd.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace int8 {

namespace detail {

// A float of this size has no bits behind the point, so that an addition rounds to a whole number, of two the even one.
inline constexpr float whole = 12582912.0f;  // 1.5 * 2^23

inline std::int32_t nearest(float x) {
  return std::bit_cast<std::int32_t>(simd::rounded(x) + whole) - std::bit_cast<std::int32_t>(whole);
}

}  // namespace detail

/// Writes q[k] + shift, where q[k] in [-127, 127] is x[k] * (127 / max |x|) rounded to the nearest number, of two the
/// even one. Returns max |x| / 127, what a q of 1 stands for.
///
/// Where that is less than the smallest normal float, all q are 0 and it is 0; where a number is no finite one, all q
/// are 0 and it is NaN.
template <class To>
float quantise(std::span<float const> x, To* q, int shift) {
  using simd::lanes;
  using Ints = std::int32_t __attribute__((vector_size(lanes * sizeof(std::int32_t))));
  using Narrow [[gnu::vector_size(lanes * sizeof(To))]] = To;
  constexpr std::int32_t infinity = 0x7f800000;
  auto const size = std::ssize(x);
  auto const whole = size / lanes * lanes;

  // Without their sign, floats are ordered as their bits are.
  Ints most{};
  for (std::ptrdiff_t k = 0; k < whole; k += lanes) {
    auto const bits = reinterpret_cast<Ints>(simd::load(x.data() + k)) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  std::int32_t largest = 0;
  for (int i = 0; i < lanes; ++i) largest = most[i] > largest ? most[i] : largest;
  for (auto k = whole; k < size; ++k) {
    auto const bits = std::bit_cast<std::int32_t>(x[static_cast<std::size_t>(k)]) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }

  auto const scale = std::bit_cast<float>(largest) / 127;
  auto const finite = largest < infinity;
  if (!finite || scale < std::numeric_limits<float>::min()) {
    for (std::ptrdiff_t k = 0; k < size; ++k) q[k] = static_cast<To>(shift);
    return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  auto const factor = 127 / std::bit_cast<float>(largest);
  for (std::ptrdiff_t k = 0; k < whole; k += lanes) {
    auto const sum = simd::rounded(simd::load(x.data() + k) * factor) + detail::whole;
    auto const number = reinterpret_cast<Ints>(sum) - std::bit_cast<std::int32_t>(detail::whole) + shift;
    auto const narrow = __builtin_convertvector(number, Narrow);
    __builtin_memcpy(q + k, &narrow, sizeof(narrow));
  }
  for (auto k = whole; k < size; ++k)
    q[k] = static_cast<To>(detail::nearest(x[static_cast<std::size_t>(k)] * factor) + shift);
  return scale;
}

}  // namespace int8
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
