// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cstddef>
#include <serve_llama/tool_prompt.hpp>
#include <string>
#include <utility>

namespace serve {

namespace {

using Format = sluice::ToolFormat;
using Ordered = nlohmann::ordered_json;
using Layout = sluice::detail::ToolLayout;

Layout const& layout_of(Format format) { return sluice::detail::tool_layout(static_cast<std::size_t>(format)); }

/// A call as the model writes it: what Reply reads.
std::string written(Layout const& layout, ToolCall const& call, std::size_t number) {
  std::string out(layout.begin);
  auto const quoted = Ordered(call.name).dump();
  out += layout.body == Layout::object ? quoted.substr(1, quoted.size() - 2) : call.name;
  if (layout.numbered) out += ':' + std::to_string(number);
  out += layout.behind_name;
  if (layout.body == Layout::elements) {
    auto const& xml = sluice::detail::tool_elements(layout);
    auto const arguments = Ordered::parse(call.arguments);
    out += '\n';
    for (auto const& [name, value] : arguments.items()) {
      out.append(xml.before_name).append(name).append(xml.behind_name) += '\n';
      out.append(xml.before_value) += value.is_string() ? value.get<std::string>() : value.dump();
      if (xml.before_value.empty()) out += '\n';
      out.append(xml.behind_value) += '\n';
    }
  } else {
    out += call.arguments;
  }
  return out.append(layout.end);
}

std::string written(Format format, std::vector<ToolCall> const& calls) {
  auto const& layout = layout_of(format);
  std::string out(layout.open);
  for (std::size_t i = 0; i < calls.size(); ++i)
    out.append(i == 0 ? "" : layout.separator) += written(layout, calls[i], i);
  return out.append(layout.close);
}

/// For the system message.
std::string told(Tools const& tools, Format format) {
  std::string text = "# Tools\n\nThese functions can be called. Each line is one of them:\n<tools>\n";
  for (auto const& one : Ordered::parse(tools.json)) text.append(one.dump()) += '\n';
  text += "</tools>\n\nA call has the name of a function and its arguments. Write it like this:\n";
  if (format == Format::harmony) text += "<|start|>assistant";
  return text + written(format, {{{}, "NAME", R"({"PARAMETER": "VALUE"})"}});
}

Ordered plain(std::string const& role, std::string const& content) { return {{"role", role}, {"content", content}}; }

/// What a call has returned, in the role that the published templates have for it, as far as llama.cpp's have it.
Ordered result(Message const& message, std::string const& name, Format format) {
  auto const& text = message.content;
  switch (format) {
    case Format::llama3: return plain("ipython", text);
    case Format::hermes:
    case Format::qwen_coder: return plain("user", "<tool_response>\n" + text + "\n</tool_response>");
    case Format::deepseek_v3:
      return plain("system", "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>" + text +
                                 "<｜tool▁output▁end｜><｜tool▁outputs▁end｜>");
    case Format::deepseek_v31: return plain("system", "<｜tool▁output▁begin｜>" + text + "<｜tool▁output▁end｜>");
    case Format::mistral:
      return plain("user", "[TOOL_RESULTS] " + Ordered{{"content", text}, {"call_id", message.call}}.dump() +
                               "[/TOOL_RESULTS]");
    case Format::mistral_v11:
      return plain("user", "[TOOL_RESULTS]" + message.call + "[TOOL_CONTENT]" + text + "[/TOOL_RESULTS]");
    case Format::kimi: return plain("tool", "## Return of " + message.call + '\n' + text);
    case Format::glm: return plain("observation", "<tool_response>\n" + text + "\n</tool_response>");
    case Format::harmony: return plain("functions." + name + " to=assistant<|channel|>commentary", text);
  }
  return plain("tool", text);
}

/// A message with calls.
void add_calls(Ordered& all, Message const& message, Format format) {
  if (format == Format::harmony) {  // each is a message
    if (!message.content.empty()) all.push_back(plain(message.role, message.content));
    for (auto const& call : message.calls)
      all.push_back(
          plain("assistant<|channel|>commentary to=functions." + call.name + " <|constrain|>json", call.arguments));
    return;
  }
  auto const line = message.content.empty() || !layout_of(format).trigger.starts_with("<tool_call>") ? "" : "\n";
  all.push_back(plain(message.role, message.content + line + written(format, message.calls)));
}

/// In OpenAI's form.
Ordered whole(Message const& message, std::string const& name) {
  auto one = plain(message.role, message.content);
  if (!name.empty()) one["name"] = name;
  if (!message.call.empty()) one["tool_call_id"] = message.call;
  if (!message.reasoning.empty()) one["reasoning_content"] = message.reasoning;
  for (auto const& call : message.calls)
    one["tool_calls"].push_back(Ordered{
        {"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  return one;
}

/// The name of the tool that was called under this id.
std::string called(std::vector<Message> const& messages, std::string const& id) {
  for (auto const& message : messages)
    for (auto const& call : message.calls)
      if (call.id == id) return call.name;
  throw BadField("messages", "messages: tool_call_id = " + id + " is no call's id");
}

}  // namespace

Format guess_tool_format(std::string_view pattern) {
  auto const has = [&](std::string_view mark) { return pattern.find(mark) != std::string_view::npos; };
  if (has("<|channel|>") && has("<|constrain|>")) return Format::harmony;
  if (has("<|tool_calls_section_begin|>")) return Format::kimi;
  if (has("<｜tool▁calls▁begin｜>")) return has("```json") ? Format::deepseek_v3 : Format::deepseek_v31;
  if (has("<arg_key>")) return Format::glm;
  if (has("<function=")) return Format::qwen_coder;
  if (has("[TOOL_CALLS]")) return has("[ARGS]") ? Format::mistral_v11 : Format::mistral;
  if (has("<|start_header_id|>") && has("ipython")) return Format::llama3;
  return Format::hermes;
}

Ordered prompt_messages(Chat const& chat, generate::ChatTemplate const& pattern, Format format) {
  auto const& messages = chat.messages;
  auto const tell = chat.tools.any() && !pattern.describes_tools(), whole_calls = pattern.writes_calls();
  auto all = Ordered::array();
  if (tell && messages.front().role != "system") all.push_back(plain("system", told(chat.tools, format)));
  auto responding = false;  // results of several calls are one message of the user
  for (auto const& one : messages) {
    auto const tool = one.role == "tool";
    auto const of = tool ? called(messages, one.call) : std::string();
    if (tool && !whole_calls) {
      auto said = result(one, of, format);
      if (responding && said["role"] == "user")
        all.back()["content"].get_ref<std::string&>() += '\n' + said["content"].get<std::string>();
      else all.push_back(std::move(said));
    } else if (!one.calls.empty() && !whole_calls) {
      add_calls(all, one, format);
    } else {
      all.push_back(whole(one, tool && one.name.empty() ? of : one.name));
      if (tell && &one == &messages.front() && one.role == "system")
        all.back()["content"].get_ref<std::string&>() += "\n\n" + told(chat.tools, format);
    }
    responding = tool;
  }
  return all;
}

}  // namespace serve
