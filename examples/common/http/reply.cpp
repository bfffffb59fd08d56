// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <http/reply.hpp>

namespace serve {

std::vector<Json> Reply::deltas(std::vector<sluice::ToolCallEvent> const& events) {
  using Kind = sluice::ToolCallEvent::Kind;
  std::vector<Json> all;
  auto const add = [&](char const* field, Json value) {
    all.push_back({{"role", "assistant"}, {field, std::move(value)}});
  };
  for (auto const& event : events) {
    switch (event.kind) {
      case Kind::content: content_ += event.text, add("content", event.text); break;
      case Kind::reasoning: reasoning_ += event.text, add("reasoning_content", event.text); break;
      case Kind::begun: {
        auto& call = calls_.emplace_back(Json{{"id", choice_ + "-" + std::to_string(calls_.size())},
                                              {"type", "function"},
                                              {"function", {{"name", event.text}, {"arguments", ""}}}});
        auto delta = call;
        delta["index"] = event.call, add("tool_calls", Json::array({std::move(delta)}));
        break;
      }
      case Kind::arguments: {
        calls_[static_cast<std::size_t>(event.call)]["function"]["arguments"].get_ref<std::string&>() += event.text;
        add("tool_calls", Json::array({Json{{"index", event.call}, {"function", {{"arguments", event.text}}}}}));
        break;
      }
      case Kind::ended: break;
    }
  }
  return all;
}

Json Reply::message() const {
  Json message{{"role", "assistant"}, {"content", content_.empty() && calls() ? Json() : Json(content_)}};
  if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
  if (calls()) message["tool_calls"] = calls_;
  return message;
}

}  // namespace serve
