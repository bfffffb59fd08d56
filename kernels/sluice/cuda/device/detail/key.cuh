// SPDX-License-Identifier: Apache-2.0
/// \file
/// A score and its index as one number: all keys differ, so ties cannot change an answer or overflow a list.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/rounding.cuh>

#include <cstdint>
#include <limits>

namespace sluice::inline v0::cuda::detail {

/// Larger is better: the higher score, then the lower index.
using Key = std::uint64_t;

inline constexpr Key no_key = 0;  ///< smaller than every other; the key of -infinity and NaN
inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
inline constexpr float plus_infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

SLUICE_DEVICE Key make_key(float score, std::uint32_t place) {
  if (!(score > minus_infinity)) return no_key;
  auto const bits = __builtin_bit_cast(std::uint32_t, rounded_sum(score, 0.0f));  // -0 becomes 0: they are equal
  auto const ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<Key>(ordered) << 32 | static_cast<std::uint32_t>(~place);
}

SLUICE_DEVICE float score_of(Key key) {
  auto const ordered = static_cast<std::uint32_t>(key >> 32);
  return __builtin_bit_cast(float, (ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

SLUICE_DEVICE std::uint32_t place_of(Key key) { return ~static_cast<std::uint32_t>(key); }

}  // namespace sluice::inline v0::cuda::detail
