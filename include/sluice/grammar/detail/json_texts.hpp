// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules for JSON texts.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Values, strings and white space, as expressions.
class JsonTexts {
 public:
  using Id = Expressions::Id;

  /// \param space  maximum number of white-space characters wherever white space is allowed; -1: any number
  JsonTexts(Expressions& out, std::int32_t space) : out_(out), space_(space) {}

  template <class = void>
  Id space() {
    if (space_ == 0) return out_.empty();
    return out_.repeat(out_.characters({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}), 0, space_);
  }
  /// A text between brackets.
  template <class = void>
  Id within(std::string_view open, Id inner, std::string_view close) {
    return out_.sequence({out_.text(open), space(), inner, space(), out_.text(close)});
  }
  template <class = void>
  Id comma() {
    return out_.sequence({space(), out_.text(","), space()});
  }
  template <class = void>
  Id member(Id name, Id value) {
    return out_.sequence({name, space(), out_.text(":"), space(), value});
  }

  /// One character of a string, however it is written. The part after a \\ is a rule.
  template <class = void>
  Id character() {
    if (escape_ < 0) {
      escape_ = out_.add_rule("escape");
      auto const hex = [&] { return out_.characters({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}); };
      auto const d = [&] { return out_.characters({{'D', 'D'}, {'d', 'd'}}); };
      auto const simple = out_.characters(
          {{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}});
      auto const not_d = out_.characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
      auto const below = out_.sequence({d(), out_.byte('0', '7'), hex(), hex()});
      auto const high = out_.sequence({d(), out_.characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), hex(), hex()});
      auto const low = out_.sequence({d(), out_.characters({{'C', 'F'}, {'c', 'f'}}), hex(), hex()});
      auto const number = out_.choice(
          {out_.sequence({not_d, hex(), hex(), hex()}), below, out_.sequence({high, out_.text("\\u"), low})});
      auto const escaped = out_.choice({simple, out_.sequence({out_.text("u"), number})});
      out_.rules[static_cast<std::size_t>(escape_)].expression = escaped;
    }
    auto const plain = out_.characters({{' ', '!'}, {'#', '['}, {']', last_character}});
    return out_.choice({plain, out_.sequence({out_.text("\\"), out_.call(escape_)})});
  }
  /// \param maximum  -1: any number
  template <class = void>
  Id string(std::int32_t minimum, std::int32_t maximum) {
    return out_.sequence({out_.text("\""), out_.repeat(character(), minimum, maximum), out_.text("\"")});
  }
  /// Characters, each in one spelling: escaped only if needed, and as short as possible.
  template <class = void>
  Id characters(std::vector<CharacterRange> ranges) {
    normalise(ranges);
    std::vector<Id> choices;
    std::vector<CharacterRange> plain;
    for (auto [first, last] : ranges) {
      for (auto c = first; c <= std::min<char32_t>(last, '\\'); ++c)
        if (c < 0x20 || c == '"' || c == '\\') {
          auto const text = json_quoted(std::string(1, static_cast<char>(c)));
          choices.push_back(out_.text(std::string_view(text).substr(1, text.size() - 2)));
        } else plain.push_back({c, c});
      if (last > '\\') plain.push_back({std::max<char32_t>(first, '\\' + 1), last});
    }
    if (!plain.empty()) choices.push_back(out_.characters(std::move(plain)));
    return out_.choice(choices);
  }
  /// A string, in one spelling, that is none of these.
  template <class = void>
  Id string_but(std::vector<std::u32string> others) {
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return out_.sequence({out_.text("\""), but(others, 0)});
  }

  /// An exponent has at most two digits, so that few numbers are too large for a double.
  template <class = void>
  Id number(bool integers) {
    auto const digits = [&] { return out_.repeat(out_.byte('0', '9'), 1, -1); };
    auto const whole =
        out_.choice({out_.text("0"), out_.sequence({out_.byte('1', '9'), out_.repeat(out_.byte('0', '9'), 0, -1)})});
    auto const integer = out_.sequence({out_.optional(out_.text("-")), whole});
    if (integers) return integer;
    auto const fraction = out_.optional(out_.sequence({out_.text("."), digits()}));
    auto const sign = out_.optional(out_.characters({{'+', '+'}, {'-', '-'}}));
    auto const exponent = out_.optional(
        out_.sequence({out_.characters({{'E', 'E'}, {'e', 'e'}}), sign, out_.repeat(out_.byte('0', '9'), 1, 2)}));
    return out_.sequence({integer, fraction, exponent});
  }

  /// Any value, as a rule.
  template <class = void>
  Id any() {
    if (any_ < 0) {
      any_ = out_.add_rule("any value");
      auto const value = out_.choice({out_.text("null"), out_.text("true"), out_.text("false"), number(false),
                                      string(0, -1), array_of(out_.call(any_)), object_of(out_.call(any_))});
      out_.rules[static_cast<std::size_t>(any_)].expression = value;
    }
    return out_.call(any_);
  }
  template <class = void>
  Id array_of(Id value) {
    auto const more = out_.repeat(out_.sequence({comma(), value}), 0, -1);
    return within("[", out_.optional(out_.sequence({value, more})), "]");
  }
  template <class = void>
  Id object_of(Id value) {
    auto const one = [&] { return member(string(0, -1), value); };
    auto const more = out_.repeat(out_.sequence({comma(), one()}), 0, -1);
    return within("{", out_.optional(out_.sequence({one(), more})), "}");
  }

  /// One value, with optional white space; object members in this order.
  template <class = void>
  Id exactly(JsonValue const& value) {
    using Kind = JsonValue::Kind;
    switch (value.kind) {
      case Kind::null: return out_.text("null");
      case Kind::boolean: return out_.text(value.truth ? "true" : "false");
      case Kind::number: return out_.text(value.text);
      case Kind::string: return out_.text(json_quoted(value.text));
      default: break;
    }
    std::vector<Id> parts;
    for (auto const& item : value.items) {
      if (!parts.empty()) parts.push_back(comma());
      parts.push_back(exactly(item));
    }
    for (auto const& [name, of] : value.members) {
      if (!parts.empty()) parts.push_back(comma());
      parts.push_back(member(out_.text(json_quoted(name)), exactly(of)));
    }
    auto const inner = out_.sequence(parts);
    return value.is(Kind::array) ? within("[", inner, "]") : within("{", inner, "}");
  }

 private:
  /// Any rest of a string, including the closing quote, as a rule.
  template <class = void>
  Id tail() {
    if (tail_ < 0) {
      tail_ = out_.add_rule("rest of a string");
      auto const rest = out_.sequence({out_.repeat(characters({{0, last_character}}), 0, -1), out_.text("\"")});
      out_.rules[static_cast<std::size_t>(tail_)].expression = rest;
    }
    return out_.call(tail_);
  }
  /// The rest of strings that differ from all of `others`, which share their first `depth` characters. A trie, built
  /// from its leaves.
  template <class = void>
  Id but(std::span<std::u32string const> others, std::size_t depth) {
    if (others.empty()) return tail();
    std::vector<Id> choices;
    std::vector<CharacterRange> next;
    auto const ends = others.front().size() == depth;
    if (ends) others = others.subspan(1);
    else choices.push_back(out_.text("\""));
    while (!others.empty()) {
      auto const c = others.front()[depth];
      auto const end = std::find_if(others.begin(), others.end(), [&](auto const& other) { return other[depth] != c; });
      auto const count = static_cast<std::size_t>(end - others.begin());
      next.push_back({c, c});
      choices.push_back(out_.sequence({characters({{c, c}}), but(others.first(count), depth + 1)}));
      others = others.subspan(count);
    }
    normalise(next);
    choices.push_back(out_.sequence({characters(negated(next)), tail()}));
    return out_.choice(choices);
  }

  Expressions& out_;
  std::int32_t space_;
  std::int32_t escape_ = -1, any_ = -1, tail_ = -1;  // rules
};

}  // namespace sluice::inline v0::detail
