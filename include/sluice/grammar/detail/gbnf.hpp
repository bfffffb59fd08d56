// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads grammars in GBNF.
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
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A token's number.
template <class = void>
std::int32_t read_token_number(SourceReader& in) {
  auto const place = in.place();
  std::int64_t value = 0;
  while (in.at_digit()) value = (std::min)(value * 10 + (in.peek() - '0'), std::int64_t{1} << 31), in.skip();
  if (in.place() == place) in.fail("a token's number is missing");
  if (value > (std::numeric_limits<std::int32_t>::max)()) in.fail_at(place, "is no token's number: it is too large");
  return static_cast<std::int32_t>(value);
}

/// <name>, <[number]>, !<...>, <[1-5,9]>, <[^1-5,9]> or <[*]>.
template <class = void>
TokenTerminal read_token(SourceReader& in) {
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

/// llama.cpp's grammar notation, as its grammars/README.md describes it and its parser reads it: `name ::= ...` rules,
/// "literals", [classes], [^negated], `.`, (groups), |, repetition by * + ? {m} {m,} {m,n}, # comments, escapes
/// \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH, and tokens: <name> (with its brackets, the name is the token's text), <[number]>, !<...> for any
/// other token; and as in llguidance, sets <[1-5,9]>, <[^1-5,9]> and <[*]>.
class Gbnf {
 public:
  /// \returns  the rule `root`
  template <class = void>
  static std::int32_t parse(std::string_view text, Expressions& out) {
    return Gbnf(text, out).grammar();
  }

 private:
  using Id = Expressions::Id;
  template <class = void>
  Gbnf(std::string_view text, Expressions& out) : in_("grammar", text, out.limits()), out_(out) {}

  template <class = void>
  std::int32_t grammar() {
    in_.take("\xEF\xBB\xBF");  // a byte order mark, as editors of Windows write it
    space(true);
    while (!in_.end()) rule();
    out_.source = in_.from(0);
    for (std::size_t r = 0; r < used_.size(); ++r)
      if (out_.rules[r].expression < 0) in_.fail_at(used_[r], "the rule " + out_.rules[r].name + " is not defined");
    auto const root = names_.find("root");
    if (root == names_.end()) in_.fail("there is no rule root");
    return root->second;
  }

  template <class = void>
  void rule() {
    auto const place = in_.place();
    auto const rule = name();
    if (out_.rules[index(rule)].expression >= 0)
      in_.fail_at(place, "the rule " + out_.rules[index(rule)].name + " is defined twice");
    space(false);
    if (!in_.take("::="))
      in_.fail(in_.peek() == '.' ? "::= is missing: a rule's name has letters, digits, - and _" : "::= is missing");
    space(true);
    auto const expression = alternatives(0, false);
    out_.rules[index(rule)].expression = expression, out_.rules[index(rule)].place = place;
    if (!in_.end() && in_.peek() != '\n' && in_.peek() != '\r')
      in_.fail(std::string("a rule cannot go on with ") + in_.peek());
    space(true);
  }

  template <class = void>
  Id alternatives(std::int32_t nesting, bool nested) {
    std::vector<Id> choices{sequence(nesting, nested)};
    while (in_.take("|")) {
      space(true);
      choices.push_back(sequence(nesting, nested));
    }
    return out_.choice(choices);
  }

  template <class = void>
  Id sequence(std::int32_t nesting, bool nested) {
    std::vector<Id> parts;
    for (;; space(nested)) {
      auto const c = in_.peek();
      if (c == '"') parts.push_back(literal());
      else if (c == '[') parts.push_back(characters());
      else if (c == '.') in_.skip(), parts.push_back(out_.characters({{0, last_character}}));
      else if (c == '(') parts.push_back(group(nesting));
      else if (is_word(c)) {
        auto const place = in_.place();
        auto const called = name();
        if (used_[index(called)] == nowhere) used_[index(called)] = place;
        parts.push_back(out_.call(called));
      } else if (c == '*' || c == '+' || c == '?' || c == '{') repetition(parts);
      else if (c == '<' || c == '!') parts.push_back(out_.token(read_token(in_)));
      else return out_.sequence(parts);
    }
  }

  template <class = void>
  Id group(std::int32_t nesting) {
    if (nesting >= in_.limits().nesting)
      in_.fail("groups are nested deeper than limits.nesting = " + std::to_string(in_.limits().nesting));
    in_.skip();
    space(true);
    auto const id = alternatives(nesting + 1, true);
    if (!in_.take(")")) in_.fail(") is missing");
    return id;
  }

  template <class = void>
  void repetition(std::vector<Id>& parts) {
    if (parts.empty()) in_.fail("there is nothing to repeat");
    std::int32_t minimum = 0, maximum = -1;
    auto const place = in_.place();
    if (in_.take("+")) minimum = 1;
    else if (in_.take("?")) maximum = 1;
    else if (in_.take("{")) {
      blank();
      minimum = maximum = in_.count();
      blank();
      if (in_.take(",")) {
        blank();
        maximum = in_.at_digit() ? in_.count() : -1;
        blank();
      }
      if (!in_.take("}")) in_.fail("} is missing");
      if (maximum >= 0 && maximum < minimum) in_.fail_at(place, "a repetition of less than its minimum");
    } else in_.skip();
    parts.back() = out_.repeat(parts.back(), minimum, maximum);
  }

  template <class = void>
  Id literal() {
    in_.skip();
    std::string bytes;
    while (!in_.take("\"")) append_utf8(bytes, character());
    return out_.text(bytes);
  }

  template <class = void>
  Id characters() {
    auto const place = in_.place();
    in_.skip();
    auto const negative = in_.take("^");
    std::vector<CharacterRange> ranges;
    while (!in_.take("]")) {
      auto const from = in_.place();
      CharacterRange range{character(), 0};
      range.last = range.first;
      if (in_.peek() == '-' && in_.peek(1) != ']') in_.skip(), range.last = character();
      if (range.last < range.first) in_.fail_at(from, "a range whose last character comes before its first");
      ranges.push_back(range);
    }
    if (ranges.empty()) in_.fail_at(place, "an empty class");
    normalise(ranges);
    return out_.characters(negative ? negated(ranges) : ranges);
  }

  template <class = void>
  char32_t character() {
    auto const place = in_.place();
    if (!in_.take("\\")) return in_.character();
    auto const c = in_.end() ? '\0' : in_.peek();
    in_.skip();
    switch (c) {
      case 'n': return U'\n';
      case 'r': return U'\r';
      case 't': return U'\t';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-': return static_cast<unsigned char>(c);
      case 'x': return in_.hexadecimal(2);
      case 'u':
      case 'U': break;
      default: in_.fail_at(place, "an unknown escape");
    }
    auto const value = in_.hexadecimal(c == 'u' ? 4 : 8);
    if (value > last_character || is_surrogate(value)) in_.fail_at(place, "is no Unicode character");
    return value;
  }

  template <class = void>
  std::int32_t name() {
    auto const place = in_.place();
    while (is_word(in_.peek())) in_.skip();
    if (in_.place() == place) in_.fail("a rule's name is missing");
    auto const [it, fresh] = names_.try_emplace(std::string(in_.from(place)), 0);
    if (fresh) it->second = out_.add_rule(it->first), used_.push_back(nowhere);
    return it->second;
  }

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  template <class = void>
  void blank() {
    while (in_.peek() == ' ' || in_.peek() == '\t') in_.skip();
  }
  /// Skips blanks and comments, and line ends too where a rule may continue after them.
  template <class = void>
  void space(bool lines) {
    for (;; in_.skip()) {
      if (in_.peek() == '#')
        while (!in_.end() && in_.peek() != '\n' && in_.peek() != '\r') in_.skip();
      auto const c = in_.peek();
      if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r'))) return;
    }
  }

  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  SourceReader in_;
  Expressions& out_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::vector<std::size_t> used_;  // [rule]: first use
};

}  // namespace sluice::inline v0::detail
