// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums and products that are rounded one by one. A compiler may fuse a product and a sum (nvcc -fmad=true, its
/// default), and may decide differently in each place. Then the same line, split in another way or read by another
/// kernel, would have other last bits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

#include <cfloat>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

SLUICE_DEVICE float rounded_sum(float x, float y) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(x, y);
#else
  return x + y;
#endif
}

/// The sum; finite for finite numbers.
SLUICE_DEVICE float bounded_sum(float x, float y) {
  constexpr float most = FLT_MAX;  // nvcc refuses (std::numeric_limits<float>::max)() on a device
  auto const sum = rounded_sum(x, y);
  if (!(x <= most && x >= -most && y <= most && y >= -most)) return sum;
  return sum > most ? most : sum < -most ? -most : sum;
}

/// The next float towards -infinity; for finite numbers.
SLUICE_DEVICE float next_below(float x) {
  auto const bits = __builtin_bit_cast(std::uint32_t, x);
  if ((bits & 0x7fffffffu) == 0) return __builtin_bit_cast(float, std::uint32_t{0x80000001u});
  return __builtin_bit_cast(float, x > 0 ? bits - 1 : bits + 1);
}

SLUICE_DEVICE float rounded_difference(float x, float y) {
#if defined(__CUDA_ARCH__)
  return __fsub_rn(x, y);
#else
  return x - y;
#endif
}

SLUICE_DEVICE float rounded_product(float x, float y) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(x, y);
#else
  return x * y;
#endif
}

}  // namespace sluice::inline v0::cuda::detail
