// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums and products that are rounded one by one. A compiler may make one operation of a product and a sum where it likes
/// (nvcc -fmad=true, its default), here so and there otherwise; then the same line, split in another way or read by another
/// kernel, would have other last bits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/host_device.cuh>

namespace sluice::inline v0::cuda {

SLUICE_DEVICE float rounded_sum(float x, float y) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(x, y);
#else
  return x + y;
#endif
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

}  // namespace sluice::inline v0::cuda
