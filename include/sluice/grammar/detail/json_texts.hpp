// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules for JSON texts.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_numbers.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/text_bytes.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// How texts are written.
struct JsonStyle {
  std::int32_t space = 0;  // the maximum number of white-space characters wherever white space is allowed; -1: any
  std::string_view item = ",", key = ":";
  bool any_order = false;
  Escapes escapes = Escapes::usual;
  bool plain_numbers = false;
  bool tidy = false;                        // white space where writers put it, and as they write it
  std::int32_t digits = 0, characters = 0;  // of what a schema leaves open, at most; 0: any number
  std::int32_t indent = -1;                 // blanks a level, on lines of their own; -1: no lines
};

/// Values, strings and white space, as expressions.
class JsonTexts {
 public:
  using Id = Expressions::Id;

  JsonTexts(Expressions& out, JsonStyle style) : out_(out), style_(style) {}

  JsonStyle const& style() const { return style_; }
  SLUICE_LAZY Id space() {
    if (style_.space == 0) return out_.empty();
    if (space_ >= 0) return space_;
    if (style_.tidy) {
      auto const blanks = style_.space < 0 ? -1 : style_.space - 1;
      auto const line =
          out_.sequence({out_.text("\n"), out_.repeat(out_.characters({{'\t', '\t'}, {' ', ' '}}), 0, blanks)});
      return space_ = out_.optional(style_.space == 1 ? out_.text(" ") : out_.choice({out_.text(" "), line}));
    }
    if (style_.space > 0)
      return space_ = out_.repeat(out_.characters({{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}), 0, style_.space);
    return space_ = out_.automaton({{{0, 3, true}}, {{'\t', '\n', 0}, {'\r', '\r', 0}, {' ', ' ', 0}}});
  }
  /// Around the whole text, and before a comma or colon.
  SLUICE_LAZY Id untidy() { return style_.tidy ? out_.empty() : space(); }
  /// A text between brackets. \param empty  whether nothing may stand between them
  SLUICE_LAZY Id within(std::string_view open, Id inner, std::string_view close, bool empty) {
    if (style_.indent >= 0) {
      auto const none = out_.sequence({out_.text(open), out_.text(close)});
      if (out_[inner].kind == Expressions::Kind::sequence && out_.parts(inner).empty()) return none;
      auto const lines = out_.sequence({line(), inner});
      deeper_.resize(static_cast<std::size_t>(out_.size()));
      deeper_[static_cast<std::size_t>(lines)] = 1;
      auto const full = out_.sequence({out_.text(open), lines, line(), out_.text(close)});
      return empty ? out_.choice({none, full}) : full;
    }
    auto const full = out_.sequence({space(), inner, space()});
    return out_.sequence({out_.text(open), empty ? out_.choice({space(), full}) : full, out_.text(close)});
  }
  /// A new line, indented; for JsonIndent.
  SLUICE_LAZY Id line() {
    if (line_ < 0) line_ = out_.byte('\n', '\n');
    return line_;
  }
  std::vector<std::uint8_t> const& deeper() const { return deeper_; }
  SLUICE_LAZY Id comma() {
    if (style_.indent >= 0) return out_.sequence({out_.text(style_.item), line()});
    if (comma_ < 0) comma_ = out_.sequence({untidy(), out_.text(style_.item), space()});
    return comma_;
  }
  SLUICE_LAZY Id member(Id name, Id value) {
    return out_.sequence({name, untidy(), out_.text(style_.key), space(), value});
  }

  /// One character of a string, however it is written. The part after a \\ is a rule.
  SLUICE_LAZY Id character() {
    if (character_ >= 0) return character_;
    auto const escape = out_.add_rule("escape");
    auto const hex = [&] { return out_.characters({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}); };
    auto const d = [&] { return out_.characters({{'D', 'D'}, {'d', 'd'}}); };
    auto const simple = out_.characters(
        {{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}});
    auto const not_d = out_.characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
    auto const below = out_.sequence({d(), out_.byte('0', '7'), hex(), hex()});
    auto const high = out_.sequence({d(), out_.characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), hex(), hex()});
    auto const low = out_.sequence({d(), out_.characters({{'C', 'F'}, {'c', 'f'}}), hex(), hex()});
    auto const number =
        out_.choice({out_.sequence({not_d, hex(), hex(), hex()}), below, out_.sequence({high, out_.text("\\u"), low})});
    out_.rules[static_cast<std::size_t>(escape)].expression =
        out_.choice({simple, out_.sequence({out_.text("u"), number})});
    auto const plain = out_.characters({{' ', '!'}, {'#', '['}, {']', last_character}});
    return character_ = out_.choice({plain, out_.sequence({out_.text("\\"), out_.call(escape)})});
  }
  /// \param maximum  -1: any number
  SLUICE_LAZY Id string(std::int32_t minimum, std::int32_t maximum) {
    if (maximum < 0 && style_.characters > 0) maximum = (std::max)(minimum, style_.characters);
    return out_.sequence({out_.text("\""), out_.repeat(character(), minimum, maximum), out_.text("\"")});
  }
  /// One character of a class, within a string.
  SLUICE_LAZY Id characters(std::vector<CharacterRange> const& ranges) {
    if (ranges.size() == 1 && ranges[0] == CharacterRange{0, last_character}) return character();
    std::vector<std::uint32_t> key;
    for (auto const [first, last] : ranges) key.push_back(first), key.push_back(last);
    auto const [it, fresh] = classes_.try_emplace(std::move(key), -1);
    if (fresh) {
      TextAutomaton one;
      if (!ranges.empty()) one.states.resize(2), one.states[1].accepts = true;
      for (auto const [first, last] : ranges) one.states[0].edges.push_back({first, last, 1});
      it->second = ranges.empty() ? out_.nothing() : out_.automaton(TextBytes::json(one, style_.escapes, false));
    }
    return it->second;
  }
  /// A string of this set. \param most  characters; -1: any number
  SLUICE_LAZY Id string(TextAutomaton const& texts, std::int32_t most = -1) {
    if (texts.empty()) return out_.nothing();
    if (texts.full()) return string(0, most);
    return out_.sequence({out_.text("\""), out_.automaton(TextBytes::json(texts, style_.escapes, true, most))});
  }
  /// Any string but these. \param texts  sorted, all different
  SLUICE_LAZY Id string_but(std::vector<std::string> const& texts) {
    if (texts.empty()) return string(0, -1);
    if (auto some = TextBytes::other_names(texts, style_.escapes); !some.states.empty())
      return out_.sequence({out_.text("\""), out_.automaton(std::move(some))});
    std::vector<std::u32string> words;
    words.reserve(texts.size());
    for (auto const& text : texts) words.push_back(decoded(text));
    return string(TextAutomaton::but(std::move(words)));
  }
  SLUICE_LAZY Id string(std::string_view text) {
    std::vector<Id> parts;
    parts.reserve(text.size() + 2);
    parts.push_back(out_.letter('"'));
    auto const escapable = TextBytes::escapable(style_.escapes);
    for (auto const c : decoded(text)) {
      if (std::ranges::any_of(escapable, [&](CharacterRange r) { return r.first <= c && c <= r.last; }))
        parts.push_back(characters({{c, c}}));
      else parts.push_back(out_.letter(static_cast<char>(c)));
    }
    parts.push_back(out_.letter('"'));
    return out_.sequence(parts);
  }

