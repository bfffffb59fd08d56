// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structural tags, free text in which triggers open structure; calls of tools, as models write them: a grammar for them, and back from
/// text to calls.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/structural_tag_rules.hpp>
#include <sluice/grammar/detail/tool_call_reader.hpp>
#include <sluice/grammar/detail/tool_call_rules.hpp>
#include <sluice/grammar/detail/tool_layouts.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/grammar.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Reads a structural tag in the JSON of xgrammar's `structural_tag`, as vLLM's and SGLang's requests have it in
/// `response_format`, or the older one with `structures` and `triggers`. See docs/structure.md for the formats.
///
/// Strings that look like the name of a token (<|call|>, [CALL]) may be written as that token where the vocabulary has it as a
/// control token.
/// \param schemas  for the JSON schemas in it; `any_order` and `max_whitespace_cnt` of a format take precedence
/// \throws std::invalid_argument  with line and column, naming the field
SLUICE_LAZY Grammar structural_tag(std::string_view json, JsonSchemaOptions const& schemas = tag_json()) {
  detail::Expressions expressions(schemas.limits);
  auto const root = detail::StructuralTag::compile(json, schemas, expressions);
  return Grammar(std::make_shared<detail::Automaton const>(detail::compile(expressions, root)));
}
SLUICE_FUNCTION_IN_LIBRARY(Grammar structural_tag<void>(std::string_view, JsonSchemaOptions const&))

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
SLUICE_LAZY Grammar after_reasoning(Grammar const& answer, Reasoning const& reasoning = {}) {
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
SLUICE_FUNCTION_IN_LIBRARY(Grammar after_reasoning<void>(Grammar const&, Reasoning const&))

/// How a family of models writes calls, as its published chat template does.
enum class ToolFormat : std::uint8_t {
  llama3,        ///< Llama 3.1 and 3.2, JSON
  hermes,        ///< Qwen 2.5 and 3, Hermes 2 Pro and later
  qwen_coder,    ///< Qwen3-Coder: elements
  deepseek_v3,   ///< DeepSeek-V3 and R1
  deepseek_v31,  ///< DeepSeek-V3.1
  mistral,       ///< a list of calls: Mistral 7B v0.3, Nemo
  mistral_v11,   ///< with [ARGS]: Mistral Small 3.2, Magistral
  kimi,          ///< Kimi K2
  glm,           ///< GLM 4.5 and later
  harmony        ///< gpt-oss
};

/// The format by the name that vLLM's `--tool-call-parser` has for it: llama3_json, hermes, qwen3_coder, deepseek_v3,
/// deepseek_v31, mistral, kimi_k2, glm45, openai; and mistral_v11.
/// \throws std::invalid_argument  for another name
SLUICE_LAZY ToolFormat tool_format(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < detail::tool_layouts; ++i) {
    auto const own = detail::tool_layout(i).name;
    if (own == name) return static_cast<ToolFormat>(i);
    known += known.empty() ? "" : ", ";
    known += own;
  }
  require(false, "tool format", std::string(name), "must be one of " + known);
  return {};
}

/// A request's `tool_choice`.
enum class ToolChoice : std::uint8_t { automatic, required, none };

/// Options of tool_calls().
struct ToolCallOptions {
  ToolChoice choice = ToolChoice::automatic;
  std::string name{};    ///< not empty: one call of this tool, and nothing else
  bool parallel = true;  ///< several calls may come
  JsonSchemaOptions schemas = tag_json();
};

