// SPDX-License-Identifier: Apache-2.0
/// \file
/// Unicode characters as bytes.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Unicode's code points from `first` to `last`, both included.
struct CharacterRange {
  char32_t first, last;
  friend bool operator==(CharacterRange, CharacterRange) = default;
};
inline constexpr char32_t last_character = 0x10FFFF;

inline bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

/// Appends the UTF-8 bytes of a character.
inline void append_utf8(std::string& text, char32_t c) {
  auto const put = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (c < 0x80) return put(c);
  if (c < 0x800) return put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  if (c < 0x10000) return put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
}

/// The character at the beginning of `text` and its number of bytes; 0 bytes: not valid UTF-8.
inline std::pair<char32_t, std::size_t> read_utf8(std::string_view text) {
  if (text.empty()) return {0, 0};
  auto const byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  auto const lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  auto const size = lead >= 0xF5 || lead < 0xC2 ? std::size_t{0} : lead >= 0xF0 ? 4u : lead >= 0xE0 ? 3u : 2u;
  if (size == 0 || text.size() < size) return {0, 0};
  auto c = lead & (size == 2 ? 0x1Fu : size == 3 ? 0x0Fu : 0x07u);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    c = c << 6 | (byte(i) & 0x3F);
  }
  auto const least = std::array<char32_t, 5>{0, 0, 0x80, 0x800, 0x10000}[size];
  if (c < least || c > last_character || is_surrogate(c)) return {0, 0};
  return {c, size};
}

/// Sorts ranges, and joins overlapping and adjacent ones.
inline void normalise(std::vector<CharacterRange>& ranges) {
  std::ranges::sort(ranges, {}, &CharacterRange::first);
  std::size_t count = 0;
  for (auto const range : ranges) {
    if (count > 0 && range.first <= ranges[count - 1].last + 1)
      ranges[count - 1].last = (std::max)(ranges[count - 1].last, range.last);
    else ranges[count++] = range;
  }
  ranges.resize(count);
}

/// All other characters. The ranges must be normalised.
inline std::vector<CharacterRange> negated(std::span<CharacterRange const> ranges) {
  std::vector<CharacterRange> out;
  char32_t next = 0;
  for (auto const range : ranges) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_character) out.push_back({next, last_character});
  return out;
}

struct ByteRange {
  std::uint8_t first, last;
};

/// Calls `take` with sequences of 1 to 4 byte ranges that together match every character of a range exactly once.
/// Surrogates have no UTF-8 and are left out.
template <class Take>
void for_each_utf8_sequence(CharacterRange range, Take const& take) {
  if (range.first > range.last) return;
  auto const split = [&](char32_t at) {  // into .. at - 1 and at ..
    for_each_utf8_sequence(CharacterRange{range.first, at - 1}, take);
    for_each_utf8_sequence(CharacterRange{at, range.last}, take);
  };
  for (char32_t const border : {0x80u, 0x800u, 0xD800u, 0xE000u, 0x10000u})
    if (range.first < border && border <= range.last) return split(border);
  if (is_surrogate(range.first)) return;
  for (std::uint32_t bits = 6; bits <= 18; bits += 6) {
    if (range.last < 0x80) break;
    auto const low = (char32_t{1} << bits) - 1;
    if ((range.first & ~low) == (range.last & ~low)) continue;
    if ((range.first & low) != 0) return split((range.first | low) + 1);
    if ((range.last & low) != low) return split(range.last & ~low);
  }
  std::string first, last;
  append_utf8(first, range.first), append_utf8(last, range.last);
  std::array<ByteRange, 4> sequence{};
  for (std::size_t i = 0; i < first.size(); ++i)
    sequence[i] = {static_cast<std::uint8_t>(first[i]), static_cast<std::uint8_t>(last[i])};
  take(std::span<ByteRange const>(sequence.data(), first.size()));
}

}  // namespace sluice::inline v0::detail
