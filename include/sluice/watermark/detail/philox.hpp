// SPDX-License-Identifier: Apache-2.0
/// \file
/// Philox 4x32-10, a counter-based generator.
#pragma once

#include <sluice/language.hpp>

#include <array>
#include <cstdint>

namespace sluice::inline v0::detail {

/// Philox 4x32 with 10 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): four random words that
/// belong to a counter and a key.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  auto const high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  auto const low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xFFFFFFFFu); };
  for (int round = 0; round < 10; ++round) {
    auto const a = std::uint64_t{0xD2511F53u} * counter[0], b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace sluice::inline v0::detail
