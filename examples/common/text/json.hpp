// SPDX-License-Identifier: Apache-2.0
/// \file
/// Untrusted JSON, and error messages about it.
#pragma once

#include <text/lines.hpp>
#include <text/words.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace text {

/// For a message: long text is shortened, between characters.
inline std::string shortened(std::string text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return text;
  auto end = most - 3;
  while (Utf8::continues(text[end])) --end;
  return text.substr(0, end) + "...";
}
inline std::string shown(nlohmann::json const& value) { return shortened(value.dump()); }

/// Parses JSON; refuses repeated keys, numbers too large and deep nesting.
/// \param deepest  maximum number of levels
/// \throws InputError  saying what is wrong with it
template <class Json = nlohmann::json>
Json parse_json(std::string_view source, int deepest) {
  // Parsed values are destroyed and written recursively, so the depth is limited.
  int depth = 0;
  for (bool quoted = false, escaped = false; auto const c : source) {
    if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > deepest) throw InputError("nested too deeply");
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = c == '\\' && !escaped;
  }
  std::set<std::string> keys;
  auto const watch = [&](int level, typename Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && level == 1 && !keys.insert(value.template get<std::string>()).second)
      throw InputError("key " + shown(value) + " comes twice");
    return true;
  };
  try {
    return Json::parse(source, watch);
  } catch (typename Json::parse_error const& error) {
    throw InputError("not JSON, from byte " + std::to_string(error.byte) + " on");
  } catch (typename Json::out_of_range const&) {
    throw InputError("a number is too large");
  }
}

}  // namespace text
