// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grammars for structured decoding.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {
class Automaton;
}

/// A compiled set of texts (byte sequences), described by rules. It does not know about tokens: Structure combines the
/// two.
///
/// Immutable and shared: a copy costs a reference count.
class Grammar {
 public:
  /// Grammars by the names under which another one calls them.
  using Named = std::vector<std::pair<std::string, Grammar>>;

  /// Accepts any text.
  Grammar() = default;
  /// Used by readers of other notations.
  explicit Grammar(std::shared_ptr<detail::Automaton const> automaton) : automaton_(std::move(automaton)) {}

  /// Reads llama.cpp's notation (GBNF), and xgrammar's EBNF; the output must match the rule `root`. See detail::Gbnf for
  /// the syntax.
  /// \param grammars  rules that the text may call like its own, and does not define: schemas, expressions, others
  /// \throws std::invalid_argument  with line and column for invalid GBNF; naming the rule if no text matches root;
  ///     naming the limit for a grammar that exceeds it
  SLUICE_LAZY static Grammar from_gbnf(std::string_view text, GrammarLimits const& limits = {},
                                       Named const& grammars = {});

  /// Reads a regular expression in RE2's syntax, which the whole output must match. See detail::Regex for the
  /// syntax.
  /// \throws std::invalid_argument  with line and column for invalid or unsupported syntax, such as look-around and
  ///     back-references
  SLUICE_LAZY static Grammar from_regex(std::string_view pattern, GrammarLimits const& limits = {});

  /// Reads a JSON schema (drafts 4 to 2020-12): the JSON texts of all values that it accepts, with object members in the
  /// order of the schema, followed by any others. See docs/structure.md for the keywords. What is no keyword is ignored
  /// and listed by ignored(); what constrains values and cannot be obeyed is rejected by name.
  /// \throws std::invalid_argument  with line and column
  SLUICE_LAZY static Grammar from_json_schema(std::string_view schema, JsonSchemaOptions const& options = {});

  /// The same texts for a tokeniser that adds a space before every text and removes it again: one leading space of what
  /// the tokens spell is not part of the text that must match.
  /// \throws std::invalid_argument  for a grammar that counts tokens
  SLUICE_LAZY Grammar behind_space() const;

  /// The compiled grammar as bytes, for a file or another process: reading it takes a fraction of what compiling a large
  /// schema does. It holds a version of the format and checksums.
  SLUICE_LAZY std::vector<std::byte> to_bytes() const;
  /// What to_bytes() wrote. Bytes from anywhere do no harm: they are a grammar, or refused. O(bytes).
  /// \throws std::runtime_error  for what is cut off, damaged, of another version, or no grammar
  SLUICE_LAZY static Grammar from_bytes(std::span<std::byte const> bytes);

  /// What a JSON schema holds that was ignored: names that are no keywords, and formats that are none.
  SLUICE_LAZY std::vector<std::string> ignored() const {
    return ignored_ == nullptr ? std::vector<std::string>{} : *ignored_;
  }

  /// Whether it allows any text.
  bool trivial() const { return automaton_ == nullptr; }

  /// Whether a whole text matches. For single texts: nothing is cached between calls. A token that the grammar names stands for its name.
  /// \throws std::invalid_argument  for a grammar that names tokens by number, or all but some, or counts them
  /// \throws std::length_error  for a grammar so ambiguous that the parses of the text do not fit into memory
  SLUICE_LAZY bool matches(std::string_view text) const;

  /// Used by Structure and other readers.
  std::shared_ptr<detail::Automaton const> const& automaton() const { return automaton_; }

 private:
  SLUICE_LAZY static Grammar compiled(detail::Expressions const& expressions, std::int32_t root);

  std::shared_ptr<detail::Automaton const> automaton_;
  std::shared_ptr<std::vector<std::string> const> ignored_;  // null: nothing
};

SLUICE_FUNCTION_IN_LIBRARY(Grammar Grammar::from_gbnf<void>(std::string_view, GrammarLimits const&,
                                                            Grammar::Named const&))
SLUICE_FUNCTION_IN_LIBRARY(Grammar Grammar::from_regex<void>(std::string_view, GrammarLimits const&))
SLUICE_FUNCTION_IN_LIBRARY(Grammar Grammar::from_json_schema<void>(std::string_view, JsonSchemaOptions const&))
SLUICE_FUNCTION_IN_LIBRARY(Grammar Grammar::behind_space<void>() const)
SLUICE_FUNCTION_IN_LIBRARY(std::vector<std::byte> Grammar::to_bytes<void>() const)
SLUICE_FUNCTION_IN_LIBRARY(Grammar Grammar::from_bytes<void>(std::span<std::byte const>))
SLUICE_FUNCTION_IN_LIBRARY(bool Grammar::matches<void>(std::string_view) const)

}  // namespace sluice::inline v0

#ifndef SLUICE_COMPILED
#include <sluice/grammar/detail/grammar_definition.hpp>
#endif
