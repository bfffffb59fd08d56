// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grammars for structured decoding.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/gbnf.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/json_schema.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A compiled set of texts (byte sequences), described by rules. It does not know about tokens: Structure combines the
/// two.
///
/// Immutable and shared: a copy costs a reference count.
class Grammar {
 public:
  /// Accepts any text.
  Grammar() = default;

  /// Reads llama.cpp's notation (GBNF); the output must match the rule `root`. See detail::Gbnf for the syntax.
  /// \throws std::invalid_argument  with line and column for invalid GBNF; naming the rule if one is left-recursive, or
  ///     if no text matches root; naming the limit for a grammar that exceeds it
  template <class = void>
  static Grammar from_gbnf(std::string_view text, GrammarLimits const& limits = {}) {
    detail::Expressions expressions(limits);
    auto const root = detail::Gbnf::parse(text, expressions);
    Grammar made(expressions, root);
    return made;
  }

  /// Reads a regular expression in RE2's syntax, which the whole output must match. See detail::Regex for the
  /// syntax.
  /// \throws std::invalid_argument  with line and column for invalid or unsupported syntax, such as look-around and
  ///     back-references
  template <class = void>
  static Grammar from_regex(std::string_view pattern, GrammarLimits const& limits = {}) {
    detail::Expressions expressions(limits);
    auto const root = expressions.add_rule("pattern");
    auto const all = detail::Regex::parse("pattern", pattern, expressions);
    expressions.rules[0].expression = all;
    Grammar made(expressions, root);
    return made;
  }

  /// Reads a JSON schema (drafts 4 to 2020-12): the JSON texts of all values that it accepts, with object members in the
  /// order of the schema, followed by any others. See docs/structure.md for the keywords. What is no keyword is ignored
  /// and listed by ignored(); what constrains values and cannot be obeyed is rejected by name.
  /// \throws std::invalid_argument  with line and column
  template <class = void>
  static Grammar from_json_schema(std::string_view schema, JsonSchemaOptions const& options = {}) {
    detail::Expressions expressions(options.limits);
    std::vector<std::string> ignored;
    auto const root = detail::JsonSchema::compile(schema, options, expressions, &ignored);
    Grammar made(expressions, root);
    if (!ignored.empty()) made.ignored_ = std::make_shared<std::vector<std::string> const>(std::move(ignored));
    return made;
  }

  /// The same texts for a tokeniser that adds a space before every text and removes it again: one leading space of what
  /// the tokens spell is not part of the text that must match.
  template <class = void>
  Grammar behind_space() const {
    auto copy = *this;
    if (trivial()) return copy;
    auto automaton = *automaton_;
    automaton.behind_space = true;
    automaton.classify();
    copy.automaton_ = std::make_shared<detail::Automaton const>(std::move(automaton));
    return copy;
  }

  /// What a JSON schema holds that was ignored: names that are no keywords, and formats that are none.
  template <class = void>
  std::vector<std::string> ignored() const {
    return ignored_ == nullptr ? std::vector<std::string>{} : *ignored_;
  }

  /// Whether it allows any text.
  bool trivial() const { return automaton_ == nullptr; }

  /// Whether a whole text matches. For single texts: nothing is cached between calls.
  /// \throws std::length_error  for a grammar so ambiguous that the parses of the text do not fit into memory
  template <class = void>
  bool matches(std::string_view text) const {
    if (trivial()) return true;
    detail::Pushdown machine(*automaton_, std::size_t{1} << 28);
    auto const state = machine.next(machine.initial(), text);
    return machine.complete(state);
  }

  /// Used by Structure.
  std::shared_ptr<detail::Automaton const> const& automaton() const { return automaton_; }

 private:
  template <class = void>
  Grammar(detail::Expressions const& expressions, std::int32_t root)
      : automaton_(std::make_shared<detail::Automaton const>(detail::compile(expressions, root))) {}

  std::shared_ptr<detail::Automaton const> automaton_;
  std::shared_ptr<std::vector<std::string> const> ignored_;  // null: nothing
};

}  // namespace sluice::inline v0
