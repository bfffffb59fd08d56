// SPDX-License-Identifier: Apache-2.0
/// \file
/// Converts 16-bit floats to floats.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <cstdint>
#include <limits>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace simd {

/// The bits of `lanes` floats of 16 bits each.
using Halves = std::uint16_t __attribute__((vector_size(lanes * sizeof(std::uint16_t))));

/// Whether T is stored as an IEEE half: 5 exponent bits, 10 mantissa bits. Decided through std::numeric_limits, so that
/// no particular type has to be known here; a type without it is converted one number at a time.
template <class T>
inline constexpr bool is_half = sizeof(T) == 2 && !std::numeric_limits<T>::is_integer
                                && std::numeric_limits<T>::digits == 11 && std::numeric_limits<T>::max_exponent == 16;

/// Whether T is stored as the upper half of a float.
template <class T>
inline constexpr bool
    is_bfloat16 = sizeof(T) == 2 && !std::numeric_limits<T>::is_integer
                  && std::numeric_limits<T>::digits == 8 && std::numeric_limits<T>::max_exponent == 128;

[[gnu::always_inline]] inline Vec from_bfloat16(Halves x) {
  using Bits = std::uint32_t __attribute__((vector_size(sizeof(Vec))));
  return reinterpret_cast<Vec>(__builtin_convertvector(x, Bits) << 16);
}

/// Exact.
[[gnu::always_inline]] inline Vec from_half(Halves x) {
#if defined(__F16C__) && defined(__AVX512F__)
  using Shorts = std::int16_t __attribute__((vector_size(sizeof(Halves))));
#if defined(__clang__)
  constexpr std::uint16_t all = 0xffff;
#else
  constexpr std::int16_t all = -1;
#endif
  // 4: rounding mode; the conversion is exact
  return __builtin_ia32_vcvtph2ps512_mask(reinterpret_cast<Shorts>(x), Vec{}, all, 4);
#elif defined(__F16C__) && defined(__AVX__)
  using Shorts = std::int16_t __attribute__((vector_size(sizeof(Halves))));
  return __builtin_ia32_vcvtph2ps256(reinterpret_cast<Shorts>(x));
#elif defined(__aarch64__)
  return reinterpret_cast<Vec>(vcvt_f32_f16(reinterpret_cast<float16x4_t>(x)));
#else
  using Bits = std::int32_t __attribute__((vector_size(sizeof(Vec))));
  auto const bits = __builtin_convertvector(x, Bits);
  auto const size = bits & 0x7fff;
  // no exponent: a multiple of the least subnormal
  auto const subnormal = __builtin_convertvector(size, Vec) * 0x1p-24f;
  constexpr auto bias = (127 - 15) << 23;
  auto const large = (size << 13) + bias + ((size >= 0x7c00) & bias);  // infinity and NaN: all exponent bits set
  auto const magnitude = size < 0x0400 ? reinterpret_cast<Bits>(subnormal) : large;
  return reinterpret_cast<Vec>(magnitude | (bits & 0x8000) << 16);
#endif
}

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
