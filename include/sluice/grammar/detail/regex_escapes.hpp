// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads escapes and named classes of regular expressions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/regex_classes.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/utf8.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// [:alpha:], [:^alpha:] and so on, for ASCII characters.
SLUICE_LAZY void read_named_class(SourceReader& in, std::vector<CharacterRange>& ranges) {
  auto const place = in.place();
  in.skip(2);
  auto const negative = in.take("^");
  for (auto const& [name, of] : named_classes())
    if (in.take(std::string(name) + ":]")) {
      auto const chosen = negative ? negated(of) : of;
      ranges.insert(ranges.end(), chosen.begin(), chosen.end());
      return;
    }
  in.fail_at(place, "an unknown class of characters");
}

/// What \xHH, \x{H...} and \uHHHH stand for, from behind the letter on.
SLUICE_LAZY char32_t read_character_number(SourceReader& in, char32_t kind, std::size_t place) {
  char32_t value = 0;
  if (kind == 'x' && in.take("{")) {
    for (int digits = 0; !in.take("}"); ++digits) {
      if (digits == 8) in.fail_at(place, "} is missing");
      value = value * 16 + in.hexadecimal(1);
    }
  } else value = in.hexadecimal(kind == 'x' ? 2 : 4);
  if (value > last_character || is_surrogate(value)) in.fail_at(place, "is no Unicode character");
  return value;
}

/// One character, from its \ on; or nothing, if it appends the ranges of a class to `ranges`.
/// \param unicode  as for letter_class()
SLUICE_LAZY std::optional<char32_t> read_escape(SourceReader& in, bool unicode, std::vector<CharacterRange>& ranges) {
  auto const place = in.place();
  in.skip();
  if (in.end()) in.fail_at(place, "ends in the middle");
  auto const c = in.character();
  if (is_class_letter(c)) {
    auto const of = letter_class(c, unicode);
    ranges.insert(ranges.end(), of.begin(), of.end());
    return {};
  }
  switch (c) {
    case 'n': return U'\n';
    case 'r': return U'\r';
    case 't': return U'\t';
    case 'f': return U'\f';
    case 'v': return U'\v';
    case 'a': return U'\a';
    case '0': return U'\0';
    case 'x':
    case 'u': return read_character_number(in, c, place);
    default: break;
  }
  if (c >= '1' && c <= '9') in.fail_at(place, "back-references are not supported");
  if (c < 0x80 && is_word(static_cast<char>(c)) && c != '_') in.fail_at(place, "an escape that is not supported");
  return c;
}

}  // namespace sluice::inline v0::detail
