// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grammars in Lark's syntax, as llguidance has it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/lark.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/grammar.hpp>

#include <memory>
#include <string_view>

namespace sluice::inline v0 {

/// Reads a grammar in Lark's syntax, with what llguidance adds to it; the output must match the rule `start`. See
/// docs/structure.md for what is read.
/// \param schemas   for %json within it
/// \param grammars  others, which rules call as @name
/// \throws std::invalid_argument  with line and column, and what was expected; naming what is not supported
SLUICE_LAZY Grammar lark_grammar(std::string_view text, JsonSchemaOptions const& schemas = tag_json(),
                                 Grammar::Named const& grammars = {}) {
  detail::Expressions expressions(schemas.limits);
  for (auto const& [name, grammar] : grammars) expressions.add_rule(name, grammar.automaton());
  auto const root = detail::Lark::parse(text, schemas, expressions);
  return Grammar(std::make_shared<detail::Automaton const>(detail::compile(expressions, root)));
}
SLUICE_FUNCTION_IN_LIBRARY(Grammar lark_grammar<void>(std::string_view, JsonSchemaOptions const&,
                                                      Grammar::Named const&))

}  // namespace sluice::inline v0
