// SPDX-License-Identifier: Apache-2.0
/// \file
/// How models write calls of tools.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_schema_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::inline v0::detail {

/// A call is `begin` NAME `behind_name` ARGUMENTS `end`; calls are `open` CALL `separator` CALL ... `close`.
struct ToolLayout {
  enum Body : std::uint8_t {
    json,      // the arguments are an object
    object,    // a call is an object with a name and arguments
    elements,  // the arguments are elements
    harmony
  };
  std::string_view name;     // of vLLM's parser
  std::string_view trigger;  // what begins calls within free text; `open` and `begin` begin with it
  std::string_view open, begin, behind_name, end, separator, close;
  Body body = json;
  bool numbered = false;  // a colon and a number stand behind the name
  std::int32_t xml = -1;  // elements: which
};

/// In the order of ToolFormat.
inline ToolLayout const& tool_layout(std::size_t format) {
  static constexpr ToolLayout all[] = {{.name = "llama3_json",
                                        .trigger = R"({"name": ")",
                                        .open = "",
                                        .begin = R"({"name": ")",
                                        .behind_name = R"(", "parameters": )",
                                        .end = "}",
                                        .separator = "; ",
                                        .close = "",
                                        .body = ToolLayout::object},
                                       {.name = "hermes",
                                        .trigger = "<tool_call>",
                                        .open = "",
                                        .begin = "<tool_call>\n{\"name\": \"",
                                        .behind_name = R"(", "arguments": )",
                                        .end = "}\n</tool_call>",
                                        .separator = "\n",
                                        .close = "",
                                        .body = ToolLayout::object},
                                       {.name = "qwen3_coder",
                                        .trigger = "<tool_call>",
                                        .open = "",
                                        .begin = "<tool_call>\n<function=",
                                        .behind_name = ">",
                                        .end = "</function>\n</tool_call>",
                                        .separator = "\n",
                                        .close = "",
                                        .body = ToolLayout::elements,
                                        .xml = 0},
                                       {.name = "deepseek_v3",
                                        .trigger = "<｜tool▁calls▁begin｜>",
                                        .open = "<｜tool▁calls▁begin｜>",
                                        .begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                                        .behind_name = "\n```json\n",
                                        .end = "\n```<｜tool▁call▁end｜>",
                                        .separator = "\n",
                                        .close = "<｜tool▁calls▁end｜>"},
                                       {.name = "deepseek_v31",
                                        .trigger = "<｜tool▁calls▁begin｜>",
                                        .open = "<｜tool▁calls▁begin｜>",
                                        .begin = "<｜tool▁call▁begin｜>",
                                        .behind_name = "<｜tool▁sep｜>",
                                        .end = "<｜tool▁call▁end｜>",
                                        .separator = "",
                                        .close = "<｜tool▁calls▁end｜>"},
                                       {.name = "mistral",
                                        .trigger = "[TOOL_CALLS]",
                                        .open = "[TOOL_CALLS] [",
                                        .begin = R"({"name": ")",
                                        .behind_name = R"(", "arguments": )",
                                        .end = "}",
                                        .separator = ", ",
                                        .close = "]",
                                        .body = ToolLayout::object},
                                       {.name = "mistral_v11",
                                        .trigger = "[TOOL_CALLS]",
                                        .open = "",
                                        .begin = "[TOOL_CALLS]",
                                        .behind_name = "[ARGS]",
                                        .end = "",
                                        .separator = "",
                                        .close = ""},
                                       {.name = "kimi_k2",
                                        .trigger = "<|tool_calls_section_begin|>",
                                        .open = "<|tool_calls_section_begin|>",
                                        .begin = "<|tool_call_begin|>functions.",
                                        .behind_name = "<|tool_call_argument_begin|>",
                                        .end = "<|tool_call_end|>",
                                        .separator = "",
                                        .close = "<|tool_calls_section_end|>",
                                        .numbered = true},
                                       {.name = "glm45",
                                        .trigger = "<tool_call>",
                                        .open = "",
                                        .begin = "<tool_call>",
                                        .behind_name = "",
                                        .end = "</tool_call>",
                                        .separator = "\n",
                                        .close = "",
                                        .body = ToolLayout::elements,
                                        .xml = 1},
                                       {.name = "openai",
                                        .trigger = "<|channel|>",
                                        .open = "",
                                        .begin = "<|channel|>commentary to=functions.",
                                        .behind_name = " <|constrain|>json<|message|>",
                                        .end = "",
                                        .separator = "",
                                        .close = "",
                                        .body = ToolLayout::harmony}};
  return all[format];
}
inline constexpr std::size_t tool_layouts = 10;

inline XmlArguments const& tool_elements(ToolLayout const& layout) {
  static XmlArguments const all[] = {{"<parameter=", ">", "", "</parameter>"},
                                     {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}};
  return all[static_cast<std::size_t>(layout.xml)];
}

}  // namespace sluice::inline v0::detail
