// SPDX-License-Identifier: Apache-2.0
/// \file
/// Exact sums of products of 8-bit integers, with the fastest instructions available.
///
/// A lane holds the sum of one output. Each step takes `depth` inputs; weights are [lanes][depth]. Stored inputs of a
/// row, `Input`, are larger by `offset`; the initial sum corrects for this.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <cstdint>

// <immintrin.h> compiles as slowly as half the standard library, so it is included only for intrinsics whose builtins
// differ between GCC and Clang.
#if defined(__AVX512BW__) || defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#define SLUICE_SDOT 1
#else
#define SLUICE_SDOT 0
#endif
#if SLUICE_SDOT && defined(__ARM_FEATURE_MATMUL_INT8)
#define SLUICE_SMMLA 1
#else
#define SLUICE_SMMLA 0
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// The primitives of an 8-bit product.
struct Int8Dot {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) && !defined(__AVX512F__)
  // Adds four products of unsigned with signed bytes to a lane.
  static constexpr int lanes = simd::lanes, depth = 4, offset = 128;
  using Input = std::uint8_t;
#elif SLUICE_SMMLA
  // Two rows times two outputs, eight products each: int8_pairs.hpp.
  static constexpr int lanes = simd::lanes, depth = 8, offset = 0;
  using Input = std::int8_t;
#elif SLUICE_SDOT
  // Adds four products of signed bytes to a lane.
  static constexpr int lanes = simd::lanes, depth = 4, offset = 0;
  using Input = std::int8_t;
#else
// Two products of 16 bits. (AVX2's products of bytes, added in pairs, saturate at 16 bits.)
#if defined(__AVX512BW__)
  static constexpr int lanes = 16;
#elif defined(__AVX2__)
  static constexpr int lanes = 8;
#else
  static constexpr int lanes = 4;
#endif
  static constexpr int depth = 2, offset = 0;
  using Input = std::int16_t;
#endif

  /// Modulo 2^32, so only the final sum must fit.
  using Sums = std::uint32_t __attribute__((vector_size(lanes * sizeof(std::uint32_t))));
  using Signed = std::int32_t __attribute__((vector_size(lanes * sizeof(std::int32_t))));
  using Floats = float __attribute__((vector_size(lanes * sizeof(float))));
  /// The stored form of a weight.
  using Number = std::int8_t;
  /// A vector of weights is added at once.
  static constexpr int parts = 1;

  template <class T>
  [[gnu::always_inline]] static T load(void const* p) {
    T v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }

#if !SLUICE_SMMLA
  using Bytes = std::int8_t __attribute__((vector_size(lanes * depth)));
  using Shorts = std::int16_t __attribute__((vector_size(lanes * depth * sizeof(std::int16_t))));
  /// The weights of a vector of lanes and the inputs, in the form that `add` takes.
#if defined(__SSE2__)
  using Weights = Sums;
  using Inputs = Sums;
#elif SLUICE_SDOT
  using Weights = Sums;
  using Inputs = std::int8_t __attribute__((vector_size(8)));  // four inputs, which the instruction broadcasts
#elif defined(__aarch64__)
  using Weights = Shorts;                                       // the first number of every pair, then the second
  using Inputs = std::int16_t __attribute__((vector_size(8)));  // two inputs, of which an instruction broadcasts one
#else
  using Weights = Bytes;
  using Inputs = Sums;
#endif

  template <int part = 0>
  [[gnu::always_inline]] static Weights weights(std::int8_t const* p) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) && !defined(__AVX512F__) || SLUICE_SDOT
    return load<Sums>(p);
#elif defined(__AVX512BW__)
    return reinterpret_cast<Sums>(_mm512_cvtepi8_epi16(reinterpret_cast<__m256i>(load<Bytes>(p))));
#elif defined(__AVX2__) && defined(__clang__)
    return reinterpret_cast<Sums>(__builtin_convertvector(load<Bytes>(p), Shorts));
#elif defined(__AVX2__)  // GCC compiles a conversion to two and an insertion
    using Characters = char __attribute__((vector_size(sizeof(Bytes))));
    return reinterpret_cast<Sums>(__builtin_ia32_pmovsxbw256(load<Characters>(p)));
#elif defined(__SSE2__)
    auto const bytes = _mm_loadl_epi64(reinterpret_cast<__m128i const*>(p));
    return reinterpret_cast<Sums>(_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8));
#elif defined(__aarch64__)
    auto const order = vcreate_s8(0x0705030106040200);
    return reinterpret_cast<Weights>(vmovl_s8(vtbl1_s8(reinterpret_cast<int8x8_t>(load<Bytes>(p)), order)));
#else
    return load<Bytes>(p);
#endif
  }

  /// `depth` inputs, broadcast to every lane.
  template <int part = 0>
  [[gnu::always_inline]] static Inputs broadcast(Input const* p) {
#if defined(__aarch64__)
    using Two = float __attribute__((vector_size(8)));  // only bits
    return reinterpret_cast<Inputs>(Two{simd::multiplier(load<float>(p))});
#else
    return load<std::uint32_t>(p) - Sums{};
#endif
  }

  /// sum + inputs * weights.
  [[gnu::always_inline]] static Sums add(Sums sum, Inputs inputs, Weights weights) {
#if defined(__AVX512VNNI__)
    return reinterpret_cast<Sums>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(inputs),
                                                      reinterpret_cast<__m512i>(weights)));
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
    return reinterpret_cast<Sums>(_mm256_dpbusd_avx_epi32(
        reinterpret_cast<__m256i>(sum), reinterpret_cast<__m256i>(inputs), reinterpret_cast<__m256i>(weights)));
#elif defined(__AVX512BW__)
    return sum + reinterpret_cast<Sums>(
                     _mm512_madd_epi16(reinterpret_cast<__m512i>(inputs), reinterpret_cast<__m512i>(weights)));
#elif defined(__AVX2__)
    return sum + reinterpret_cast<Sums>(
                     __builtin_ia32_pmaddwd256(reinterpret_cast<Shorts>(inputs), reinterpret_cast<Shorts>(weights)));
#elif defined(__SSE2__)
    return sum + reinterpret_cast<Sums>(
                     _mm_madd_epi16(reinterpret_cast<__m128i>(inputs), reinterpret_cast<__m128i>(weights)));
#elif SLUICE_SDOT
    return reinterpret_cast<Sums>(vdotq_lane_s32(reinterpret_cast<int32x4_t>(sum), reinterpret_cast<int8x16_t>(weights),
                                                 reinterpret_cast<int8x8_t>(inputs), 0));
#elif defined(__aarch64__)
    auto const numbers = reinterpret_cast<int16x8_t>(weights);
    auto const x = reinterpret_cast<int16x4_t>(inputs);
    auto const first = vmlal_lane_s16(reinterpret_cast<int32x4_t>(sum), vget_low_s16(numbers), x, 0);
    return reinterpret_cast<Sums>(vmlal_high_lane_s16(first, numbers, x, 1));
#else
    Input x[depth];
    __builtin_memcpy(x, &inputs, sizeof(x));
    for (int i = 0; i < lanes; ++i)
      sum[i] += static_cast<std::uint32_t>(x[0] * weights[2 * i] + x[1] * weights[2 * i + 1]);
    return sum;
#endif
  }
#endif
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
