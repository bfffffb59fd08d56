// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls of tools, as models write them: a grammar for them, and back from text to calls.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/tool_call_reader.hpp>
#include <sluice/grammar/detail/tool_call_rules.hpp>
#include <sluice/grammar/detail/tool_layouts.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structural_tag.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0 {

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
template <class = void>
ToolFormat tool_format(std::string_view name) {
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
template <class = void>
Grammar tool_calls(ToolFormat format, std::string_view tools, ToolCallOptions const& options = {}) {
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

/// What a text of tool calls says, piece by piece.
struct ToolCallEvent {
  /// What is new.
  enum class Kind : std::uint8_t {
    content,    ///< more of the text for the user
    reasoning,  ///< more of the model's reasoning (harmony)
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
  /// \param tools  as for tool_calls(); with `qwen_coder` and `glm`, schemas tell strings from other values. Empty: unknown
  template <class = void>
  explicit ToolCallParser(ToolFormat format, std::string_view tools = {})
      : reader_(detail::tool_layout(static_cast<std::size_t>(format)),
                tools.empty() ? std::vector<detail::Tool>{} : detail::read_tools(tools, GrammarLimits{})) {}

  /// What is new.
  template <class = void>
  std::vector<ToolCallEvent> append(std::string_view text) {
    std::vector<ToolCallEvent> out;
    reader_.append(text, taker(out));
    return out;
  }
  /// What is left at the end of the output.
  template <class = void>
  std::vector<ToolCallEvent> finish() {
    std::vector<ToolCallEvent> out;
    reader_.finish(taker(out));
    return out;
  }

 private:
  detail::ToolCallReader reader_;
};

}  // namespace sluice::inline v0