  /// A number of this set.
  SLUICE_LAZY Id number(TextAutomaton const& texts) {
    if (texts.empty()) return out_.nothing();
    auto const written = style_.plain_numbers ? texts & JsonNumbers::plain() : texts;
    return out_.automaton(TextBytes::utf8(style_.digits > 0 ? shortened(written) : written));
  }
  /// With exponents for which it is a finite double; integers have no negative one.
  SLUICE_LAZY Id number(bool integers) {
    auto& known = integers ? integer_ : number_;
    if (known >= 0) return out_.call(known);
    known = out_.add_rule(integers ? "integer" : "number");
    auto const body = number(integers ? JsonNumbers::integers() : JsonNumbers::finite());
    out_.rules[static_cast<std::size_t>(known)].expression = body;
    return out_.call(known);
  }

  /// Any value, as a rule.
  SLUICE_LAZY Id any() {
    if (any_ < 0) {
      any_ = out_.add_rule("any value");
      auto const value = out_.choice({out_.text("null"), out_.text("true"), out_.text("false"), number(false),
                                      string(0, -1), array_of(out_.call(any_)), object_of(out_.call(any_))});
      out_.rules[static_cast<std::size_t>(any_)].expression = value;
    }
    return out_.call(any_);
  }
  SLUICE_LAZY Id array_of(Id value) {
    auto const more = out_.repeat(out_.sequence({comma(), value}), 0, -1);
    return within("[", out_.sequence({value, more}), "]", true);
  }
  SLUICE_LAZY Id object_of(Id value) {
    auto const one = member(string(0, -1), value);
    auto const more = out_.repeat(out_.sequence({comma(), one}), 0, -1);
    return within("{", out_.sequence({one, more}), "}", true);
  }

