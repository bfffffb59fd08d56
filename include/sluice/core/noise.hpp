// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counter-based random numbers: a function of seed and use, so the same in every batch, on every machine and in any order.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <cmath>
#include <cstdint>

namespace sluice::inline v0 {

/// A bijection of 64-bit integers that spreads every bit over all others (the finaliser of SplitMix64: Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30, x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27, x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A key for `part` of what `key` stands for: chains seed, sentence, step and hypothesis to one noise. Never 0.
constexpr std::uint64_t derive(std::uint64_t key, std::uint64_t part) {
  auto const mixed = mix(mix(key + 0x9E3779B97F4A7C15u) ^ (part + 1) * 0xD1B54A32D192ED03u);
  return mixed != 0 ? mixed : 1;
}

/// A uniform number in (0, 1), 52 random bits, that belongs to (noise, token). (Of 53 bits, the largest plus a half would
/// round to 1.)
inline double uniform(std::uint64_t noise, Token token) {
  auto const bits = derive(noise, static_cast<std::uint64_t>(static_cast<std::uint32_t>(token))) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

/// A standard Gumbel number that belongs to (noise, token). The token with the largest log_prob + gumbel is a draw from
/// the distribution; the k largest are k draws without replacement (Kool, van Hoof and Welling 2019).
inline double gumbel(std::uint64_t noise, Token token) { return -std::log(-std::log(uniform(noise, token))); }

}  // namespace sluice::inline v0
