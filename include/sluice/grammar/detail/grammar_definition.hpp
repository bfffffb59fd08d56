// SPDX-License-Identifier: Apache-2.0
/// \file
/// What Grammar does: in each program, or once in the compiled library.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/gbnf.hpp>
#include <sluice/grammar/detail/grammar_bytes.hpp>
#include <sluice/grammar/detail/json_schema_rules.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/regex.hpp>
#include <sluice/grammar/detail/token_classes.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/grammar.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

template <class Void>
Grammar Grammar::compiled(detail::Expressions const& expressions, std::int32_t root) {
  Grammar made;
  made.automaton_ = std::make_shared<detail::Automaton const>(detail::compile(expressions, root));
  return made;
}

template <class Void>
Grammar Grammar::from_gbnf(std::string_view text, GrammarLimits const& limits, Named const& grammars) {
  detail::Expressions expressions(limits);
  for (auto const& [name, grammar] : grammars) expressions.add_rule(name, grammar.automaton());
  auto const root = detail::Gbnf::parse(text, expressions);
  return compiled<Void>(expressions, root);
}

template <class Void>
Grammar Grammar::from_regex(std::string_view pattern, GrammarLimits const& limits) {
  detail::Expressions expressions(limits);
  auto const root = expressions.add_rule("pattern");
  auto const all = detail::Regex::parse("pattern", pattern, expressions);
  expressions.rules[0].expression = all;
  return compiled<Void>(expressions, root);
}

template <class Void>
Grammar Grammar::from_json_schema(std::string_view schema, JsonSchemaOptions const& options) {
  detail::Expressions expressions(options.limits);
  std::vector<std::string> ignored;
  auto const root = detail::JsonSchema::compile(schema, options, expressions, &ignored);
  auto made = compiled<Void>(expressions, root);
  if (!ignored.empty()) made.ignored_ = std::make_shared<std::vector<std::string> const>(std::move(ignored));
  return made;
}

template <class Void>
Grammar Grammar::behind_space() const {
  auto copy = *this;
  if (trivial()) return copy;
  if (!automaton_->token_texts.empty())
    throw std::invalid_argument("sluice: grammar = " + automaton_->token_texts[0].written +
                                ": the space before a text is part of a token, so tokens cannot be counted behind it");
  auto automaton = *automaton_;
  automaton.behind_space = true;
  automaton.classify();
  copy.automaton_ = std::make_shared<detail::Automaton const>(std::move(automaton));
  return copy;
}

template <class Void>
std::vector<std::byte> Grammar::to_bytes() const {
  return detail::GrammarWriter::write(automaton_.get(), ignored());
}

template <class Void>
Grammar Grammar::from_bytes(std::span<std::byte const> bytes) {
  auto [automaton, ignored] = detail::GrammarReader::read(bytes);
  Grammar made(std::move(automaton));
  if (!ignored.empty()) made.ignored_ = std::make_shared<std::vector<std::string> const>(std::move(ignored));
  return made;
}

template <class Void>
bool Grammar::matches(std::string_view text) const {
  if (trivial()) return true;
  auto automaton = automaton_;
  if (automaton->unbound())
    automaton = std::make_shared<detail::Automaton const>(detail::TokenBinder::spelt(*automaton));
  detail::Pushdown machine(*automaton, std::size_t{1} << 28);
  auto const state = machine.next(machine.initial(), text);
  return machine.complete(state);
}

}  // namespace sluice::inline v0
