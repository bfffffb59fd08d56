// SPDX-License-Identifier: Apache-2.0
/// \file
/// The format "regex" of JSON schemas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_texts.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// Strings that are regular expressions of ECMA-262, which nest.
SLUICE_LAZY Expressions::Id json_regex_format(Expressions& out, JsonTexts& texts) {
  using Id = Expressions::Id;
  auto const c = [&](std::vector<CharacterRange> ranges) {
    normalise(ranges);
    return texts.characters(ranges);
  };
  auto const t = [&](std::string_view text) {
    std::vector<Id> parts;
    for (auto const one : text)
      parts.push_back(c({{static_cast<unsigned char>(one), static_cast<unsigned char>(one)}}));
    return out.sequence(parts);
  };
  auto const digit = c({{'0', '9'}}), hex = c({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  auto const name = out.sequence({c({{'A', 'Z'}, {'a', 'z'}, {'_', '_'}, {'$', '$'}}),
                                  out.repeat(c({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}, {'$', '$'}}), 0, -1)});
  auto const property = out.repeat(c({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}, {'=', '='}}), 1, -1);
  auto const escape = out.sequence(
      {t("\\"),
       out.choice({c({{'!', '/'},
                      {':', '@'},
                      {'[', '`'},
                      {'{', '~'},
                      {'0', '9'},
                      {'B', 'B'},
                      {'D', 'D'},
                      {'S', 'S'},
                      {'W', 'W'},
                      {'b', 'b'},
                      {'d', 'd'},
                      {'f', 'f'},
                      {'n', 'n'},
                      {'r', 't'},
                      {'v', 'w'}}),
                   out.sequence({t("c"), c({{'A', 'Z'}, {'a', 'z'}})}), out.sequence({t("x"), out.repeat(hex, 2, 2)}),
                   out.sequence({t("u"), out.choice({out.repeat(hex, 4, 4),
                                                     out.sequence({t("{"), out.repeat(hex, 1, 5), t("}")})})}),
                   out.sequence({t("k<"), name, t(">")}),
                   out.sequence({c({{'P', 'P'}, {'p', 'p'}}), t("{"), property, t("}")})})});
  auto const in_class = out.choice({c({{0, '['}, {'^', last_character}}), escape});
  auto const whole_class = out.sequence({t("["), out.repeat(in_class, 0, -1), t("]")});
  auto const rule = out.add_rule("regular expression");
  auto const inner = out.sequence(
      {out.optional(out.choice({t("?:"), t("?="), t("?!"), t("?<="), t("?<!"), out.sequence({t("?<"), name, t(">")})})),
       out.call(rule)});
  auto const plain =
      c({{0, '#'}, {'%', '\''}, {',', '-'}, {'/', '>'}, {'@', 'Z'}, {']', ']'}, {'_', 'z'}, {'}', last_character}});
  auto const atom = out.choice({plain, t("."), escape, whole_class, out.sequence({t("("), inner, t(")")})});
  auto const times = out.sequence(
      {t("{"), out.repeat(digit, 1, -1), out.optional(out.sequence({t(","), out.repeat(digit, 0, -1)})), t("}")});
  auto const quantity = out.sequence({out.choice({c({{'*', '+'}, {'?', '?'}}), times}), out.optional(t("?"))});
  auto const term = out.choice({c({{'$', '$'}, {'^', '^'}}), out.sequence({atom, out.optional(quantity)})});
  auto const branch = out.repeat(term, 0, -1);
  out.rules[static_cast<std::size_t>(rule)].expression =
      out.sequence({branch, out.repeat(out.sequence({t("|"), branch}), 0, -1)});
  return out.sequence({out.text("\""), out.call(rule), out.text("\"")});
}

}  // namespace sluice::inline v0::detail
