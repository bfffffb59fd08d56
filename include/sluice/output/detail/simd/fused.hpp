// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products and sums with one rounding, and table look-ups in a register, through compiler builtins (see at_least).
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <cstdint>

#if defined(__aarch64__) && !__has_builtin(__builtin_elementwise_fma) && !__has_builtin(__builtin_aarch64_fmav4sf)
#include <arm_neon.h>  // compiles as slowly as half the standard library
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace simd {

/// `lanes` integers of 32 bits.
using Ints = std::int32_t __attribute__((vector_size(sizeof(Vec))));

#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
inline constexpr bool has_fused = true;  ///< whether fused() rounds once
#else
inline constexpr bool has_fused = false;
#endif

/// a b + c.
[[gnu::always_inline]] inline Vec fused(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
#if defined(__clang__)  // its masks are unsigned
  constexpr std::uint16_t all = 0xffff;
#else
  constexpr std::int16_t all = -1;
#endif
  return __builtin_ia32_vfmaddps512_mask(a, b, c, all, 4);  // 4: the usual rounding
#elif defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#elif defined(__aarch64__) && __has_builtin(__builtin_elementwise_fma)  // Clang 19
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__aarch64__) && __has_builtin(__builtin_aarch64_fmav4sf)  // GCC
  return __builtin_aarch64_fmav4sf(a, b, c);
#elif defined(__aarch64__)
  return reinterpret_cast<Vec>(
      vfmaq_f32(reinterpret_cast<float32x4_t>(c), reinterpret_cast<float32x4_t>(a), reinterpret_cast<float32x4_t>(b)));
#else
  return a * b + c;
#endif
}

/// Lane i of the result is lane `index[i] % lanes` of the table.
[[gnu::always_inline]] inline Vec look_up(Vec table, Ints index) {
#if defined(__clang__)
  return __builtin_shufflevector(table, index);
#else
  return __builtin_shuffle(table, index);
#endif
}

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
