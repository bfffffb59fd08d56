// SPDX-License-Identifier: Apache-2.0
/// \file
/// What one translation must have and must not have: a line of --constraints.
#pragma once

#include <text/lines.hpp>
#include <text/words.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace translate {

struct Demands {
  std::vector<std::string> all, exact, ordered, none;
  std::vector<std::vector<std::string>> any;

  bool empty() const { return all.empty() && exact.empty() && ordered.empty() && none.empty() && any.empty(); }
};

namespace detail {

/// For a message: great length is cut, between characters.
inline std::string shortened(std::string text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return text;
  auto end = most - 3;
  while (text::Utf8::continues(text[end])) --end;
  return text.substr(0, end) + "...";
}
inline std::string shown(nlohmann::json const& value) { return shortened(value.dump()); }

inline std::vector<std::string> phrases(nlohmann::json const& list, std::string const& name) {
  if (!list.is_array()) throw text::InputError(name + " is not a list of phrases: " + shown(list));
  std::vector<std::string> phrases;
  for (auto const& phrase : list) {
    if (!phrase.is_string())
      throw text::InputError(name + "[" + std::to_string(phrases.size()) + "] is not a text: " + shown(phrase));
    phrases.push_back(phrase.get<std::string>());
  }
  return phrases;
}

/// One object without anything that would be lost or that goes deeper than demands do.
inline nlohmann::json parse(std::string_view line) {
  // What is parsed is destroyed and written level by level, each a call within a call.
  int depth = 0;
  for (bool quoted = false, escaped = false; auto const c : line) {
    if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 8) throw text::InputError("nested too deeply");
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = c == '\\' && !escaped;
  }
  std::set<std::string> keys;
  auto const watch = [&](int level, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key && level == 1 && !keys.insert(value.get<std::string>()).second)
      throw text::InputError("key " + shown(value) + " comes twice");
    return true;
  };
  try {
    return nlohmann::json::parse(line, watch);
  } catch (nlohmann::json::parse_error const& error) {
    throw text::InputError("not JSON, from byte " + std::to_string(error.byte) + " on");
  } catch (nlohmann::json::out_of_range const&) {
    throw text::InputError("a number is too large");
  }
}

}  // namespace detail

/// \param line  a JSON object, or blank
/// \throws text::InputError  saying what is wrong with it
inline Demands parse_demands(std::string_view line) {
  Demands demands;
  if (line.find_first_not_of(" \t") == line.npos) return demands;
  auto const object = detail::parse(line);
  if (!object.is_object()) throw text::InputError("not an object {...}: " + detail::shown(object));
  for (auto const& [key, value] : object.items()) {
    if (key == "all") demands.all = detail::phrases(value, key);
    else if (key == "exact") demands.exact = detail::phrases(value, key);
    else if (key == "ordered") demands.ordered = detail::phrases(value, key);
    else if (key == "none") demands.none = detail::phrases(value, key);
    else if (key == "any") {
      if (!value.is_array()) throw text::InputError("any is not a list of lists of phrases: " + detail::shown(value));
      for (auto const& item : value) {
        auto const name = "any[" + std::to_string(demands.any.size()) + "]";
        demands.any.push_back(detail::phrases(item, name));
        if (demands.any.back().empty()) throw text::InputError(name + " is a list without phrases");
      }
    } else {
      throw text::InputError("unknown key '" + detail::shortened(key) + "': not one of all, any, exact, none, ordered");
    }
  }
  return demands;
}

}  // namespace translate
