// SPDX-License-Identifier: Apache-2.0
/// \file
/// The table of bits of Hugging Face's SynthID watermark.
#pragma once

#include <sluice/language.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

/// What torch.randint(0, 2, (65536,), generator = a CPU generator with seed 0) returns: the low bits of the 32-bit Mersenne
/// Twister (Matsumoto and Nishimura 1998). The defaults of SynthIDTextWatermarkingConfig; bit i % 64 of word i / 64.
SLUICE_LAZY std::vector<std::uint64_t> sampling_table() {
  constexpr std::size_t bits = 65536, n = 624, middle = 397;
  std::array<std::uint32_t, n> state{};
  state[0] = 0;
  for (std::uint32_t i = 1; i < n; ++i) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
  std::vector<std::uint64_t> table(bits / 64);
  for (std::size_t i = 0; i < bits; ++i) {
    auto const at = i % n;
    if (at == 0)
      for (std::size_t k = 0; k < n; ++k) {
        auto const y = (state[k] & 0x80000000u) | (state[(k + 1) % n] & 0x7FFFFFFFu);
        state[k] = state[(k + middle) % n] ^ (y >> 1) ^ ((y & 1) != 0 ? 0x9908B0DFu : 0u);
      }
    auto y = state[at];
    y ^= y >> 11, y ^= (y << 7) & 0x9D2C5680u, y ^= (y << 15) & 0xEFC60000u, y ^= y >> 18;
    table[i / 64] |= static_cast<std::uint64_t>(y & 1) << (i % 64);
  }
  return table;
}

}  // namespace sluice::inline v0::detail
