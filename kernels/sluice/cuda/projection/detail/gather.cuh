// SPDX-License-Identifier: Apache-2.0
/// \file
/// Gathers the weights of some tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Rows of any type, measured in bytes.
struct GatherLaunch {
  unsigned char const* weights = nullptr;  ///< [V, row_bytes]
  std::int64_t stride = 0;                 ///< bytes from row to row
  std::int32_t row_bytes = 0;              ///< a multiple of 2
  Token const* tokens = nullptr;           ///< [count]
  std::int32_t count = 0;
  unsigned char* packed = nullptr;  ///< [count, row_bytes], 16-byte aligned
  std::int64_t packed_stride = 0;   ///< a multiple of 16
  float const* bias = nullptr;      ///< [V], or none
  float* packed_bias = nullptr;     ///< [count + bias_tail]: padded with zeros
  static constexpr std::int32_t bias_tail = 7;

  /// Whether rows can be read 16 bytes at a time.
  SLUICE_HOST_DEVICE bool aligned() const {
    return reinterpret_cast<std::uintptr_t>(weights) % 16 == 0 && stride % 16 == 0 && row_bytes % 16 == 0;
  }
};

/// Every warp copies one row after another; the warps of all `blocks` blocks take adjacent rows.
template <class Block>
SLUICE_DEVICE void gather_rows(Block& block, GatherLaunch const& launch, std::int32_t number, std::int32_t blocks) {
  auto const aligned = launch.aligned();
  auto const end = launch.count + (launch.bias != nullptr ? GatherLaunch::bias_tail : 0);
  for (auto i = number * Block::warps + block.warp(); i < end; i += blocks * Block::warps) {
    auto const token = i < launch.count ? launch.tokens[i] : -1;
    if (launch.bias != nullptr && block.lane() == 0) launch.packed_bias[i] = token >= 0 ? launch.bias[token] : 0.0f;
    if (token < 0) continue;
    auto const* const from = launch.weights + token * launch.stride;
    auto* const to = launch.packed + i * launch.packed_stride;
    if (aligned) {
      SLUICE_UNROLL_4
      for (int at = 16 * block.lane(); at < launch.row_bytes; at += 16 * 32)
        *reinterpret_cast<Words*>(to + at) = block.read16(from + at);
    } else {
      for (int at = 2 * block.lane(); at < launch.row_bytes; at += 2 * 32)
        *reinterpret_cast<std::uint16_t*>(to + at) = block.read(reinterpret_cast<std::uint16_t const*>(from + at));
    }
  }
}

}  // namespace sluice::inline v0::cuda::detail
