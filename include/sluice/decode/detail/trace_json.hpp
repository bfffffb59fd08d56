// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes the JSON of a trace.
#pragma once

#include <sluice/language.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::inline v0::detail {

/// The length in bytes of the first character of `text`; 0 if it does not begin with valid UTF-8 (Unicode 15, table 3-7).
SLUICE_LAZY std::size_t utf8_character(std::string_view text) {
  auto const at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  auto const inside = [&](std::size_t i, int low = 0x80, int high = 0xBF) { return at(i) >= low && at(i) <= high; };
  if (text.empty()) return 0;
  auto const first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return inside(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return inside(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && inside(2) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return inside(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && inside(2) && inside(3) ? 4 : 0;
  return 0;
}

SLUICE_LAZY bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    auto const bytes = utf8_character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

/// One line of JSON, written from left to right. Numbers are read back bit for bit; NaN and infinity become null. '<', '>' and
/// '&' are escaped, so that the line can be put into a page of HTML.
class JsonLine {
 public:
  /// \name Objects and arrays
  /// @{
  SLUICE_LAZY JsonLine& open(char bracket) {
    separate();
    text_ += bracket, fresh_ = true;
    return *this;
  }
  SLUICE_LAZY JsonLine& close(char bracket) {
    text_ += bracket, fresh_ = false;
    return *this;
  }
  SLUICE_LAZY JsonLine& key(std::string_view name) {
    string(name);
    text_ += ':', fresh_ = true;
    return *this;
  }
  /// @}

  template <std::integral I>
  JsonLine& number(I x) {
    separate();
    return characters(x);
  }
  template <std::floating_point F>
  JsonLine& number(F x) {
    separate();
    if (std::isfinite(x)) return characters(x);
    text_ += "null";
    return *this;
  }
  SLUICE_LAZY JsonLine& boolean(bool x) {
    separate();
    text_ += x ? "true" : "false";
    return *this;
  }
  /// Invalid UTF-8 becomes U+FFFD.
  SLUICE_LAZY JsonLine& string(std::string_view text) {
    separate();
    text_ += '"';
    while (!text.empty()) {
      auto const bytes = utf8_character(text);
      if (bytes > 1) text_ += text.substr(0, bytes);
      else if (bytes == 1) escape(text.front());
      else text_ += "\\ufffd";
      text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    text_ += '"';
    return *this;
  }
  template <class Range>
  JsonLine& numbers(Range const& range) {
    open('[');
    for (auto const& x : range) number(x);
    return close(']');
  }

  /// Returns the line so far, and begins the next.
  SLUICE_LAZY std::string_view finish() {
    text_ += '\n', done_.swap(text_), text_.clear(), fresh_ = true;
    return done_;
  }

 private:
  SLUICE_LAZY void separate() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
  }
  template <class Number>
  JsonLine& characters(Number x) {
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
    return *this;
  }
  SLUICE_LAZY void escape(char c) {
    constexpr auto hex = "0123456789abcdef";
    if (c == '"' || c == '\\') (text_ += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '<' || c == '>' || c == '&')
      ((text_ += "\\u00") += hex[static_cast<unsigned char>(c) / 16]) += hex[static_cast<unsigned char>(c) % 16];
    else text_ += c;
  }

  std::string text_, done_;
  bool fresh_ = true;  // the next value is the first of its array or object
};

}  // namespace sluice::inline v0::detail
