// SPDX-License-Identifier: Apache-2.0
/// \file
/// The keywords of JSON schemas that are understood.
#pragma once

#include <sluice/language.hpp>

#include <set>
#include <string_view>

namespace sluice::inline v0::detail {

/// Keywords that constrain values.
template <class = void>
std::set<std::string_view> const& json_keywords() {
  static std::set<std::string_view> const names{"$ref",
                                                "allOf",
                                                "anyOf",
                                                "oneOf",
                                                "type",
                                                "enum",
                                                "const",
                                                "properties",
                                                "required",
                                                "additionalProperties",
                                                "items",
                                                "prefixItems",
                                                "additionalItems",
                                                "minItems",
                                                "maxItems",
                                                "minLength",
                                                "maxLength",
                                                "pattern",
                                                "format",
                                                "minimum",
                                                "maximum",
                                                "exclusiveMinimum",
                                                "exclusiveMaximum"};
  return names;
}

/// Keywords that do not constrain values, or only hold schemas for reference.
template <class = void>
std::set<std::string_view> const& json_notes() {
  static std::set<std::string_view> const names{"$schema",  "$id",         "$comment", "$defs",
                                                "title",    "definitions", "default",  "description",
                                                "examples", "deprecated",  "readOnly", "writeOnly"};
  return names;
}

}  // namespace sluice::inline v0::detail
