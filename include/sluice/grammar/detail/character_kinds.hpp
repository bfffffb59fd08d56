// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kinds of characters that patterns usually tell apart.
#pragma once

#include <sluice/language.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::inline v0::detail {

/// Sorts characters into kinds, such that most patterns treat the characters of one kind alike. A set of kinds is a bit mask.
struct CharacterKinds {
  struct Bytes {
    std::uint8_t first, last;
  };
  /// Characters in UTF-8 that are of one kind: their bytes, up to the first that is 0.
  struct Row {
    std::int32_t kind;
    std::array<Bytes, 4> bytes;
  };
  static constexpr std::uint32_t broken = std::uint32_t{1} << 28;  ///< a part of a character, or no UTF-8
  static constexpr std::uint32_t deep = std::uint32_t{1} << 29;    ///< a text is longer than alike nodes read alike
  static constexpr std::int32_t count = 28;
  static constexpr std::int32_t letters = 6;  ///< one of them
  /// Quotes, backslashes, control characters, U+2028 and U+2029, and what is broken.
  static constexpr std::uint32_t not_plain = 0b1'1111 | broken;

  static constexpr std::array<Row, 40> rows{{
      {0, {{{'"', '"'}}}},
      {1, {{{'\\', '\\'}}}},
      {2, {{{'\t', '\r'}}}},
      {3, {{{0x00, 0x08}}}},
      {3, {{{0x0E, 0x1F}}}},
      {3, {{{0x7F, 0x7F}}}},
      {4, {{{0xE2, 0xE2}, {0x80, 0x80}, {0xA8, 0xA9}}}},
      {5, {{{'a', 'f'}}}},
      {6, {{{'g', 'z'}}}},
      {7, {{{'A', 'F'}}}},
      {8, {{{'G', 'Z'}}}},
      {9, {{{'0', '9'}}}},
      {10, {{{'_', '_'}}}},
      {11, {{{'-', '-'}}}},
      {12, {{{'.', '.'}}}},
      {13, {{{' ', ' '}}}},
      {14, {{{'/', '/'}}}},
      {15, {{{':', ':'}}}},
      {16, {{{'@', '@'}}}},
      {17, {{{'!', '!'}}}},
      {17, {{{'#', ','}}}},
      {17, {{{';', '?'}}}},
      {18, {{{'[', '['}}}},
      {18, {{{']', '^'}}}},
      {18, {{{'`', '`'}}}},
      {18, {{{'{', '~'}}}},
      {19, {{{0xC2, 0xC2}, {0x80, 0xBF}}}},
      {20, {{{0xC3, 0xDF}, {0x80, 0xBF}}}},
      {21, {{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}}},
      {22, {{{0xE1, 0xE1}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {23, {{{0xE2, 0xE2}, {0x80, 0x80}, {0x80, 0xA7}}}},
      {23, {{{0xE2, 0xE2}, {0x80, 0x80}, {0xAA, 0xBF}}}},
      {23, {{{0xE2, 0xE2}, {0x81, 0xBF}, {0x80, 0xBF}}}},
      {24, {{{0xE3, 0xE3}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {25, {{{0xE4, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {25, {{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}}},
      {26, {{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {27, {{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {27, {{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
      {27, {{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}}},
  }};

  /// The kind of the character that a text begins with, and its bytes; 0 bytes: none.
  struct Found {
    std::int32_t kind = 0;
    std::size_t bytes = 0;
  };
  SLUICE_LAZY static Found first_of(std::string_view text) {
    for (auto const& row : rows) {
      std::size_t n = 0;
      while (n < 4 && n < text.size() && (n == 0 || row.bytes[n].last != 0) && within(text[n], row.bytes[n])) ++n;
      if (n > 0 && (n == 4 || row.bytes[n].last == 0)) return {row.kind, n};
    }
    return {};
  }

  /// Calls leads(bytes of a row) for the rows of a kind until it returns false. \return whether it never did
  template <class Leads>
  static bool all_of(std::int32_t kind, Leads const& leads) {
    for (auto const& row : rows) {
      if (row.kind != kind) continue;
      std::size_t n = 1;
      while (n < 4 && row.bytes[n].last != 0) ++n;
      if (!leads(std::span(row.bytes).first(n))) return false;
    }
    return true;
  }

 private:
  static bool within(char c, Bytes bytes) {
    auto const byte = static_cast<std::uint8_t>(c);
    return bytes.first <= byte && byte <= bytes.last;
  }
};

}  // namespace sluice::inline v0::detail