/// The outputs of a model that may, must or must not call tools: with `automatic`, free text, calls, or text and then calls;
/// with `required`, calls alone. Arguments obey the tools' schemas.
/// \param tools  JSON, as in OpenAI's requests: [{"type": "function", "function": {"name": ..., "parameters": ...}}, ...]
/// \throws std::invalid_argument  with line and column, naming the field; for a name that no tool has; if calls are required and
///     there are no tools
SLUICE_LAZY Grammar tool_calls(ToolFormat format, std::string_view tools, ToolCallOptions const& options = {}) {
  auto all = detail::read_tools(tools, options.schemas.limits);
  auto const named = !options.name.empty();
  if (named) std::erase_if(all, [&](detail::Tool const& tool) { return tool.name != options.name; });
  require(!named || !all.empty(), "options.name", options.name, "is no tool's name");
  auto const must = named || options.choice == ToolChoice::required;
  require(!must || !all.empty(), "tools", "none", "a call is required");
  detail::Expressions expressions(options.schemas.limits);
  auto const& layout = detail::tool_layout(static_cast<std::size_t>(format));
  detail::ToolCallRules rules(layout, all, options.parallel && !named, options.schemas, expressions);
  auto const root = rules.whole(!must, must || options.choice != ToolChoice::none);
  return Grammar(std::make_shared<detail::Automaton const>(detail::compile(expressions, root)));
}
SLUICE_FUNCTION_IN_LIBRARY(Grammar tool_calls<void>(ToolFormat, std::string_view, ToolCallOptions const&))

/// What a text of tool calls says, piece by piece.
struct ToolCallEvent {
  /// What is new.
  enum class Kind : std::uint8_t {
    content,    ///< more of the text for the user
    reasoning,  ///< more of what the model thinks
    begun,      ///< a call of the tool `text`
    arguments,  ///< more of its arguments, JSON
    ended       ///< the call is whole
  };
  Kind kind = Kind::content;
  std::int32_t call = -1;  ///< its number, from 0; -1 before the first
  std::string text{};
};

/// Reads calls from a model's output while it is written. What cannot be told yet (it may become a mark) waits for more. It is more
/// lenient than the grammar: JSON may be spaced in any way. A text that breaks the format is content, as far as one can tell.
///
/// The marks of calls are often control tokens: append TokenTrie::spelling() of each token, not its bytes.
class ToolCallParser {
  static auto taker(std::vector<ToolCallEvent>& out) {
    return [&out](detail::ToolCallReader::Found found, std::int32_t call, std::string_view text) {
      auto const kind = static_cast<ToolCallEvent::Kind>(found);
      auto const more = kind != ToolCallEvent::Kind::begun && kind != ToolCallEvent::Kind::ended;
      if (more && !out.empty() && out.back().kind == kind && out.back().call == call) out.back().text += text;
      else out.push_back({kind, call, std::string(text)});
    };
  }

 public:
  /// \param format     of calls; nothing: there are none
  /// \param tools      as for tool_calls(); with `qwen_coder` and `glm`, schemas tell strings from other values. Empty: unknown
  /// \param reasoning  before the rest stands what the model thinks, up to `end`, or all of a text without. `begin` may be missing
  ///     there; where it is empty, it is `end` without its slash. `harmony` tells what is thought without it
  /// \throws std::invalid_argument  as tool_calls(); for an empty `reasoning.end`
  SLUICE_LAZY explicit ToolCallParser(std::optional<ToolFormat> format, std::string_view tools = {},
                                      std::optional<Reasoning> const& reasoning = {})
      : reader_(format ? &detail::tool_layout(static_cast<std::size_t>(*format)) : nullptr,
                tools.empty() ? std::vector<detail::Tool>{} : detail::read_tools(tools, GrammarLimits{})) {
    if (!reasoning) return;
    require(!reasoning->end.empty(), "reasoning.end", "", "must not be empty");
    auto begin = reasoning->begin.empty() ? reasoning->end : reasoning->begin;
    if (reasoning->begin.empty()) std::erase(begin, '/');
    reader_.think_first(begin == reasoning->end ? std::string() : std::move(begin), reasoning->end, reasoning->lines);
  }

  /// What is new.
  SLUICE_LAZY std::vector<ToolCallEvent> append(std::string_view text) {
    std::vector<ToolCallEvent> out;
    reader_.append(text, taker(out));
    return out;
  }
  /// What is left at the end of the output.
  SLUICE_LAZY std::vector<ToolCallEvent> finish() {
    std::vector<ToolCallEvent> out;
    reader_.finish(taker(out));
    return out;
  }

 private:
  detail::ToolCallReader reader_;
};

}  // namespace sluice::inline v0
