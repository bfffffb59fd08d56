// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers and checksums in files.
#pragma once

#include <sluice/language.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice::inline v0::detail {

/// A number in little-endian order, at any address.
template <class Number>
Number load_little(std::byte const* from) {
  Number number = 0;
  if constexpr (std::endian::native == std::endian::little) std::memcpy(&number, from, sizeof(number));
  else
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      number = static_cast<Number>(number | static_cast<Number>(std::to_integer<Number>(from[i]) << (8 * i)));
  return number;
}
template <class Number>
void store_little(std::byte* to, Number number) {
  if constexpr (std::endian::native == std::endian::little) std::memcpy(to, &number, sizeof(number));
  else
    for (std::size_t i = 0; i < sizeof(Number); ++i) to[i] = static_cast<std::byte>(number >> (8 * i));
}

constexpr std::uint64_t aligned_64(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/// FNV-1a over 8-byte words instead of bytes; the number of bytes must be a multiple of 8. Any change within one word
/// changes the hash.
inline std::uint64_t hash_words(std::span<std::byte const> bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8)
    hash = (hash ^ load_little<std::uint64_t>(bytes.data() + i)) * 0x100000001B3u;
  return hash;
}

}  // namespace sluice::inline v0::detail
