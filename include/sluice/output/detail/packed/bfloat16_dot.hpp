// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums of products of bfloat16 numbers (the upper halves of floats), with the fastest instructions available.
///
/// Multiplies adjacent numbers k and k + 1 in pairs: weights are [lanes][2].
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#if defined(__AVX512BF16__) && defined(__AVX512BW__)
#define SLUICE_BFLOAT16_DOT 1
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define SLUICE_BFLOAT16_DOT 1
#include <arm_neon.h>
#else
#define SLUICE_BFLOAT16_DOT 0
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// Rounds x to the nearest bfloat16, ties to even. Overflow becomes infinity; numbers below the smallest normal float
/// become zero, as in processors with bfloat16 products. A NaN stays NaN.
inline std::uint16_t to_bfloat16(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7f800000u) == 0) return static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  if (std::isnan(x))
    return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // a NaN's lower half may hold its only set bits
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

inline float from_bfloat16(std::uint16_t x) { return std::bit_cast<float>(std::uint32_t{x} << 16); }

/// The primitives of a bfloat16 product.
struct Bfloat16Dot {
  static constexpr int lanes = simd::lanes, depth = 2;
  using Number = std::uint16_t;  ///< the stored form of a weight
  using Sums = simd::Vec;

  template <class T>
  [[gnu::always_inline]] static T load(void const* p) {
    T v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }

#if SLUICE_BFLOAT16_DOT
  using Input = std::uint16_t;
#if defined(__aarch64__)
  using Weights = bfloat16x8_t;
  using Inputs = float;  // the bits of two inputs, which the instruction broadcasts
#else
  using Weights = simd::Vec;  // the bits: not every compiler passes __m512bh to an asm
  using Inputs = simd::Vec;
#endif
  static constexpr int parts = 1;

  template <int part>
  [[gnu::always_inline]] static Weights weights(Number const* p) {
    return load<Weights>(p);
  }
#if defined(__aarch64__)
  template <int part>
  [[gnu::always_inline]] static Inputs broadcast(Input const* p) {
    return simd::multiplier(load<float>(p));
  }
  /// Adds the sum of two exact products to a lane. Both sums are rounded to odd (the last bit is set if anything is
  /// lost), whatever the rounding mode: an error below one unit in the last place, not half of one, and to neither side.
  /// Numbers below the smallest normal float count as zero.
  [[gnu::always_inline]] static Sums add(Sums sum, Inputs inputs, Weights weights) {
#if defined(__clang__)  // version 19 would take one more instruction to broadcast the inputs
    asm("bfdot %0.4s, %1.8h, %2.2h[0]" : "+w"(sum) : "w"(weights), "w"(inputs));
    return sum;
#else
    using Two = float __attribute__((vector_size(8)));
    return reinterpret_cast<Sums>(
        vbfdotq_lane_f32(reinterpret_cast<float32x4_t>(sum), weights, reinterpret_cast<bfloat16x4_t>(Two{inputs}), 0));
#endif
  }
#else
  template <int part>
  [[gnu::always_inline]] static Inputs broadcast(Input const* p) {
    return reinterpret_cast<Inputs>(_mm512_set1_epi32(load<std::int32_t>(p)));
  }
  [[gnu::always_inline]] static Sums add(Sums sum, Inputs inputs, Weights weights) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(inputs), reinterpret_cast<__m512bh>(weights));
  }
#endif
#else
  using Input = float;  // rounded
  using Weights = simd::Vec;
  using Inputs = simd::Vec;
  /// First the first number of each pair, then the second.
  static constexpr int parts = 2;

  template <int part>
  [[gnu::always_inline]] static Weights weights(Number const* p) {
    using Pairs = std::uint32_t __attribute__((vector_size(lanes * sizeof(std::uint32_t))));
    auto const pairs = load<Pairs>(p);
    return reinterpret_cast<Weights>(part == 0 ? pairs << 16 : pairs & 0xffff0000u);
  }
  template <int part>
  [[gnu::always_inline]] static Inputs broadcast(Input const* p) {
    return simd::broadcast(p[part]);
  }
  [[gnu::always_inline]] static Sums add(Sums sum, Inputs inputs, Weights weights) { return sum + inputs * weights; }
#endif

  /// Rounds x into `to`.
  static void round(std::span<float const> x, Input* to) {
    std::size_t k = 0;
#if SLUICE_BFLOAT16_DOT && defined(__aarch64__)
    // Not bfcvtn, which keeps numbers below the smallest normal float.
    for (; k < x.size(); ++k) to[k] = to_bfloat16(x[k]);
#elif SLUICE_BFLOAT16_DOT
    for (; k + lanes <= x.size(); k += lanes) {
      auto const rounded = _mm512_cvtneps_pbh(load<__m512>(x.data() + k));
      __builtin_memcpy(to + k, &rounded, sizeof(rounded));
    }
    for (; k < x.size(); ++k) to[k] = to_bfloat16(x[k]);
#else
    for (; k < x.size(); ++k) to[k] = from_bfloat16(to_bfloat16(x[k]));
#endif
  }
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
