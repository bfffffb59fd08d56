// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads grammars in GBNF.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/gbnf_calls.hpp>
#include <sluice/grammar/detail/gbnf_elements.hpp>
#include <sluice/grammar/detail/left_recursion.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// llama.cpp's grammar notation, as its grammars/README.md describes it and its parser reads it: `name ::= ...` rules,
/// "literals", [classes], [^negated], `.`, (groups), |, repetition by * + ? {m} {m,} {m,n}, # comments, escapes
/// \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH, and tokens: <name> (with its brackets, the name is the token's text), <[number]>, !<...> for any
/// other token; as in llguidance, sets <[1-5,9]>, <[^1-5,9]> and <[*]>; and as in xgrammar's EBNF, rules over several
/// lines, names with dots, [^] for any character, more escapes, (=...) behind a rule, and calls. Where both differ, what
/// llama.cpp reads counts: a.b is three elements, unless a rule has that name.
class Gbnf {
 public:
  /// Rules that are there already have names, too.
  /// \returns  the rule `root`
  SLUICE_LAZY static std::int32_t parse(std::string_view text, Expressions& out) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark, as editors of Windows write it
    return Gbnf(text, out).grammar();
  }

 private:
  using Id = Expressions::Id;
  SLUICE_LAZY Gbnf(std::string_view text, Expressions& out)
      : in_("grammar", text, out.limits()), text_(text), out_(out) {
    for (std::size_t r = 0; r < out.rules.size(); ++r) names_.emplace(out.rules[r].name, static_cast<std::int32_t>(r));
    used_.assign(out.rules.size(), nowhere);
  }

  SLUICE_LAZY std::int32_t grammar() {
    find_definitions();
    space();
    while (!in_.end()) rule();
    out_.source = in_.from(0);
    for (std::size_t r = 0; r < used_.size(); ++r)
      if (used_[r] != nowhere && !out_.rules[r].defined())
        in_.fail_at(used_[r], "the rule " + out_.rules[r].name + " is not defined");
    auto const root = names_.find("root");
    if (root == names_.end()) in_.fail("there is no rule root");
    LeftRecursion::remove(out_);
    return root->second;
  }

  /// The names with which lines define rules.
  SLUICE_LAZY void find_definitions() {
    constexpr std::size_t longest = 256;  // of names with dots, and of options
    auto const blank = [&](std::size_t i) { return text_[i] == ' ' || text_[i] == '\t'; };
    constexpr std::string_view defines = "::=";
    for (auto at = text_.find(defines); at != std::string_view::npos; at = text_.find(defines, at + defines.size())) {
      auto end = at;
      while (end > 0 && blank(end - 1)) --end;
      if (end > 0 && text_[end - 1] == ']')
        for (auto i = end; i > 0 && end - i < longest && text_[i - 1] != '\n'; --i)
          if (text_[i - 1] == '[') {
            end = i - 1;
            break;
          }
      auto begin = end;
      while (begin > 0 && GbnfElements::is_name(text_[begin - 1])) --begin;
      auto line = begin;
      while (line > 0 && blank(line - 1)) --line;
      if (begin == end || (line > 0 && text_[line - 1] != '\n' && text_[line - 1] != '\r')) continue;
      auto const name = text_.substr(begin, end - begin);
      auto const dotted = name.find('.') != std::string_view::npos;
      if (dotted && name.size() > longest) continue;
      defined_.insert(name);
      if (dotted) dotted_ = (std::max)(dotted_, name.size());
    }
  }

  SLUICE_LAZY void rule() {
    auto const place = in_.place();
    auto const text = word();
    if (text.empty()) in_.fail("a rule's name is missing: expected a rule, name ::= ...");
    std::string capture;
    if (in_.peek() == '[') capture = options(text);
    space();
    if (!in_.take("::="))
      in_.fail(in_.peek() == '.' ? "::= is missing: a rule's name has letters, digits, - and _" : "::= is missing");
    auto const rule = named(text);
    auto const& known = out_.rules[index(rule)];
    if (known.other != nullptr) in_.fail_at(place, "the rule " + known.name + " is a grammar that is given");
    if (known.defined()) in_.fail_at(place, "the rule " + known.name + " is defined twice");
    auto const expression = alternatives(0);
    auto& made = out_.rules[index(rule)];
    made.expression = expression, made.place = place;
    made.captured = !capture.empty(), made.capture = std::move(capture);
    if (in_.take("(=")) {  // what xgrammar may assume to follow: it restricts nothing
      static_cast<void>(alternatives(1));
      if (!in_.take(")")) in_.fail(") is missing");
      if (!space() && !in_.end()) in_.fail("expected the next rule behind (=...)");
    }
    if (!in_.end() && !at_definition()) {
      auto const end = in_.place();
      static_cast<void>(in_.character());
      in_.fail_at(end, "a rule cannot go on with " + std::string(in_.from(end)) +
                           ": expected an element, a repetition, | or the next rule, on a line of its own");
    }
  }

  /// Of the attributes that xgrammar has, [capture] and [capture="name"]; returns the name.
  SLUICE_LAZY std::string options(std::string_view rule) {
    in_.skip();
    space();
    auto const place = in_.place();
    if (auto const key = in_.take_while(GbnfElements::is_name); key != "capture")
      in_.fail_at(place, "[" + std::string(key) + "] is not supported: expected capture; lark_grammar() has others");
    std::string name(rule);
    space();
    if (in_.take("=")) {
      space();
      if (in_.peek() != '"') in_.fail("expected a name in quotation marks");
      name = GbnfElements::text(in_);
      if (name.empty()) in_.fail_at(place, "capture: a name is not empty");
      space();
    }
    if (!in_.take("]")) in_.fail("expected ]");
    return name;
  }

  SLUICE_LAZY Id alternatives(std::int32_t nesting) {
    std::vector<Id> choices;
    do choices.push_back(sequence(nesting));
    while (in_.take("|"));
    return out_.choice(choices);
  }

  /// Ends where the next rule begins, on a line of its own.
  SLUICE_LAZY Id sequence(std::int32_t nesting) {
    std::vector<Id> parts;
    for (;;) {
      if (space() && at_definition()) return out_.sequence(parts);
      auto const c = in_.peek();
      if (c == '"') parts.push_back(out_.text(GbnfElements::text(in_)));
      else if (c == '[') parts.push_back(characters());
      else if (c == '(' && in_.peek(1) != '=') parts.push_back(group(nesting));
      else if (c == '*' || c == '+' || c == '?' || c == '{') repetition(parts);
      else if (c == '<' || c == '!') parts.push_back(out_.token(read_token(in_)));
      else {
        auto const place = in_.place();
        auto const called = word();
        if (in_.peek() == '(' && GbnfCalls::known(called) && !defined_.contains(called)) {
          parts.push_back(GbnfCalls::read(called, in_, out_,
                                          [&](std::string_view name, std::size_t from) { return call(name, from); }));
        } else if (!called.empty()) {
          parts.push_back(call(called, place));
        } else {
          if (c != '.') return out_.sequence(parts);
          in_.skip();
          parts.push_back(out_.characters({{0, last_character}}));
        }
      }
    }
  }

  SLUICE_LAZY Id group(std::int32_t nesting) {
    if (nesting >= in_.limits().nesting)
      in_.fail("groups are nested deeper than limits.nesting = " + std::to_string(in_.limits().nesting));
    in_.skip();
    auto const id = alternatives(nesting + 1);
    if (!in_.take(")")) in_.fail(") is missing");
    return id;
  }

  SLUICE_LAZY void repetition(std::vector<Id>& parts) {
    if (parts.empty()) in_.fail("there is nothing to repeat");
    std::int32_t minimum = 0, maximum = -1;
    auto const place = in_.place();
    if (in_.take("+")) minimum = 1;
    else if (in_.take("?")) maximum = 1;
    else if (in_.take("{")) {
      space();
      minimum = maximum = in_.count();
      space();
      if (in_.take(",")) {
        space();
        maximum = in_.at_digit() ? in_.count() : -1;
        if (maximum < 0) in_.take("-1");  // as xgrammar prints it
        space();
      }
      if (!in_.take("}")) in_.fail("} is missing");
      if (maximum >= 0 && maximum < minimum) in_.fail_at(place, "a repetition of less than its minimum");
    } else in_.skip();
    parts.back() = out_.repeat(parts.back(), minimum, maximum);
  }

  SLUICE_LAZY Id characters() {
    auto const place = in_.place();
    in_.skip();
    auto const negative = in_.take("^");
    std::vector<CharacterRange> ranges;
    while (!in_.take("]")) {
      auto const from = in_.place();
      CharacterRange range{GbnfElements::character(in_, true), 0};
      range.last = range.first;
      if (in_.peek() == '-' && in_.peek(1) != ']') in_.skip(), range.last = GbnfElements::character(in_, true);
      if (range.last < range.first) in_.fail_at(from, "a range whose last character comes before its first");
      ranges.push_back(range);
    }
    if (ranges.empty() && !negative) in_.fail_at(place, "an empty class: expected a character");
    normalise(ranges);
    return out_.characters(negative ? negated(ranges) : ranges);
  }

  // Names.
  /// The name of a rule that comes next; a dot belongs to one that is defined like that.
  SLUICE_LAZY std::string_view word() {
    auto const place = in_.place();
    std::size_t size = 0;
    while (size <= dotted_ && GbnfElements::is_name(in_.peek(size))) ++size;
    if (size > 0 && size <= dotted_ && defined_.contains(text_.substr(place, size))) {
      in_.skip(size);
      return in_.from(place);
    }
    return in_.take_while([](char c) { return c != '.' && GbnfElements::is_name(c); });
  }
  /// Whether a rule begins here.
  SLUICE_LAZY bool at_definition() {
    auto const place = in_.place();
    auto found = !word().empty();
    if (found && in_.peek() == '[') {
      in_.take_while([](char c) { return c != ']' && c != '\n'; });
      found = in_.take("]");
    }
    in_.take_while([](char c) { return c == ' ' || c == '\t'; });
    found = found && in_.at("::=");
    in_.go_to(place);
    return found;
  }
  SLUICE_LAZY Id call(std::string_view name, std::size_t place) {
    auto const called = named(name);
    if (used_[index(called)] == nowhere) used_[index(called)] = place;
    return out_.call(called);
  }
  SLUICE_LAZY std::int32_t named(std::string_view name) {
    auto const [it, fresh] = names_.try_emplace(std::string(name), 0);
    if (fresh) it->second = out_.add_rule(it->first), used_.resize(out_.rules.size(), nowhere);
    return it->second;
  }

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  SLUICE_LAZY bool space() { return GbnfElements::space(in_); }

  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  SourceReader in_;
  std::string_view text_;
  Expressions& out_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::unordered_set<std::string_view> defined_;  // where lines begin
  std::size_t dotted_ = 0;                        // the longest of these with dots
  std::vector<std::size_t> used_;                 // [rule]: first use
};

}  // namespace sluice::inline v0::detail
