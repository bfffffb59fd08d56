// SPDX-License-Identifier: Apache-2.0
#include <text/json.hpp>

#include <algorithm>
#include <http/chat.hpp>
#include <string>
#include <utility>
#include <vector>

namespace serve {

namespace {

/// A member of an object, which is a string.
std::string text_of(Json const& object, char const* member, std::string const& name) {
  auto const value = object.value(member, Json());
  if (!value.is_string()) Fields::refuse(name + "." + member, value, "a string");
  return value.get<std::string>();
}

bool is_object(std::string const& json) {
  try {
    return text::parse_json(json, 64).is_object();
  } catch (text::InputError const&) {
    return false;
  }
}

std::vector<ToolCall> read_calls(Json const& list, std::string const& name) {
  if (!list.is_array()) Fields::refuse(name, list, "a list of calls");
  std::vector<ToolCall> calls;
  for (auto const& one : list) {
    auto const own = name + "[" + std::to_string(calls.size()) + "]";
    if (!one.is_object() || one.value("type", Json("function")) != "function")
      Fields::refuse(own, one, "a call of type function");
    auto const function = one.value("function", Json());
    if (!function.is_object()) Fields::refuse(own + ".function", function, "an object with name and arguments");
    auto& call = calls.emplace_back(ToolCall{text_of(one, "id", own), text_of(function, "name", own + ".function"),
                                             text_of(function, "arguments", own + ".function")});
    if (!is_object(call.arguments))
      Fields::refuse(own + ".function.arguments", function["arguments"], "JSON of an object");
  }
  return calls;
}

std::string read_content(Json const& content, std::string const& name) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) Fields::refuse(name, content, "a string, or a list of texts");
  std::string all;
  for (auto const& part : content) {
    auto const text = part.is_object() && part.value("type", Json()) == "text" ? part.value("text", Json()) : Json();
    if (!text.is_string()) Fields::refuse(name, part, R"({"type": "text", "text": "..."})");
    all += text.get<std::string>();
  }
  return all;
}

Message read_message(Json const& one, std::string const& name) {
  if (!one.is_object()) Fields::refuse(name, one, "an object with role and content");
  Message message{text_of(one, "role", name), {}};
  auto const assistant = message.role == "assistant", tool = message.role == "tool";
  for (auto const& [field, value] : one.items()) {
    auto const known = field == "role" || field == "content" || field == "name" || (tool && field == "tool_call_id") ||
                       (assistant && (field == "tool_calls" || field == "reasoning_content"));
    if (!known && !value.is_null()) throw BadField(name + "." + field, name + "." + field + " is not supported");
  }
  if (tool) message.call = text_of(one, "tool_call_id", name);
  for (auto const& [field, to] : {std::pair{"name", &message.name}, {"reasoning_content", &message.reasoning}})
    if (!one.value(field, Json()).is_null()) *to = text_of(one, field, name);
  if (auto const calls = one.value("tool_calls", Json()); !calls.is_null())
    message.calls = read_calls(calls, name + ".tool_calls");
  auto const content = one.value("content", Json());
  if (!content.is_null() || message.calls.empty()) message.content = read_content(content, name + ".content");
  return message;
}

/// Of a choice that is an object.
std::string read_name(Json const& choice) {
  auto const function =
      choice.is_object() && choice.value("type", Json()) == "function" ? choice.value("function", Json()) : Json();
  auto const name = function.is_object() ? function.value("name", Json()) : Json();
  if (!name.is_string() || name == "")
    Fields::refuse("tool_choice", choice,
                   R"("auto", "required", "none" or {"type": "function", "function": {"name": "..."}})");
  return name.get<std::string>();
}

bool is_called(Json const& tool, std::string const& name) {
  auto const function = tool.is_object() ? tool.value("function", tool) : Json();
  return function.is_object() && function.value("name", Json()) == name;
}

std::vector<Message> read_messages(Fields& fields) {
  auto const* const list = fields.find("messages");
  if (list == nullptr) throw BadField("messages", "messages is missing: a list of objects with role and content");
  if (!list->is_array() || list->empty()) Fields::refuse("messages", *list, "a list of objects with role and content");
  std::vector<Message> messages;
  messages.reserve(list->size());
  for (auto const& one : *list)
    messages.push_back(read_message(one, "messages[" + std::to_string(messages.size()) + "]"));
  return messages;
}

/// Of the chat template.
/// \throws BadField  for those that other fields set
Chat::Variables read_variables(Fields& fields) {
  std::string const field = "chat_template_kwargs";
  auto const* const found = fields.find(field);
  if (found == nullptr) return Chat::Variables::object();
  if (!found->is_object()) Fields::refuse(field, *found, "an object");
  auto variables = Chat::Variables::parse(*fields.source(field));  // the order of members matters
  for (auto const* const own :
       {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "chat_template", "tokenize"})
    if (variables.contains(own)) throw BadField(field, field + "." + own + " is not what a request may set");
  if (auto const thinking = found->value("enable_thinking", Json(true)); !thinking.is_boolean())
    Fields::refuse(field + ".enable_thinking", thinking, "true or false");
  return variables;
}

Tools read_tools(Fields& fields) {
  Tools tools;
  for (auto const* const older : {"functions", "function_call"})
    if (auto const* const found = fields.find(older); found != nullptr && !found->empty())
      throw BadField(older, std::string(older) + " is not supported: give tools and tool_choice");
  auto const* const list = fields.find("tools");
  if (list != nullptr && !list->is_array()) Fields::refuse("tools", *list, "a list of tools");
  if (list != nullptr && !list->empty()) tools.json = *fields.source("tools");
  if (auto const parallel = fields.flag("parallel_tool_calls")) tools.parallel = *parallel;
  auto const* const choice = fields.find("tool_choice");
  for (auto const* const without : {"tool_choice", "parallel_tool_calls"})
    if (tools.json.empty() && fields.has(without))
      throw BadField(without, std::string(without) + " has no effect without tools");
  if (choice == nullptr || *choice == "auto") return tools;
  tools.required = *choice == "required", tools.never = *choice == "none";
  if (tools.required || tools.never) return tools;
  tools.name = read_name(*choice);
  if (std::ranges::none_of(*list, [&](Json const& tool) { return is_called(tool, tools.name); }))
    throw BadField("tool_choice", "tool_choice: no tool has the name " + text::shown(Json(tools.name)));
  return tools;
}

}  // namespace

Chat read_chat(Fields& fields) {
  Chat chat{.messages = read_messages(fields), .tools = read_tools(fields), .variables = read_variables(fields)};
  chat.effort = fields.text("reasoning_effort");
  return chat;
}

}  // namespace serve
