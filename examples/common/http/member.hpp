// SPDX-License-Identifier: Apache-2.0
/// \file
/// A part of a JSON text as it was written, which parsed values do not preserve.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string_view>

namespace serve {

/// The value of an object's member, from its first byte to its last; empty if there is no such member.
/// \param object  JSON that has been parsed before: it is not checked again
inline std::string_view member_text(std::string_view object, std::string_view name) {
  constexpr std::string_view space = " \t\n\r";
  std::size_t at = object.find('{') + 1;
  auto const pass = [&](char const c) { at = object.find(c, at) + 1; };
  auto const pass_string = [&] {
    for (pass('"'); object[at] != '"'; ++at) at += object[at] == '\\' ? 1 : 0;
    ++at;
  };
  while (object[at = object.find_first_not_of(space, at)] != '}') {
    auto const key = at;
    pass_string();
    auto const wanted = nlohmann::json::parse(object.substr(key, at - key)) == name;  // it may have escapes
    pass(':');
    auto const first = at = object.find_first_not_of(space, at);
    for (int depth = 0; depth > 0 || (object[at] != ',' && object[at] != '}');) {
      auto const c = object[at];
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      if (c == '"') pass_string();
      else ++at;
    }
    auto const value = object.substr(first, at - first);
    if (wanted) return value.substr(0, value.find_last_not_of(space) + 1);
    if (object[at] == ',') ++at;
  }
  return {};
}

}  // namespace serve
