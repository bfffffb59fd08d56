// SPDX-License-Identifier: Apache-2.0
/// \file
/// Characters: what belongs to a word, upper and lower case, UTF-8 byte by byte. Independent of any locale.
#pragma once

#include <text/lines.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace text {

constexpr char32_t replacement = 0xFFFD;  ///< for bytes that are no UTF-8

/// Takes bytes one by one, since tokens may hold parts of a character.
class Utf8 {
 public:
  /// Calls `each` with every character that this byte completes.
  template <class F>
  void read(char byte, F&& each) {
    if (count_ > 0 && !continues(byte)) count_ = 0, each(replacement);
    bytes_[count_++] = byte;
    if (count_ < length()) return;
    auto const character = valid_utf8(partial()) ? value() : replacement;
    count_ = 0;
    each(character);
  }
  /// The bytes of a character that is not complete.
  std::string_view partial() const { return {bytes_.data(), count_}; }

  static bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

 private:
  std::uint8_t length() const {
    auto const lead = static_cast<unsigned char>(bytes_[0]);
    return lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  }
  char32_t value() const {
    auto value = static_cast<char32_t>(static_cast<unsigned char>(bytes_[0]) & (count_ == 1 ? 0x7F : 0xFF >> count_));
    for (std::size_t i = 1; i < count_; ++i)
      value = value << 6 | (static_cast<char32_t>(static_cast<unsigned char>(bytes_[i])) & 0x3F);
    return value;
  }

  std::array<char, 4> bytes_{};
  std::uint8_t count_ = 0;
};

/// The characters of a text.
inline std::u32string characters(std::string_view text) {
  std::u32string all;
  Utf8 utf8;
  for (auto const byte : text) utf8.read(byte, [&](char32_t c) { all.push_back(c); });
  if (!utf8.partial().empty()) all.push_back(replacement);
  return all;
}

inline std::string to_utf8(std::u32string_view characters) {
  std::string out;
  for (auto const c : characters) {
    auto const add = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
    auto const rest = [&](unsigned shift) { add(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) add(c);
    else if (c < 0x800) add(0xC0 | c >> 6), rest(0);
    else if (c < 0x10000) add(0xE0 | c >> 12), rest(6), rest(0);
    else add(0xF0 | c >> 18), rest(12), rest(6), rest(0);
  }
  return out;
}

inline bool is_space(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Letters, digits, marks and "_": everything not known to be something else. Characters of scripts without spaces
/// (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are not part of a word, so there is a boundary between any two of them.
inline bool is_word(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  struct Range {
    char32_t first, last;
  };
  static constexpr Range others[] = {
      {0x80, 0xA9},      {0xAB, 0xB4},     {0xB6, 0xB9},     {0xBB, 0xBF},     {0xD7, 0xD7},       {0xF7, 0xF7},
      {0x37E, 0x37E},    {0x387, 0x387},   {0x55A, 0x55F},   {0x589, 0x58A},   {0x5BE, 0x5BE},     {0x5F3, 0x5F4},
      {0x600, 0x60F},    {0x61B, 0x61F},   {0x66A, 0x66D},   {0x6D4, 0x6D4},   {0x964, 0x965},     {0xE00, 0xEFF},
      {0x1000, 0x109F},  {0x1680, 0x1680}, {0x1780, 0x17FF}, {0x2000, 0x200B}, {0x200E, 0x2BFF},   {0x2E00, 0x2E7F},
      {0x3000, 0x31FF},  {0x3400, 0x9FFF}, {0xF900, 0xFAFF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF0F},
      {0xFF1A, 0xFF20},  {0xFF3B, 0xFF40}, {0xFF5B, 0xFF9F}, {0xFFE0, 0xFFFF}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFF},
      {0xE0000, 0xE007F}};
  for (auto const& range : others)
    if (c >= range.first && c <= range.last) return false;
  return true;
}

/// Of Latin, Greek and Cyrillic letters; others stay as they are.
inline char32_t upper(char32_t c) {
  auto const in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (in('a', 'z') || (in(0xE0, 0xFE) && c != 0xF7) || (in(0x3B1, 0x3CB) && c != 0x3C2) || in(0x430, 0x44F))
    return c - 0x20;
  if (c == 0xFF) return 0x178;
  if (c == 0x3AC) return 0x386;
  if (in(0x3AD, 0x3AF)) return c - 0x25;
  if (c == 0x3CC) return 0x38C;
  if (in(0x3CD, 0x3CE)) return c - 0x3F;
  if (in(0x450, 0x45F)) return c - 0x50;
  auto const odd = (c & 1) != 0;
  auto const small_is_odd = (in(0x100, 0x137) && c != 0x131) || in(0x14A, 0x177) || in(0x460, 0x481) ||
                            in(0x48A, 0x4BF) || in(0x4D0, 0x52F) || in(0x1E00, 0x1E95) || in(0x1EA0, 0x1EFF);
  auto const small_is_even = in(0x139, 0x148) || in(0x179, 0x17E);
  return (small_is_odd && odd) || (small_is_even && !odd) ? c - 1 : c;
}
inline char32_t lower(char32_t c) {
  for (auto const up : {0x20, 1, 0x25, 0x3F, 0x50, 0x26, 0x40, -0x79})  // the distances in upper()
    if (auto const small = static_cast<char32_t>(static_cast<std::int32_t>(c) + up); upper(small) == c) return small;
  return c;
}

/// `text` with its first character changed.
inline std::string with_first(std::string_view text, char32_t (*change)(char32_t)) {
  auto all = characters(text);
  if (!all.empty()) all.front() = change(all.front());
  return to_utf8(all);
}

/// White space of any kind and length as one space, none at the ends.
inline std::string squeezed(std::string_view text) {
  std::u32string all;
  for (auto const c : characters(text)) {
    if (!is_space(c)) all.push_back(c);
    else if (!all.empty() && all.back() != ' ') all.push_back(' ');
  }
  if (!all.empty() && all.back() == ' ') all.pop_back();
  return to_utf8(all);
}

/// What the labels of a recogniser are called in a table of n-grams of labels, whose words have no spaces in them: `_` is the label that
/// is a space, if there is one, and no other then.
inline std::vector<std::string> label_words(std::vector<std::string> labels) {
  if (std::find(labels.begin(), labels.end(), " ") == labels.end()) return labels;
  for (auto& label : labels) label = label == " " ? "_" : label == "_" ? "<unk>" : label;
  return labels;
}

}  // namespace text
