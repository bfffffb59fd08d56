// SPDX-License-Identifier: Apache-2.0
/// \file
/// Required and forbidden phrases of one translation: a line of --constraints.
#pragma once

#include <text/json.hpp>
#include <text/lines.hpp>

#include <nlohmann/json.hpp>

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

using text::shortened;
using text::shown;

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

}  // namespace detail

/// \param line  a JSON object, or blank
/// \throws text::InputError  saying what is wrong with it
inline Demands parse_demands(std::string_view line) {
  Demands demands;
  if (line.find_first_not_of(" \t") == line.npos) return demands;
  auto const object = text::parse_json(line, 8);
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
      throw text::InputError("unknown key '" + text::shortened(key) + "': not one of all, any, exact, none, ordered");
    }
  }
  return demands;
}

}  // namespace translate
