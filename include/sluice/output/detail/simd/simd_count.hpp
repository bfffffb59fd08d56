// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which floats reach a bar, and how many.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace simd {

/// Bit i: whether lane i of a >= lane i of b. Vector extensions cannot express this; compiler builtins avoid
/// <immintrin.h>, which compiles as slowly as half the standard library.
[[gnu::always_inline]] inline std::uint32_t at_least(Vec a, Vec b) {
#if defined(__AVX512F__)
  constexpr std::uint16_t all = 0xffff;
  return __builtin_ia32_cmpps512_mask(a, b, 29, all, 4);  // 29: >=, quiet; 4: rounding
#elif defined(__AVX__)
  return static_cast<std::uint32_t>(__builtin_ia32_movmskps256(reinterpret_cast<Vec>(a >= b)));
#elif defined(__SSE2__)
  return static_cast<std::uint32_t>(__builtin_ia32_movmskps(reinterpret_cast<Vec>(a >= b)));
#elif defined(__aarch64__)
  // NEON has no such instruction. Lane i as 16 bits keeps bit i; the product adds all lanes in its upper 16 bits.
  using Narrow = std::int16_t __attribute__((vector_size(lanes * sizeof(std::int16_t))));
  auto const narrow = __builtin_convertvector(a >= b, Narrow);
  std::uint64_t all;
  __builtin_memcpy(&all, &narrow, sizeof(all));
  return static_cast<std::uint32_t>((all & 0x0008000400020001u) * 0x0001000100010001u >> 48);
#else
  std::uint32_t bits = 0;
  for (int i = 0; i < lanes; ++i) bits |= std::uint32_t{a[i] >= b[i]} << i;
  return bits;
#endif
}

/// Lane i of x if bit i is set, else `other`. Bits from `lanes` on are ignored.
[[gnu::always_inline]] inline Vec where(std::uint32_t bits, Vec x, float other) {
  using Bits = std::uint32_t __attribute__((vector_size(lanes * sizeof(float))));
  alignas(64) static constexpr std::uint32_t ones[16] = {1,   2,   4,    8,    16,   32,   64,    128,
                                                         256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  Bits lane;
  __builtin_memcpy(&lane, ones, sizeof(lane));
  return ((Bits{} + bits) & lane) != 0 ? x : broadcast(other);
}

/// The number of n scores (a multiple of `lanes`) that are >= bar.
inline std::size_t count_at_least(float const* scores, std::size_t n, float bar) {
  int count = 0;
  auto const bars = broadcast(bar);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < n; i += lanes) count += std::popcount(at_least(load(scores + i), bars));
  return static_cast<std::size_t>(count);
}

/// The least score >= bar; +infinity if there is none.
inline float least_from(float const* scores, std::size_t n, float bar) {
  auto least = broadcast(std::numeric_limits<float>::infinity());
  auto const bars = broadcast(bar);
  for (std::size_t i = 0; i < n; i += lanes) {
    auto const x = load(scores + i);
    least = ((x >= bars) & (x < least)) ? x : least;
  }
  return -(max)(-least);
}

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
