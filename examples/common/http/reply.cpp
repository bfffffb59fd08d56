// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <http/reply.hpp>
#include <utility>

namespace serve {

namespace {

using Kind = sluice::ToolCallEvent::Kind;

/// How much of a text is certainly not the beginning of a mark.
std::size_t before_mark(std::string_view text, std::string_view mark) {
  for (auto size = std::min(text.size(), mark.size() - 1); size > 0; --size)
    if (mark.starts_with(text.substr(text.size() - size))) return text.size() - size;
  return text.size();
}

}  // namespace

// As vLLM's deepseek_r1 and qwen3: `<think>` may stand there or not, `</think>` ends what was thought.
void Reply::think(bool last, Events& events) {
  constexpr std::string_view begin = "<think>", end = "</think>";
  if (part_ == Part::begin) {
    auto const text = std::string_view(waiting_);
    if (!last && text.size() < begin.size() && begin.starts_with(text)) return;
    if (text.starts_with(begin)) waiting_.erase(0, begin.size());
    part_ = Part::reasoning;
  }
  if (part_ == Part::reasoning) {
    auto const found = waiting_.find(end);
    auto const thought = found != std::string::npos ? found : last ? waiting_.size() : before_mark(waiting_, end);
    if (thought > 0) events.push_back({.kind = Kind::reasoning, .text = waiting_.substr(0, thought)});
    waiting_.erase(0, found == std::string::npos ? thought : found + end.size());
    if (found == std::string::npos) return;
    part_ = Part::space;
  }
  waiting_.erase(0, std::min(waiting_.find_first_not_of('\n'), waiting_.size()));
  if (!waiting_.empty()) part_ = Part::answer;
}

Reply::Events Reply::read(std::string_view text, bool last) {
  Events events;
  std::string thought_before;
  if (part_ != Part::answer) {
    waiting_ += text;
    think(last, events);
    if (part_ != Part::answer) return events;
    thought_before = std::move(waiting_), text = thought_before;
  }
  if (!parser_) {
    if (!text.empty()) events.push_back({.kind = Kind::content, .text = std::string(text)});
    return events;
  }
  auto const add = [&](Events const& more) { events.insert(events.end(), more.begin(), more.end()); };
  add(parser_->append(text));
  if (last) add(parser_->finish());
  return events;
}

std::vector<Json> Reply::deltas(Events const& events) {
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
