// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structural tags: free text in which triggers open structure.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/structural_tag_rules.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/grammar.hpp>

#include <memory>
#include <string_view>

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

}  // namespace sluice::inline v0
