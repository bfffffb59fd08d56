// SPDX-License-Identifier: Apache-2.0
/// \file
/// Words of 32 bits, one for every lane of a warp or every member of a small set.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

#include <bit>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The position of the lowest set bit; 32 if none is set.
SLUICE_DEVICE int lowest_bit(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return bits == 0 ? 32 : __ffs(static_cast<int>(bits)) - 1;
#else
  return std::countr_zero(bits);
#endif
}

/// The number of set bits.
SLUICE_DEVICE int count_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __popc(bits);
#else
  return std::popcount(bits);
#endif
}

/// The lowest `count` bits; count in [0, 32].
SLUICE_DEVICE std::uint32_t low_bits(int count) { return count >= 32 ? ~0u : (1u << count) - 1u; }

}  // namespace sluice::inline v0::cuda::detail
