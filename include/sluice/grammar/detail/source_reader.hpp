// SPDX-License-Identifier: Apache-2.0
/// \file
/// A text with a current position, shared by the parsers.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::inline v0::detail {

/// Reads a text character by character and reports errors with their position.
class SourceReader {
 public:
  /// \param what  names the text in messages
  SLUICE_LAZY SourceReader(std::string_view what, std::string_view text, GrammarLimits const& limits)
      : what_(what), text_(text), limits_(limits) {
    limits.check();
    require(text.size() <= limits.text, "limits.text", limits.text,
            std::string(what) + " has " + std::to_string(text.size()) + " bytes");
  }

  SLUICE_LAZY [[noreturn]] void fail(std::string const& why) const { fail_at(at_, why); }
  /// \param place  byte offset from the beginning
  SLUICE_LAZY [[noreturn]] void fail_at(std::size_t place, std::string const& why) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < place && i < text_.size(); ++i) {
      if (text_[i] == '\n') ++line, column = 1;
      else if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) ++column;
    }
    throw std::invalid_argument("sluice: " + std::string(what_) + ", line " + std::to_string(line) + ", column " +
                                std::to_string(column) + ": " + why);
  }

  bool end() const { return at_ >= text_.size(); }
  std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }
  /// The next byte; 0 at the end.
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  SLUICE_LAZY bool at(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  SLUICE_LAZY bool take(std::string_view token) {
    auto const found = at(token);
    if (found) at_ += token.size();
    return found;
  }
  void skip(std::size_t bytes = 1) { at_ += bytes; }
  /// The bytes up to the first that does not fit.
  template <class Fits>
  std::string_view take_while(Fits const& fits) {
    auto const begin = at_;
    while (at_ < text_.size() && fits(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  SLUICE_LAZY std::string_view from(std::size_t place) const { return text_.substr(place, at_ - place); }

  /// The next character, of any kind.
  SLUICE_LAZY char32_t character() {
    if (end()) fail("ends in the middle");
    auto const [c, size] = read_utf8(text_.substr(at_));
    if (size == 0) fail("is no UTF-8");
    at_ += size;
    return c;
  }
  /// Reads exactly this many hexadecimal digits.
  SLUICE_LAZY char32_t hexadecimal(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      auto const c = peek();
      auto const digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : -1;
      if (end() || digit < 0) fail("needs " + std::to_string(digits) + " hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit), ++at_;
    }
    return value;
  }
  bool at_digit() const { return peek() >= '0' && peek() <= '9'; }
  /// Reads a repetition count.
  SLUICE_LAZY std::int32_t count() {
    auto const begin = at_;
    std::int64_t value = 0;
    while (at_digit()) {
      value = std::min<std::int64_t>(value * 10 + (peek() - '0'), 1 << 30), ++at_;
    }
    if (at_ == begin) fail("a number is missing");
    if (value > limits_.repetition)
      fail_at(begin, "more repetitions than limits.repetition = " + std::to_string(limits_.repetition));
    return static_cast<std::int32_t>(value);
  }

  GrammarLimits const& limits() const { return limits_; }

 private:
  std::string_view what_, text_;
  GrammarLimits limits_;
  std::size_t at_ = 0;
};

}  // namespace sluice::inline v0::detail
