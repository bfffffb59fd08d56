// SPDX-License-Identifier: Apache-2.0
/// \file
/// Quantises a row of floats to 8 bits, the same on every processor.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace int8 {

namespace detail {

// A float of this size has no fraction bits, so adding it rounds to an integer, ties to even.
inline constexpr float whole = 12582912.0f;  // 1.5 * 2^23

inline std::int32_t nearest(float x) {
  return std::bit_cast<std::int32_t>(simd::rounded(x) + whole) - std::bit_cast<std::int32_t>(whole);
}

}  // namespace detail

/// Writes q[k] + shift, where q[k] in [-127, 127] is x[k] * (127 / max |x|) rounded to nearest, ties to even. Returns
/// max |x| / 127, the scale of q.
///
/// If the scale is below the smallest normal float, all q are 0 and it returns 0. If a number is not finite, all q are
/// 0 and it returns NaN.
template <class To>
float quantise(std::span<float const> x, To* q, int shift) {
  using simd::lanes;
  using Ints = std::int32_t __attribute__((vector_size(lanes * sizeof(std::int32_t))));
  using Narrow [[gnu::vector_size(lanes * sizeof(To))]] = To;
  constexpr std::int32_t infinity = 0x7f800000;
  auto const size = std::ssize(x);
  auto const whole = size / lanes * lanes;

  // Without the sign, floats have the same order as their bits.
  auto const bits = [&](std::ptrdiff_t k) __attribute__((always_inline)) {
    return reinterpret_cast<Ints>(simd::load(x.data() + k)) & 0x7fffffff;
  };
  auto const larger = [](Ints a, Ints b) __attribute__((always_inline)) { return a > b ? a : b; };
  Ints many[4] = {};  // four independent chains, since each step waits for the one before
  std::ptrdiff_t k = 0;
  for (; k + 4 * lanes <= size; k += 4 * lanes)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) many[i] = larger(many[i], bits(k + i * lanes));
  for (; k < whole; k += lanes) many[0] = larger(many[0], bits(k));
  auto const most = larger(larger(many[0], many[1]), larger(many[2], many[3]));
  std::int32_t largest = 0;
  for (int i = 0; i < lanes; ++i) largest = most[i] > largest ? most[i] : largest;
  for (; k < size; ++k)
    largest = (std::max)(largest, std::bit_cast<std::int32_t>(x[static_cast<std::size_t>(k)]) & 0x7fffffff);

  auto const scale = std::bit_cast<float>(largest) / 127;
  auto const finite = largest < infinity;
  if (!finite || scale < (std::numeric_limits<float>::min)()) {
    std::fill_n(q, size, static_cast<To>(shift));
    return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  auto const factor = 127 / std::bit_cast<float>(largest);
  k = 0;
#if defined(__AVX512BW__)
  if constexpr (sizeof(To) == 1) {
    // Packing two vectors into one takes fewer instructions than narrowing each, but mixes the quarters, which are
    // reordered here.
    constexpr __mmask16 all = 0xffff;  // GCC 12 warns that intrinsics without a mask read uninitialised values
    auto const order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    auto const number = [&](std::ptrdiff_t at) __attribute__((always_inline)) {
      return _mm512_maskz_cvtps_epi32(all, _mm512_mul_ps(_mm512_loadu_ps(x.data() + at), _mm512_set1_ps(factor)));
    };
    for (; k + 64 <= size; k += 64) {
      auto const low = _mm512_packs_epi32(number(k), number(k + 16));
      auto const high = _mm512_packs_epi32(number(k + 32), number(k + 48));
      auto const bytes = _mm512_maskz_permutexvar_epi32(all, order, _mm512_packs_epi16(low, high));
      _mm512_storeu_si512(q + k, _mm512_add_epi8(bytes, _mm512_set1_epi8(static_cast<char>(shift))));
    }
  }
#endif
  for (; k < whole; k += lanes) {
    auto const sum = simd::rounded(simd::load(x.data() + k) * factor) + detail::whole;
    auto const number = reinterpret_cast<Ints>(sum) - std::bit_cast<std::int32_t>(detail::whole) + shift;
    auto const narrow = __builtin_convertvector(number, Narrow);
    __builtin_memcpy(q + k, &narrow, sizeof(narrow));
  }
  for (; k < size; ++k) q[k] = static_cast<To>(detail::nearest(x[static_cast<std::size_t>(k)] * factor) + shift);
  return scale;
}

}  // namespace int8
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
