// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structural tags: free text in which triggers open structure.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/structural_tag_rules.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/grammar.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::inline v0 {

/// How JSON is written within tags and tool calls: as models write it, with white space where writers put it.
inline JsonSchemaOptions tag_json() {
  return {.white_space = 21, .tidy = true, .order = JsonOrder::schema, .plain_numbers = true};
}

/// Reads a structural tag in the JSON of xgrammar's `structural_tag`, as vLLM's and SGLang's requests have it in
/// `response_format`, or the older one with `structures` and `triggers`. See docs/structure.md for the formats.
///
/// Strings that look like the name of a token (<|call|>, [CALL]) may be written as that token where the vocabulary has it as a
/// control token.
/// \param schemas  for the JSON schemas in it; `any_order` and `max_whitespace_cnt` of a format take precedence
/// \throws std::invalid_argument  with line and column, naming the field
template <class = void>
Grammar structural_tag(std::string_view json, JsonSchemaOptions const& schemas = tag_json()) {
  detail::Expressions expressions(schemas.limits);
  auto const root = detail::StructuralTag::compile(json, schemas, expressions);
  return Grammar(std::make_shared<detail::Automaton const>(detail::compile(expressions, root)));
}

/// What a model thinks before it answers.
struct Reasoning {
  std::string begin{};           ///< the mark before it; empty: the prompt has it already
  std::string end = "</think>";  ///< the mark behind it
  std::int32_t budget = -1;      ///< at most so many tokens, then `end` is the only one; -1: any number
  /// The marks are tokens of the vocabulary. Otherwise they are texts, which may be spelt by any tokens, and the budget counts
  /// characters.
  bool tokens = true;
  bool lines = true;  ///< up to two new lines may stand behind `end`, as models write them
};

/// Reasoning, and behind it an answer that obeys a grammar. The reasoning is free: any tokens but the end (and what ends
/// outputs).
/// \throws std::invalid_argument  for an empty end, a negative budget other than -1, or an answer made by behind_space()
template <class = void>
Grammar after_reasoning(Grammar const& answer, Reasoning const& reasoning = {}) {
  require(!reasoning.end.empty(), "reasoning.end", "", "must not be empty");
  require(reasoning.budget >= -1, "reasoning.budget", reasoning.budget, "must be -1 or more");
  require(answer.trivial() || !answer.automaton()->behind_space, "answer", "behind_space()",
          "is not supported behind reasoning");
  GrammarLimits const limits;
  auto const schemas = tag_json();
  detail::Expressions x(limits);
  detail::TagRules rules(x, schemas);
  auto const mark = [&](std::string const& name) {
    return reasoning.tokens ? x.token({.written = name, .names = {name}}) : x.text(name);
  };
  auto const thought =
      reasoning.tokens
          ? x.repeat(x.token({.written = "!" + reasoning.end, .names = {reasoning.end}, .complement = true}), 0,
                     reasoning.budget)
          : rules.free({reasoning.end}, reasoning.budget);
  auto const begin = reasoning.begin.empty() ? x.empty() : mark(reasoning.begin);
  auto const lines = x.repeat(x.byte('\n', '\n'), 0, reasoning.lines ? 2 : 0);
  auto const root = x.add_rule("reasoning");
  auto const whole = x.sequence({begin, thought, mark(reasoning.end), lines});
  x.rules[0].expression = answer.trivial() ? x.sequence({whole, rules.free({})}) : whole;
  auto all = detail::compile(x, root);
  if (!answer.trivial()) all.append(*answer.automaton());
  return Grammar(std::make_shared<detail::Automaton const>(std::move(all)));
}

}  // namespace sluice::inline v0
