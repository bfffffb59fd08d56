// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stored formats of scores: float, half, bfloat16, as bits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The larger of two; the other one if one is NaN.
SLUICE_DEVICE float larger(float x, float than) {
#if defined(__CUDA_ARCH__)
  return fmaxf(x, than);
#else
  return x > than || than != than ? x : than;
#endif
}

/// 16 bytes, the size of one load.
struct alignas(16) Words {
  std::uint32_t word[4];
};

struct Float32 {
  using Bits = std::uint32_t;
  static constexpr int wide = 4;  ///< numbers per load
  static constexpr Bits minus_infinity = 0xff800000u;
  SLUICE_DEVICE static float value(Bits bits) { return __builtin_bit_cast(float, bits); }
};

struct BFloat16 {
  using Bits = std::uint16_t;
  static constexpr int wide = 8;
  static constexpr Bits minus_infinity = 0xff80u;
  SLUICE_DEVICE static float value(Bits bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }
#if defined(__CUDA_ARCH__)
  /// larger() of two pairs.
  SLUICE_DEVICE static std::uint32_t larger_pair(std::uint32_t x, std::uint32_t than) {
    std::uint32_t both;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(both) : "r"(x), "r"(than));
    return both;
  }
#endif
};

struct Float16 {
  using Bits = std::uint16_t;
  static constexpr int wide = 8;
  static constexpr Bits minus_infinity = 0xfc00u;
  SLUICE_DEVICE static float value(Bits bits) {
#if defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#else
    // Exponent and mantissa move into place; the product corrects the exponent's bias, for subnormals too.
    auto const sign = (bits & 0x8000u) << 16;
    auto const rest = (bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u) return __builtin_bit_cast(float, sign | 0x70000000u | rest);  // infinity, NaN
    return __builtin_bit_cast(float,
                              sign | __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, rest) * 0x1p112f));
#endif
  }
#if defined(__CUDA_ARCH__)
  SLUICE_DEVICE static std::uint32_t larger_pair(std::uint32_t x, std::uint32_t than) {
    std::uint32_t both;
    asm("max.f16x2 %0, %1, %2;" : "=r"(both) : "r"(x), "r"(than));
    return both;
  }
#endif
};

/// The numbers of one load.
template <class Format>
SLUICE_DEVICE void unpack(Words const& words, float (&x)[Format::wide]) {
  SLUICE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if constexpr (Format::wide == 4) {
      x[i] = Format::value(words.word[i]);
    } else {
      x[2 * i] = Format::value(static_cast<std::uint16_t>(words.word[i] & 0xffffu));
      x[2 * i + 1] = Format::value(static_cast<std::uint16_t>(words.word[i] >> 16));
    }
  }
}

/// The largest number of one load; NaN counts only if all are.
/// \param x  the same, unpacked
template <class Format>
SLUICE_DEVICE float largest_of([[maybe_unused]] Words const& words, float const (&x)[Format::wide]) {
#if defined(__CUDA_ARCH__)
  if constexpr (Format::wide == 8) {  // as pairs: half the instructions
    auto const pair = Format::larger_pair(Format::larger_pair(words.word[0], words.word[1]),
                                          Format::larger_pair(words.word[2], words.word[3]));
    return larger(Format::value(static_cast<std::uint16_t>(pair & 0xffffu)),
                  Format::value(static_cast<std::uint16_t>(pair >> 16)));
  }
#endif
  auto most = x[0];
  SLUICE_UNROLL
  for (int c = 1; c < Format::wide; ++c) most = larger(x[c], most);
  return most;
}

}  // namespace sluice::inline v0::cuda::detail
