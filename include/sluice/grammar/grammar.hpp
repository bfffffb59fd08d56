// SPDX-License-Identifier: Apache-2.0
/// \file
/// What an output may say.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/behind_space.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/gbnf.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/json_schema.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace sluice::inline v0 {

/// A set of texts (sequences of bytes), described by rules, and compiled. It knows no tokens: Structure joins the two.
///
/// Immutable and shared: a copy costs a reference count.
template <class = void>
class LazyGrammar {
 public:
  /// Any text.
  LazyGrammar() = default;

  /// Of llama.cpp's notation; the output is the rule `root`. See detail::LazyGbnf for what is read.
  /// \throws std::invalid_argument  with line and column for what is no GBNF; naming the rule if one begins with itself
  ///   (left recursion), or if no text obeys root; naming the limit for a grammar that is larger
  static LazyGrammar from_gbnf(std::string_view text, GrammarLimits const& limits = {}) {
    detail::Expressions expressions(limits);
    auto const root = detail::Gbnf::parse(text, expressions);
    return LazyGrammar(expressions, root);
  }

  /// Of a regular expression in RE2's syntax, which the whole output matches. See detail::LazyRegex for what is read.
  /// \throws std::invalid_argument  with line and column for what is none or not supported: whatever looks around or back
  static LazyGrammar from_regex(std::string_view pattern, GrammarLimits const& limits = {}) {
    detail::Expressions expressions(limits);
    auto const root = expressions.add_rule("pattern");
    auto const all = detail::Regex::parse("pattern", pattern, expressions);
    expressions.rules[0].expression = all;
    return LazyGrammar(expressions, root);
  }

  /// Of a JSON schema (draft 2020-12, and draft 7 where it says the same): the texts of all values that it accepts, with
  /// object members in the order of `properties`, then any others, each as JSON writes it. See docs/structure.md for the
  /// keywords; any other, and combinations that are not supported, are refused by name, never passed over.
  /// \throws std::invalid_argument  with line and column
  static LazyGrammar from_json_schema(std::string_view schema, JsonSchemaOptions const& options = {}) {
    detail::Expressions expressions(options.limits);
    auto const root = detail::JsonSchema::compile(schema, options, expressions);
    return LazyGrammar(expressions, root);
  }

  /// The same texts for a tokeniser that puts a space before every text and takes it off again: one space at the beginning of
  /// what tokens spell is not a part of the text that is judged.
  LazyGrammar behind_space() const {
    auto copy = *this;
    if (!trivial()) copy.automaton_ = std::make_shared<detail::Automaton const>(detail::BehindSpace::of(*automaton_));
    return copy;
  }

  /// Whether it allows any text.
  bool trivial() const { return automaton_ == nullptr; }

  /// Whether a whole text obeys. For single texts: it learns nothing from one for the next.
  /// \throws std::length_error  for a grammar so ambiguous that there are more ways to read the text than memory
  bool matches(std::string_view text) const {
    if (trivial()) return true;
    detail::Pushdown machine(*automaton_, std::size_t{1} << 28);
    auto const state = machine.next(machine.initial(), text);
    return machine.complete(state);
  }

  /// For Structure.
  std::shared_ptr<detail::Automaton const> const& automaton() const { return automaton_; }

 private:
  LazyGrammar(detail::Expressions const& expressions, std::int32_t root)
      : automaton_(std::make_shared<detail::Automaton const>(detail::compile(expressions, root))) {}

  std::shared_ptr<detail::Automaton const> automaton_;
};
using Grammar = LazyGrammar<>;

}  // namespace sluice::inline v0
