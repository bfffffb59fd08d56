// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls of tools as rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/detail/structural_tag_rules.hpp>
#include <sluice/grammar/detail/tool_layouts.hpp>
#include <sluice/grammar/expressions.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The functions of a request's `tools`, in OpenAI's form.
struct Tool {
  std::string name;
  std::string parameters;  // a JSON schema
  JsonValue schema{};      // the same
};

/// \throws std::invalid_argument  with line and column
SLUICE_LAZY std::vector<Tool> read_tools(std::string_view json, GrammarLimits const& limits) {
  using Kind = JsonValue::Kind;
  SourceReader const in("tools", json, limits);
  auto const root = JsonReader::parse("tools", json, limits);
  if (!root.is(Kind::array)) in.fail_at(root.place, "must be an array");
  std::vector<Tool> out;
  for (auto const& one : root.items) {
    if (!one.is(Kind::object)) in.fail_at(one.place, "a tool must be an object");
    auto const* const type = one.find("type");
    if (type != nullptr && type->text != "function")
      in.fail_at(type->place, "type = " + type->text + ": must be function");
    auto const* const inner = one.find("function");
    auto const& function = inner == nullptr ? one : *inner;
    auto const* const name = function.find("name");
    if (name == nullptr || !name->is(Kind::string) || name->text.empty())
      in.fail_at(function.place, "name: must be a string that is not empty");
    for (auto const& other : out)
      if (other.name == name->text) in.fail_at(name->place, "name = " + name->text + ": comes twice");
    auto const* const parameters = function.find("parameters");
    Tool tool{name->text, R"({"type": "object"})"};
    if (parameters != nullptr && !parameters->is(Kind::null)) {
      if (!parameters->is(Kind::object)) in.fail_at(parameters->place, "parameters: must be an object");
      tool.parameters = json_source(json, *parameters), tool.schema = *parameters;
    }
    out.push_back(std::move(tool));
  }
  return out;
}

class ToolCallRules {
 public:
  using Id = Expressions::Id;
  ToolCallRules(ToolLayout const& layout, std::vector<Tool> const& tools, bool parallel,
                JsonSchemaOptions const& options, Expressions& out)
      : layout_(layout), tools_(tools), parallel_(parallel), out_(out), rules_(out, options) {}

  /// \param text  free text may come before calls, or in their place
  /// \param calls  calls may come
  /// \returns  a rule
  SLUICE_LAZY std::int32_t whole(bool text, bool calls) {
    auto const root = out_.add_rule("tool calls");
    calls = calls && !tools_.empty();
    if (layout_.body == ToolLayout::harmony) {
      out_.rules[index(root)].expression = harmony(text, calls);
      return root;
    }
    auto const trigger = std::string(layout_.trigger);
    if (!calls) out_.rules[index(root)].expression = rules_.free({trigger});
    else if (!text) out_.rules[index(root)].expression = out_.sequence({rules_.marked(trigger), behind_trigger()});
    else out_.rules[index(root)].expression = rules_.triggered({{trigger, behind_trigger()}}, {}, true);
    return root;
  }

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY Id behind_trigger() {
    auto const one = rule("a tool call", call());
    std::vector<Id> parts;
    if (layout_.open.ends_with(" [")) {
      parts = {out_.optional(out_.text(" ")), out_.text("["), rules_.marked(layout_.begin)};
    } else {
      auto const all = std::string(layout_.open) + std::string(layout_.begin);
      parts.push_back(rules_.marked(std::string_view(all).substr(layout_.trigger.size())));
    }
    parts.push_back(one);
    if (parallel_) {
      auto const next = out_.sequence({rules_.marked(layout_.separator), rules_.marked(layout_.begin), one});
      parts.push_back(out_.repeat(next, 0, -1));
    }
    parts.push_back(rules_.marked(layout_.close));
    return out_.sequence(parts);
  }
  SLUICE_LAZY Id call() {
    std::vector<Id> choices;
    auto const* const xml = layout_.body == ToolLayout::elements ? &tool_elements(layout_) : nullptr;
    for (auto const& tool : tools_) {
      auto name = layout_.body == ToolLayout::object ? json_quoted(tool.name) : tool.name;
      if (layout_.body == ToolLayout::object) name = name.substr(1, name.size() - 2);
      std::vector<Id> parts{out_.text(name)};
      if (layout_.numbered) parts.push_back(out_.sequence({out_.text(":"), out_.repeat(out_.byte('0', '9'), 1, 4)}));
      parts.push_back(rules_.marked(layout_.behind_name));
      parts.push_back(rules_.schema(tool.parameters, xml));
      parts.push_back(rules_.marked(layout_.end));
      choices.push_back(out_.sequence(parts));
    }
    return out_.choice(choices);
  }
  /// Messages of other channels, then one that is final, or a call, which ends the output.
  SLUICE_LAZY Id harmony(bool text, bool calls) {
    auto const free = rules_.free({"<|end|>", "<|start|>", "<|channel|>", "<|message|>", "<|call|>", "<|return|>"});
    auto const channel = [&](std::string const& name) {
      return out_.sequence({rules_.marked("<|channel|>" + name + "<|message|>"), free});
    };
    auto const before = out_.sequence(
        {out_.choice({channel("analysis"), channel("commentary")}), rules_.marked("<|end|><|start|>assistant")});
    std::vector<Id> last;
    if (text || !calls) last.push_back(channel("final"));
    if (calls) last.push_back(out_.sequence({rules_.marked(layout_.begin), call()}));
    return out_.sequence({out_.repeat(rule("a message before", before), 0, -1), out_.choice(last)});
  }
  SLUICE_LAZY Id rule(std::string name, Id body) {
    auto const rule = out_.add_rule(std::move(name));
    out_.rules[index(rule)].expression = body;
    return out_.call(rule);
  }

  ToolLayout const& layout_;
  std::vector<Tool> const& tools_;
  bool parallel_;
  Expressions& out_;
  TagRules rules_;
};

}  // namespace sluice::inline v0::detail
