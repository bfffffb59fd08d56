// SPDX-License-Identifier: Apache-2.0
/// \file
/// Float vectors as wide as the instruction set of the current compilation allows, without intrinsics.
///
/// Code that follows the compiler's -m flags lives in the inline namespace SLUICE_ISA, so that two files compiled for
/// different machines never share one definition.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>

// The name encodes everything that changes results: vector width, fused multiply-adds, integer and bfloat16 products,
// matrix units, threads. (Prefetching may differ: packed/loads.hpp.)
#if defined(__AVX512F__)
#if defined(__AVX512VNNI__) && defined(__AVX512BF16__) && defined(__AMX_INT8__) && defined(__AMX_BF16__)
#define SLUICE_ISA_FLAGS avx512_amx
#elif defined(__AVX512VNNI__) && defined(__AVX512BF16__)
#define SLUICE_ISA_FLAGS avx512_vnni_bf16
#elif defined(__AVX512VNNI__)
#define SLUICE_ISA_FLAGS avx512_vnni
#elif defined(__AVX512BW__)
#define SLUICE_ISA_FLAGS avx512_bw
#else
#define SLUICE_ISA_FLAGS avx512
#endif
#elif defined(__AVX__) && defined(__FMA__)
#if defined(__AVXVNNI__)
#define SLUICE_ISA_FLAGS avx2_fma_vnni
#elif defined(__AVX2__)
#define SLUICE_ISA_FLAGS avx2_fma
#else
#define SLUICE_ISA_FLAGS avx_fma
#endif
#elif defined(__AVX__)
#if defined(__AVXVNNI__)
#define SLUICE_ISA_FLAGS avx2_vnni
#elif defined(__AVX2__)
#define SLUICE_ISA_FLAGS avx2
#else
#define SLUICE_ISA_FLAGS avx
#endif
#elif defined(__aarch64__)  // fused multiply-adds are always there
#if defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8) &&                                            \
    defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define SLUICE_ISA_FLAGS neon_i8mm_bf16
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8)
#define SLUICE_ISA_FLAGS neon_i8mm
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define SLUICE_ISA_FLAGS neon_dotprod_bf16
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define SLUICE_ISA_FLAGS neon_bf16
#elif defined(__ARM_FEATURE_DOTPROD)
#define SLUICE_ISA_FLAGS neon_dotprod
#else
#define SLUICE_ISA_FLAGS neon
#endif
#else
#define SLUICE_ISA_FLAGS baseline
#endif
#if defined(_OPENMP)
#define SLUICE_ISA_JOIN(flags, threads) flags##threads
#define SLUICE_ISA_NAME(flags) SLUICE_ISA_JOIN(flags, _openmp)
#define SLUICE_ISA SLUICE_ISA_NAME(SLUICE_ISA_FLAGS)
#else
#define SLUICE_ISA SLUICE_ISA_FLAGS
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace simd {

#if defined(__AVX512F__)
inline constexpr int lanes = 16;      ///< floats in a Vec
inline constexpr int registers = 32;  ///< of that width
#elif defined(__AVX__)
inline constexpr int lanes = 8;
inline constexpr int registers = 16;
#elif defined(__aarch64__)
inline constexpr int lanes = 4;
inline constexpr int registers = 32;
#else
inline constexpr int lanes = 4;
inline constexpr int registers = 16;
#endif

/// `lanes` floats; + - * / < act lane by lane, and so does ?: on comparisons.
using Vec = float __attribute__((vector_size(lanes * sizeof(float))));

/// The floats at p .. p + lanes - 1; p needs only the alignment of a float.
[[gnu::always_inline]] inline Vec load(float const* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

[[gnu::always_inline]] inline void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof(v)); }

/// x in every lane. (x - 0 is x for every x, so that the compiler drops the subtraction; x + 0 is not.)
[[gnu::always_inline]] inline Vec broadcast(float x) { return x - Vec{}; }

/// Returns x (a float, or a vector of them) unchanged, but opaque to the compiler, so that a product cannot be fused
/// with the sum that uses it. For numbers that must be equal on all processors.
template <class T>
[[gnu::always_inline]] inline T rounded(T x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

/// x, a number or a short vector that multiplies vectors by its lanes. On AArch64 it is loaded to a register by itself, from
/// which the multiply-add broadcasts it: Clang would take one more vector operation to broadcast it before.
template <class T>
[[gnu::always_inline]] inline T multiplier(T x) {
#if defined(__aarch64__) && defined(__clang__)
  asm("" : "+w"(x));
#endif
  return x;
}

[[gnu::always_inline]] inline Vec(max)(Vec a, Vec b) { return a < b ? b : a; }

/// The sum of all lanes, by adding halves until one number is left.
inline float sum(Vec v) {
  float lane[lanes];
  store(lane, v);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}

/// The largest lane.
inline float(max)(Vec v) {
  float lane[lanes];
  store(lane, v);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] = lane[i] < lane[i + half] ? lane[i + half] : lane[i];
  return lane[0];
}

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
