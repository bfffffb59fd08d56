// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads calls of tools from a text that grows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/tool_call_rules.hpp>
#include <sluice/grammar/detail/tool_layouts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Reads as far as it is certain, and keeps the rest. More lenient than the grammar: white space within JSON, and members
/// in any order.
class ToolCallReader {
 public:
  enum class Found : std::uint8_t { content, reasoning, begun, arguments, ended };

  /// \param layout  null: there are no calls
  ToolCallReader(ToolLayout const* layout, std::vector<Tool> tools)
      : layout_(layout),
        tools_(std::move(tools)),
        state_(layout != nullptr && layout->body == ToolLayout::harmony ? State::header : State::text) {}

  /// Before the rest stands what was thought, up to a mark; `begin` may stand before it.
  void think_first(std::string begin, std::string end, bool lines) {
    think_begin_ = std::move(begin), think_end_ = std::move(end), lines_ = lines;
    answer_ = state_, state_ = State::opening;
  }

  /// Calls found(kind, number of the call, text) for what is new.
  template <class Take>
  void append(std::string_view text, Take const& found) {
    rest_ += text;
    while (step(found)) continue;
    rest_.erase(0, at_), at_ = 0;
  }
  template <class Take>
  void finish(Take const& found) {
    if (state_ == State::text || state_ == State::message)
      say(state_ == State::text ? Found::content : kind_, left(), found);
    else if (state_ == State::opening || state_ == State::thought) say(Found::reasoning, left(), found);
    rest_.clear();
    state_ = State::over;
  }

 private:
  enum class State : std::uint8_t {
    opening,  // of what was thought
    thought,
    gap,  // between that and the answer
    text,
    start,
    name,
    member,
    arguments,
    behind,
    elements,
    header,
    message,
    over
  };
  static constexpr std::size_t npos = std::string_view::npos;