  /// One of many whole numbers, each a text of digits.
  SLUICE_LAZY Id integers(std::vector<std::u32string> numbers) {
    auto const fraction = out_.sequence({out_.text("."), out_.repeat(out_.text("0"), 1, -1)});
    return out_.sequence({number(TextAutomaton::words(std::move(numbers))), out_.optional(fraction)});
  }
  /// One value; its numbers however they are written.
  SLUICE_LAZY Id exactly(JsonValue const& value) {
    using Kind = JsonValue::Kind;
    switch (value.kind) {
      case Kind::null: return out_.text("null");
      case Kind::boolean: return out_.text(value.truth ? "true" : "false");
      case Kind::number: return out_.choice({exactly(JsonNumber::of(value.text)), out_.text(value.text)});
      case Kind::string: return string(std::string_view(value.text));
      default: break;
    }
    std::vector<Id> parts;
    for (auto const& item : value.items) parts.push_back(exactly(item));
    for (auto const& [name, of] : value.members) parts.push_back(member(string(std::string_view(name)), exactly(of)));
    auto const array = value.is(Kind::array);
    auto const inner = array || !style_.any_order ? in_order(parts) : in_any_order(parts);
    return within(array ? "[" : "{", inner, array ? "]" : "}", false);
  }

 private:
  /// Without numbers of more digits than the style wants, where the schema has left open how large they are.
  SLUICE_LAZY TextAutomaton shortened(TextAutomaton const& texts) const {
    auto const open = !(texts & JsonNumbers::endless()).empty();
    auto shorter = texts & JsonNumbers::digits(open ? style_.digits : -1, style_.digits);
    return shorter.empty() ? texts : shorter;
  }
  /// A number as digits and, if these are few, with one digit before the point and an exponent.
  SLUICE_LAZY Id exactly(JsonNumber const& number) {
    auto const zeros = [&] { return out_.repeat(out_.text("0"), 0, -1); };
    auto const behind_point = [&](std::string_view digits) {
      if (digits.empty()) return out_.optional(out_.sequence({out_.text("."), out_.repeat(out_.text("0"), 1, -1)}));
      return out_.sequence({out_.text("."), out_.text(digits), zeros()});
    };
    auto const e = [&] { return out_.characters({{'E', 'E'}, {'e', 'e'}}); };
    auto const sign = [&] { return out_.optional(out_.characters({{'+', '+'}, {'-', '-'}})); };
    if (number.digits.empty()) {
      auto const exponent = out_.sequence({e(), sign(), out_.repeat(out_.byte('0', '9'), 1, -1)});
      return out_.sequence({out_.optional(out_.text("-")), out_.text("0"), behind_point({}), out_.optional(exponent)});
    }
    std::vector<Id> choices;
    auto const minus = out_.text(number.negative ? "-" : "");
    auto const power = number.exponent + static_cast<std::int64_t>(number.digits.size()) - 1;
    std::string whole, rest;
    if (JsonNumbers::point(number, whole, rest))
      choices.push_back(out_.sequence({minus, out_.text(whole), behind_point(rest)}));
    choices.push_back(out_.sequence({minus, out_.text(number.digits.substr(0, 1)),
                                     behind_point(std::string_view(number.digits).substr(1)), e(),
                                     power == 0  ? sign()
                                     : power > 0 ? out_.optional(out_.text("+"))
                                                 : out_.text("-"),
                                     zeros(), out_.text(std::to_string(std::abs(power)))}));
    return out_.choice(choices);
  }
  SLUICE_LAZY Id in_order(std::vector<Id> const& parts) {
    std::vector<Id> out;
    for (auto const part : parts) {
      if (!out.empty()) out.push_back(comma());
      out.push_back(part);
    }
    return out_.sequence(out);
  }
  /// More than six parts: in order.
  SLUICE_LAZY Id in_any_order(std::vector<Id> const& parts) {
    if (parts.size() > 6 || parts.size() < 2) return in_order(parts);
    auto const all = std::size_t{1} << parts.size();
    std::vector<Id> rest(all);  // [set of parts that have been written]
    rest[all - 1] = out_.empty();
    for (auto done = all - 1; done-- > 0;) {
      std::vector<Id> choices;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if ((done >> i & 1) != 0) continue;
        auto const next = rest[done | std::size_t{1} << i];
        choices.push_back(done == 0 ? out_.sequence({parts[i], next}) : out_.sequence({comma(), parts[i], next}));
      }
      auto const rule = out_.add_rule("members in any order");
      out_.rules[static_cast<std::size_t>(rule)].expression = out_.choice(choices);
      rest[done] = out_.call(rule);
    }
    return rest[0];
  }

  Expressions& out_;
  JsonStyle style_;
  Id space_ = -1, character_ = -1, comma_ = -1;
  std::int32_t any_ = -1, number_ = -1, integer_ = -1;  // rules
  Id line_ = -1;
  std::vector<std::uint8_t> deeper_;  // [expression]: of the lines between brackets
  std::map<std::vector<std::uint32_t>, Id> classes_;
};

}  // namespace sluice::inline v0::detail
