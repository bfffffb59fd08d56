// SPDX-License-Identifier: Apache-2.0
/// \file
/// The named character classes of regular expressions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/utf8.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// A class as in [:alpha:].
struct NamedClass {
  std::string_view name;
  std::vector<CharacterRange> ranges;
};

inline std::vector<NamedClass> const& named_classes() {
  static std::vector<NamedClass> const names{{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                                             {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
                                             {"ascii", {{0, 0x7F}}},
                                             {"blank", {{'\t', '\t'}, {' ', ' '}}},
                                             {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
                                             {"digit", {{'0', '9'}}},
                                             {"graph", {{'!', '~'}}},
                                             {"lower", {{'a', 'z'}}},
                                             {"print", {{' ', '~'}}},
                                             {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                                             {"space", {{'\t', '\r'}, {' ', ' '}}},
                                             {"upper", {{'A', 'Z'}}},
                                             {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
                                             {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  return names;
}

inline bool is_class_letter(char32_t c) {
  auto const lower_case = c | 0x20;
  return lower_case == 'd' || lower_case == 's' || lower_case == 'w';
}
/// A class as in \d \D \s \S \w \W.
/// \param unicode  \s is that of ECMA-262: all Unicode spaces and line ends
inline std::vector<CharacterRange> letter_class(char32_t letter, bool unicode) {
  std::vector<CharacterRange> of;
  if (letter == 'd' || letter == 'D') of = {{'0', '9'}};
  else if ((letter == 's' || letter == 'S') && unicode)
    of = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  else if (letter == 's' || letter == 'S') of = {{'\t', '\r'}, {' ', ' '}};
  else of = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return letter < 'a' ? negated(of) : of;
}

inline bool is_letter(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
inline bool is_word(char c) { return is_letter(static_cast<unsigned char>(c)) || (c >= '0' && c <= '9') || c == '_'; }

/// Letters from `first` to `last` have their other case at this distance; `by` 2: every second one.
struct CasePairs {
  char32_t first, last, distance, by;
};
/// Adds the other case of letters: Latin, Greek, Cyrillic and Armenian ones that have one by pairs.
SLUICE_LAZY void fold(std::vector<CharacterRange>& ranges) {
  static constexpr std::array<CasePairs, 13> pairs{{{'A', 'Z', 32, 1},
                                                    {0xC0, 0xD6, 32, 1},
                                                    {0xD8, 0xDE, 32, 1},
                                                    {0x100, 0x12E, 1, 2},
                                                    {0x132, 0x136, 1, 2},
                                                    {0x139, 0x147, 1, 2},
                                                    {0x14A, 0x176, 1, 2},
                                                    {0x179, 0x17D, 1, 2},
                                                    {0x391, 0x3A1, 32, 1},
                                                    {0x3A3, 0x3AB, 32, 1},
                                                    {0x400, 0x40F, 80, 1},
                                                    {0x410, 0x42F, 32, 1},
                                                    {0x531, 0x556, 48, 1}}};
  for (auto i = ranges.size(); i-- > 0;) {
    auto const range = ranges[i];
    auto const in = [&](char32_t c) { return range.first <= c && c <= range.last; };
    for (auto const& [first, last, distance, by] : pairs) {
      if (range.last < first || range.first > last + distance) continue;
      for (auto c = first; c <= last; c += by) {
        if (in(c)) ranges.push_back({c + distance, c + distance});
        if (in(c + distance)) ranges.push_back({c, c});
      }
    }
  }
}

}  // namespace sluice::inline v0::detail
