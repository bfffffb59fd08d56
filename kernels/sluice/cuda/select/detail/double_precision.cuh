// SPDX-License-Identifier: Apache-2.0
/// \file
/// Double precision in kernels: operations that are rounded one by one (see rounding.cuh), and a line's
/// log-probabilities.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cmath>
#include <cstdint>
#include <limits>

namespace sluice::inline v0::cuda::detail {

SLUICE_DEVICE double double_sum(double x, double y) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(x, y);
#else
  return x + y;
#endif
}

SLUICE_DEVICE double double_product(double x, double y) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(x, y);
#else
  return x * y;
#endif
}

SLUICE_DEVICE double double_root(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return std::sqrt(x);
#endif
}

SLUICE_DEVICE double double_exp(double x) {
#if defined(__CUDA_ARCH__)
  return ::exp(x);
#else
  return std::exp(x);
#endif
}

SLUICE_DEVICE double double_quotient(double x, double y) {
#if defined(__CUDA_ARCH__)
  return __ddiv_rn(x, y);
#else
  return x / y;
#endif
}

/// x y + z, rounded once.
SLUICE_DEVICE double double_fused(double x, double y, double z) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(x, y, z);
#else
  return std::fma(x, y, z);
#endif
}

/// The natural logarithm of a positive normal number; the error is below one unit in the last place. CUDA's own log
/// lets the compiler fuse products and sums.
SLUICE_DEVICE double double_log(double x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s) = f - s (f - 2 s^2 (1/3 + s^2/5 + s^4/7 + ...)),
  // where f = m - 1 and s = f / (2 + f).
  constexpr std::uint64_t root = 0x3FE6A09E667F3BCD;                             // sqrt(1/2)
  constexpr double two_high = 0x1.62e42feep-1, two_low = 0x1.a39ef35793c76p-33;  // log 2: e two_high is exact
  auto const bits = __builtin_bit_cast(std::uint64_t, x);
  auto const e = static_cast<std::int64_t>(bits - root) >> 52;
  auto const f = double_sum(__builtin_bit_cast(double, bits - (static_cast<std::uint64_t>(e) << 52)), -1.0);
  auto const s = double_quotient(f, double_sum(f, 2.0));
  auto const z = double_product(s, s);
  auto series = 1.0 / 21;
  SLUICE_UNROLL
  for (int n = 19; n >= 3; n -= 2) series = double_fused(series, z, 1.0 / n);
  auto const rest = double_product(s, double_sum(f, -2 * double_product(z, series)));
  auto const exponent = static_cast<double>(e);
  return double_fused(exponent, two_high, double_sum(f, double_fused(exponent, two_low, -rest)));
}

inline constexpr double least_float = std::numeric_limits<float>::lowest();

/// Turns a score into a log-probability: the counterpart of sluice::LineNorm.
struct DoubleNorm {
  double maximum = 0, log_sum = 0;

  /// For a line with this sum.
  template <class Block>
  SLUICE_DEVICE static DoubleNorm of(PartialSum total, LineQuery const& query) {
    if (query.normalise == 0 || !(total.sum > 0)) return {};
    return {static_cast<double>(total.maximum), static_cast<double>(Block::log(total.sum))};
  }

  SLUICE_DEVICE double operator()(float x) const { return static_cast<double>(x) - maximum - log_sum; }
  /// Finite for a finite x.
  SLUICE_DEVICE float rounded(float x) const {
    auto const log_prob = (*this)(x);
    return static_cast<float>(log_prob < least_float && x > minus_infinity ? least_float : log_prob);
  }
  /// The score for a changed log-probability; see sluice::LineNorm.
  SLUICE_DEVICE float score(float log_prob) const {
    if (!(log_prob > minus_infinity)) return log_prob;
    auto exact = double_sum(double_sum(static_cast<double>(log_prob), log_sum), maximum);
    if (exact < least_float) exact = least_float;
    if (exact > -least_float) exact = -least_float;
    auto const x = static_cast<float>(exact);
    return (*this)(x) > static_cast<double>(log_prob) && x > static_cast<float>(least_float) ? next_below(x) : x;
  }
};

}  // namespace sluice::inline v0::cuda::detail
