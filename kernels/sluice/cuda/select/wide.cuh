// SPDX-License-Identifier: Apache-2.0
/// \file
/// Double precision as a kernel has it: operations that are rounded one by one (see rounding.cuh), and a line's
/// log-probabilities.
#pragma once

#include <sluice/cuda/device/host_device.cuh>
#include <sluice/cuda/device/key.cuh>
#include <sluice/cuda/device/partial_sum.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cmath>
#include <limits>

namespace sluice::inline v0::cuda {

SLUICE_DEVICE double wide_sum(double x, double y) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(x, y);
#else
  return x + y;
#endif
}

SLUICE_DEVICE double wide_product(double x, double y) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(x, y);
#else
  return x * y;
#endif
}

SLUICE_DEVICE double wide_root(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return std::sqrt(x);
#endif
}

SLUICE_DEVICE double wide_exp(double x) {
#if defined(__CUDA_ARCH__)
  return ::exp(x);
#else
  return std::exp(x);
#endif
}

SLUICE_DEVICE double wide_log(double x) {
#if defined(__CUDA_ARCH__)
  return ::log(x);
#else
  return std::log(x);
#endif
}

inline constexpr double least_float = std::numeric_limits<float>::lowest();

/// What turns a score into a log-probability: the twin of sluice::LineNorm.
struct WideNorm {
  double maximum = 0, log_sum = 0;

  /// Of a line with this sum.
  template <class Block>
  SLUICE_DEVICE static WideNorm of(PartialSum total, LineQuery const& query) {
    if (query.normalise == 0 || !(total.sum > 0)) return {};
    return {static_cast<double>(total.maximum), static_cast<double>(Block::log(total.sum))};
  }

  SLUICE_DEVICE double operator()(float x) const { return static_cast<double>(x) - maximum - log_sum; }
  /// Finite for a finite x.
  SLUICE_DEVICE float rounded(float x) const {
    auto const log_prob = (*this)(x);
    return static_cast<float>(log_prob < least_float && x > minus_infinity ? least_float : log_prob);
  }
};

}  // namespace sluice::inline v0::cuda