  std::string_view left() const { return std::string_view(rest_).substr(at_); }
  static bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip_blanks() {
    while (at_ < rest_.size() && blank(rest_[at_])) ++at_;
  }
  bool take(std::string_view text) {
    auto const found = left().starts_with(text);
    if (found) at_ += text.size();
    return found;
  }
  /// Whether what is there may become this text.
  bool may_become(std::string_view text) const { return left().size() < text.size() && text.starts_with(left()); }
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
  }
  /// How much at the end of a text may be the beginning of one of these.
  static std::size_t held(std::string_view text, std::initializer_list<std::string_view> all) {
    std::size_t most = 0;
    for (auto const one : all)
      for (auto n = (std::min)(one.size() - (one.empty() ? 0 : 1), text.size()); n > most; --n)
        if (text.ends_with(one.substr(0, n))) most = n;
    return most;
  }

  template <class Take>
  void say(Found kind, std::string_view text, Take const& found) {
    if (kind == Found::content && quiet_) {  // between calls
      auto const semicolons = layout_->trigger[0] == '{';
      while (!text.empty() && (blank(text.front()) || (semicolons && text.front() == ';'))) text.remove_prefix(1);
      quiet_ = text.empty();
    }
    if (!text.empty() || kind == Found::ended) found(kind, call_, text);
  }
  template <class Take>
  void begin_call(std::string_view name, Take const& found) {
    ++call_, name_ = name, members_ = 0;
    say(Found::begun, name, found);
  }
  template <class Take>
  void end_call(Take const& found) {
    say(Found::ended, {}, found);
    quiet_ = true;
  }

  template <class Take>
  bool step(Take const& found) {
    switch (state_) {
      case State::opening: return opening();
      case State::thought: return thought(found);
      case State::gap: return gap();
      case State::text: return text(found);
      case State::start: return start(found);
      case State::name: return name(found);
      case State::member: return member(found);
      case State::arguments: return arguments(found);
      case State::behind: return behind(found);
      case State::elements: return elements(found);
      case State::header: return header(found);
      case State::message: return message(found);
      case State::over: break;
    }
    at_ = rest_.size();
    return false;
  }

  bool opening() {
    if (may_become(think_begin_)) return false;
    (void)take(think_begin_);
    return state_ = State::thought, true;
  }
  template <class Take>
  bool thought(Take const& found) {
    auto const all = left();
    auto const end = all.find(think_end_);
    auto const size = end == npos ? all.size() - held(all, {think_end_}) : end;
    say(Found::reasoning, all.substr(0, size), found);
    at_ += end == npos ? size : size + think_end_.size();
    if (end != npos) state_ = State::gap;
    return end != npos;
  }
  bool gap() {
    while (lines_ && at_ < rest_.size() && rest_[at_] == '\n') ++at_;
    if (left().empty()) return false;
    return state_ = answer_, true;
  }

  /// Where calls begin; npos: nowhere. \param size  of what begins them
  std::size_t trigger(std::string_view text, std::size_t& size, std::size_t& keep) const {
    size = layout_->trigger.size();
    if (layout_->trigger[0] != '{') {
      keep = held(text, {layout_->trigger});
      return text.find(layout_->trigger);
    }
    // An object that begins with a name, however it is spaced.
    keep = 0, size = 0;
    for (auto i = text.find('{'); i != npos; i = text.find('{', i + 1)) {
      auto rest = text.substr(i + 1);
      while (!rest.empty() && blank(rest.front())) rest.remove_prefix(1);
      if (rest.starts_with("\"name\"")) return i;
      if (std::string_view("\"name\"").starts_with(rest)) {
        keep = text.size() - i;
        break;
      }
    }
    return npos;
  }
  template <class Take>
  bool text(Take const& found) {
    std::size_t size = 0, keep = 0;
    auto const all = left();
    auto const place = layout_ == nullptr ? npos : trigger(all, size, keep);
    say(Found::content, all.substr(0, place == npos ? all.size() - keep : place), found);
    at_ += place == npos ? all.size() - keep : place + size;
    if (place == npos) return false;
    state_ = layout_->begin == layout_->trigger && layout_->body == ToolLayout::json ? State::name : State::start;
    named_ = false, waiting_.clear();
    return true;
  }
  /// Where a call, or what ends all of them, comes next.
  template <class Take>
  bool start(Take const& found) {
    skip_blanks();
    if (left().empty()) return false;
    if (layout_->body == ToolLayout::object) {
      if (!layout_->close.empty() && (take("[") || take(","))) return true;
      if (!layout_->close.empty() && take("]")) return state_ = State::text, true;
      if (take("{")) return named_ = false, waiting_.clear(), state_ = State::member, true;
      return state_ = State::text, true;
    }
    if (layout_->body == ToolLayout::elements) {
      if (layout_->xml == 1) return state_ = State::name, true;
      if (may_become("<function=")) return false;
      state_ = take("<function=") ? State::name : State::text;
      return true;
    }
    if (take(layout_->begin)) return state_ = State::name, true;
    if (!layout_->close.empty() && take(layout_->close)) return state_ = State::text, true;
    if (may_become(layout_->begin) || may_become(layout_->close)) return false;
    (void)found;
    state_ = State::text;
    return true;
  }
  template <class Take>
  bool name(Take const& found) {
    auto const all = left();
    if (layout_->body == ToolLayout::elements) {
      auto const end = layout_->xml == 1 ? all.find_first_of("\n<") : all.find('>');
      if (end == npos) return false;
      begin_call(trimmed(all.substr(0, end)), found);
      at_ += end + (layout_->xml == 1 ? 0 : 1), state_ = State::elements;
      return true;
    }
    auto end = all.find(layout_->behind_name);
    if (end == npos) return false;
    auto own = trimmed(all.substr(0, end));
    if (layout_->numbered) own = own.substr(0, own.rfind(':'));
    begin_call(own, found);
    at_ += end + layout_->behind_name.size();
    begin_value();
    return true;
  }

  void begin_value() { state_ = State::arguments, depth_ = 0, in_string_ = escaped_ = any_ = false; }
  /// Where a JSON value that begins at the front ends; npos: not yet.
  static std::size_t value_end(std::string_view text) {
    std::int32_t depth = 0;
    auto in_string = false, escaped = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      auto const c = text[i];
      if (in_string) {
        in_string = escaped || c != '"', escaped = !escaped && c == '\\';
        if (!in_string && depth == 0) return i + 1;
      } else if (c == '"') in_string = true;
      else if (c == '{' || c == '[') ++depth;
      else if (depth > 0 ? c == '}' || c == ']' : c == ',' || c == '}' || c == ']' || blank(c)) {
        if (depth == 0) return i;
        if (--depth == 0) return i + 1;
      }
    }
    return npos;
  }
  template <class Take>
  bool member(Take const& found) {
    auto const begun = at_;
    auto const wait = [&] { return at_ = begun, false; };
    skip_blanks();
    if (take(",")) skip_blanks();
    if (take("}")) {
      end_call(found);
      state_ = State::behind;
      return true;
    }
    auto const key_end = value_end(left());
    if (key_end == npos) return wait();
    auto const key = trimmed(left().substr(0, key_end));
    at_ += (std::max)(key_end, std::size_t{1});
    skip_blanks();
    if (left().empty()) return wait();
    if (!take(":")) return state_ = State::text, true;
    skip_blanks();
    if (left().empty()) return wait();
    auto const arguments = key == "\"arguments\"" || key == "\"parameters\"";
    if (arguments && named_) return begin_value(), true;
    auto const end = value_end(left());
    if (end == npos) return wait();
    auto const value = left().substr(0, end);
    at_ += end;
    if (key == "\"name\"" && value.starts_with('"')) {
      begin_call(decoded_string(value), found);
      named_ = true;
      say(Found::arguments, waiting_, found);
    } else if (arguments) {
      waiting_ = value;
    }
    return true;
  }
  static std::string decoded_string(std::string_view json) {
    try {
      return JsonReader::parse("name", json, {}).text;
    } catch (std::invalid_argument const&) {
      return std::string(json.substr(1, json.size() - 2));
    }
  }

  /// A JSON value, as it comes.
  template <class Take>
  bool arguments(Take const& found) {
    if (!any_) skip_blanks();
    auto const all = left();
    std::size_t i = 0;
    auto over = false;
    for (; i < all.size() && !over; ++i) {
      auto const c = all[i];
      any_ = true;
      if (in_string_) {
        in_string_ = escaped_ || c != '"', escaped_ = !escaped_ && c == '\\';
        over = !in_string_ && depth_ == 0;
      } else if (c == '"') in_string_ = true;
      else if (c == '{' || c == '[') ++depth_;
      else if (c == '}' || c == ']') {
        if (depth_ == 0) break;
        over = --depth_ == 0;
      } else if (depth_ == 0 && (c == ',' || c == '<' || blank(c))) break;
    }
    over = over || i < all.size();
    say(Found::arguments, all.substr(0, i), found);
    at_ += i;
    if (!over) return false;
    if (layout_->body == ToolLayout::object) return state_ = State::member, true;
    end_call(found);
    state_ = State::behind;
    return true;
  }
  /// Behind a call.
  template <class Take>
  bool behind(Take const& found) {
    (void)found;
    skip_blanks();
    auto end = trimmed(layout_->end);
    if (layout_->body == ToolLayout::object) end = trimmed(end.substr((std::min)(end.size(), std::size_t{1})));
    if (layout_->body == ToolLayout::harmony) end = "<|call|>";
    if (!end.empty() && (left().empty() || may_become(end))) return false;
    (void)take(end);
    if (layout_->body == ToolLayout::harmony) return state_ = State::header, true;
    state_ = layout_->open.empty() ? State::text : State::start;
    return true;
  }

  template <class Take>
  bool elements(Take const& found) {
    auto const& xml = tool_elements(*layout_);
    skip_blanks();
    auto const begun = at_;
    auto const all = left();
    auto const last = trimmed(layout_->end);
    auto const first_end = last.substr(0, last.find('>') + 1);
    if (all.starts_with(first_end)) {
      at_ += first_end.size();
      if (auto const second = trimmed(last.substr(first_end.size())); !second.empty()) {
        skip_blanks();
        if (left().empty() || may_become(second)) return at_ = begun, false;
        (void)take(second);
      }
      say(Found::arguments, members_ == 0 ? "{}" : "}", found);
      end_call(found);
      state_ = State::text;
      return true;
    }
    if (!all.starts_with(xml.before_name)) {
      if (all.empty() || may_become(first_end) || may_become(xml.before_name)) return false;
      ++at_;
      return true;
    }
    auto const end = all.find(xml.behind_value);
    auto const name_end = all.find(xml.behind_name);
    if (end == npos || name_end == npos || name_end > end) return false;
    auto const name = all.substr(xml.before_name.size(), name_end - xml.before_name.size());
    auto value = all.substr(name_end + xml.behind_name.size(), end - name_end - xml.behind_name.size());
    if (!xml.before_value.empty()) {
      auto const begin = value.find(xml.before_value);
      value = begin == npos ? value : value.substr(begin + xml.before_value.size());
    }
    say(Found::arguments, (members_++ == 0 ? "{" : ", ") + json_quoted(name) + ": " + as_json(name, value), found);
    at_ += end + xml.behind_value.size();
    return true;
  }
  /// An element's value. Whether it is a string the schema says, or else what it looks like.
  std::string as_json(std::string_view name, std::string_view value) const {
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    JsonValue const* type = nullptr;
    for (auto const& tool : tools_)
      if (tool.name == name_)
        if (auto const* const all = tool.schema.find("properties"); all != nullptr)
          if (auto const* const own = all->find(name); own != nullptr) type = own->find("type");
    if (type == nullptr || type->text != "string") try {
        (void)JsonReader::parse("value", value, {});
        return std::string(trimmed(value));
      } catch (std::invalid_argument const&) {  // a text
      }
    return json_quoted(value);
  }

  // Harmony's messages.
  template <class Take>
  bool header(Take const& found) {
    auto const all = left();
    auto const end = all.find("<|message|>");
    if (end == npos) return false;
    auto const head = all.substr(0, end);
    at_ += end + std::string_view("<|message|>").size();
    constexpr std::string_view to = "to=functions.";
    if (auto const place = head.find(to); place != npos) {
      auto const name = head.substr(place + to.size());
      begin_call(name.substr(0, name.find_first_of(" <")), found);
      begin_value();
      return true;
    }
    kind_ = head.find("<|channel|>analysis") != npos ? Found::reasoning : Found::content;
    state_ = State::message;
    return true;
  }
  template <class Take>
  bool message(Take const& found) {
    auto const all = left();
    auto const end = (std::min)({all.find("<|end|>"), all.find("<|return|>"), all.find("<|call|>")});
    auto const keep = held(all, {"<|end|>", "<|return|>", "<|call|>"});
    say(kind_, all.substr(0, end == npos ? all.size() - keep : end), found);
    at_ += end == npos ? all.size() - keep : all.find('>', end) + 1;
    if (end != npos) state_ = State::header;
    return end != npos;
  }

  ToolLayout const* layout_;
  std::vector<Tool> tools_;
  State state_, answer_ = State::text;
  std::string think_begin_, think_end_;
  bool lines_ = false;
  std::string rest_, name_, waiting_;  // waiting_: arguments that came before the name
  std::size_t at_ = 0;
  std::int32_t call_ = -1, depth_ = 0, members_ = 0;
  bool in_string_ = false, escaped_ = false, any_ = false, named_ = false, quiet_ = false;
  Found kind_ = Found::content;
};

}  // namespace sluice::inline v0::detail
