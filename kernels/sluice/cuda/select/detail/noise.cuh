// SPDX-License-Identifier: Apache-2.0
/// \file
/// The host's random numbers in a kernel: the functions of sluice/core/noise.hpp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

SLUICE_DEVICE std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 30, x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27, x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// sluice::derive().
SLUICE_DEVICE std::uint64_t derive_bits(std::uint64_t key, std::uint64_t part) {
  auto const mixed = mix_bits(mix_bits(key + 0x9E3779B97F4A7C15u) ^ (part + 1) * 0xD1B54A32D192ED03u);
  return mixed != 0 ? mixed : 1;
}

/// sluice::gumbel(), from the same uniform number; its logarithms may differ in the last bit.
SLUICE_DEVICE double gumbel_number(std::uint64_t noise, Token token) {
  auto const bits = derive_bits(noise, static_cast<std::uint64_t>(static_cast<std::uint32_t>(token))) >> 12;
  auto const uniform = double_product(double_sum(static_cast<double>(bits), 0.5), 0x1p-52);
  return -double_log(-double_log(uniform));
}

/// A key of a perturbed value and its place, as make_key() makes of scores. The place replaces the lowest bits of the
/// value, so values that differ relatively by less than 2^(place_bits - 52) count as equal (3e-11 at V = 128k; scores
/// are rounded to 6e-8).
SLUICE_DEVICE Key make_wide_key(double value, std::uint32_t place, int place_bits) {
  auto const bits = __builtin_bit_cast(std::uint64_t, double_sum(value, 0.0));  // -0 becomes 0
  auto const ordered = bits >> 63 != 0 ? ~bits : bits | std::uint64_t{1} << 63;
  auto const low = (std::uint64_t{1} << place_bits) - 1;
  return (ordered & ~low) | (~std::uint64_t{place} & low);
}

SLUICE_DEVICE std::uint32_t place_of_wide(Key key, int place_bits) {
  return static_cast<std::uint32_t>(~key & ((std::uint64_t{1} << place_bits) - 1));
}

}  // namespace sluice::inline v0::cuda::detail
