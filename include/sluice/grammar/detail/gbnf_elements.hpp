// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the rules of a grammar in GBNF are made of.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace sluice::inline v0::detail {

/// A token's number.
SLUICE_LAZY std::int32_t read_token_number(SourceReader& in) {
  auto const place = in.place();
  std::int64_t value = 0;
  while (in.at_digit()) value = (std::min)(value * 10 + (in.peek() - '0'), std::int64_t{1} << 31), in.skip();
  if (in.place() == place) in.fail("a token's number is missing");
  if (value > (std::numeric_limits<std::int32_t>::max)()) in.fail_at(place, "is no token's number: it is too large");
  return static_cast<std::int32_t>(value);
}

/// <name>, <[number]>, !<...>, <[1-5,9]>, <[^1-5,9]> or <[*]>.
SLUICE_LAZY TokenTerminal read_token(SourceReader& in) {
  auto const place = in.place();
  TokenTerminal out;
  out.complement = in.take("!");
  if (!in.take("<")) in.fail("a token is missing: <name> or <[number]>");
  if (in.take("[")) {
    if (in.take("^")) out.complement = !out.complement;
    if (in.take("*")) out.ranges.emplace_back(0, (std::numeric_limits<std::int32_t>::max)());
    else do {
        auto const from = in.place();
        auto const first = read_token_number(in);
        auto const last = in.take("-") ? read_token_number(in) : first;
        if (last < first) in.fail_at(from, "a range whose last token comes before its first");
        out.ranges.emplace_back(first, last);
      } while (in.take(","));
    if (!in.take("]>")) in.fail("]> is missing");
  } else {
    auto const from = in.place() - 1;
    in.take_while([](char c) { return c != '>' && c != '\n' && c != '\r'; });
    if (!in.take(">")) in.fail_at(from, "> is missing");
    if (in.place() == from + 2) in.fail_at(from, "the name of a token is missing");
    out.names.emplace_back(in.from(from));
  }
  out.written = in.from(place);
  return out;
}

/// The parts of GBNF, as llama.cpp and xgrammar write them.
struct GbnfElements {
  /// Of names: dots, too, as in xgrammar.
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  }
  /// Skips white space and comments. \returns  whether a line ended
  SLUICE_LAZY static bool space(SourceReader& in) {
    auto lines = false;
    for (;; in.skip()) {
      if (in.peek() == '#')
        while (!in.end() && in.peek() != '\n' && in.peek() != '\r') in.skip();
      auto const c = in.peek();
      if (c == '\n' || c == '\r') lines = true;
      else if (c != ' ' && c != '\t') return lines;
    }
  }

  /// One character, or an escape: those of llama.cpp and of C; in classes, punctuation too.
  SLUICE_LAZY static char32_t character(SourceReader& in, bool in_class = false) {
    auto const place = in.place();
    if (!in.take("\\")) return in.character();
    auto const c = in.end() ? '\0' : in.peek();
    in.skip();
    if (c == 'x' || c == 'u' || c == 'U') {
      auto const value = in.hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8);
      if (value > last_character || is_surrogate(value)) in.fail_at(place, "is no Unicode character");
      return value;
    }
    constexpr std::string_view names = "nrtabfve0\\\"[]-/'?^$.*+(){}|";
    constexpr std::string_view values("\n\r\t\a\b\f\v\x1B\0", 9);
    constexpr std::size_t texts = 17;  // those that texts have, too
    auto const known = c == '\0' ? std::string_view::npos : names.find(c);
    if (in_class && c != '\0' && std::string_view("dDsSwW").find(c) != std::string_view::npos)
      in.fail_at(place, std::string("the escape \\") + c + " is not supported: expected the ranges, such as 0-9");
    if (known == std::string_view::npos || (known >= texts && !in_class))
      in.fail_at(place,
                 R"(an unknown escape: expected one of \n \r \t \a \b \f \v \e \0 \\ \" \' \/ \? \[ \] \- \x \u \U)");
    return static_cast<unsigned char>(known < values.size() ? values[known] : c);
  }

  /// In quotation marks.
  SLUICE_LAZY static std::string text(SourceReader& in) {
    in.skip();
    std::string out;
    while (!in.take("\"")) append_utf8(out, character(in));
    return out;
  }
};

}  // namespace sluice::inline v0::detail
