// SPDX-License-Identifier: Apache-2.0
/// \file
/// The keywords of JSON schemas that are understood.
#pragma once

#include <sluice/language.hpp>

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace sluice::inline v0::detail {

/// What a keyword asks, with the keywords that belong to it.
enum class JsonWord : std::uint8_t {
  ref,
  dynamic_ref,
  recursive_ref,
  all_of,
  any_of,
  one_of,
  no,
  condition,  // if, then, else
  type,
  values,  // enum
  constant,
  properties,  // and patternProperties, additionalProperties
  required,
  property_names,
  least_properties,
  most_properties,
  dependencies,  // and dependentRequired, dependentSchemas
  items,         // and prefixItems, additionalItems
  contains,      // and minContains, maxContains
  least_items,
  most_items,
  unique,
  other_properties,  // unevaluated
  other_items,
  least_length,
  most_length,
  pattern,
  format,
  least,
  most,
  above,
  below,
  multiple,
  part,  // read with another one
  note   // says nothing about values, or holds schemas for reference
};

struct JsonKeyword {
  JsonWord word;
  int from = 4, until = 2020;  // the drafts that know it
};

SLUICE_LAZY std::unordered_map<std::string_view, JsonKeyword> const& json_keywords() {
  using W = JsonWord;
  static std::unordered_map<std::string_view, JsonKeyword> const names{
      {"$ref", {W::ref}},
      {"$dynamicRef", {W::dynamic_ref, 2020}},
      {"$recursiveRef", {W::recursive_ref, 2019, 2019}},
      {"allOf", {W::all_of}},
      {"anyOf", {W::any_of}},
      {"oneOf", {W::one_of}},
      {"not", {W::no}},
      {"if", {W::condition, 7}},
      {"then", {W::part, 7}},
      {"else", {W::part, 7}},
      {"type", {W::type}},
      {"enum", {W::values}},
      {"const", {W::constant, 6}},
      {"properties", {W::properties}},
      {"patternProperties", {W::properties}},
      {"additionalProperties", {W::properties}},
      {"required", {W::required}},
      {"propertyNames", {W::property_names, 6}},
      {"minProperties", {W::least_properties}},
      {"maxProperties", {W::most_properties}},
      {"dependencies", {W::dependencies}},
      {"dependentRequired", {W::dependencies, 2019}},
      {"dependentSchemas", {W::dependencies, 2019}},
      {"items", {W::items}},
      {"prefixItems", {W::items, 2020}},
      {"additionalItems", {W::items, 4, 2019}},
      {"contains", {W::contains, 6}},
      {"minContains", {W::part, 2019}},
      {"maxContains", {W::part, 2019}},
      {"minItems", {W::least_items}},
      {"maxItems", {W::most_items}},
      {"uniqueItems", {W::unique}},
      {"unevaluatedProperties", {W::other_properties, 2019}},
      {"unevaluatedItems", {W::other_items, 2019}},
      {"minLength", {W::least_length}},
      {"maxLength", {W::most_length}},
      {"pattern", {W::pattern}},
      {"format", {W::format}},
      {"minimum", {W::least}},
      {"maximum", {W::most}},
      {"exclusiveMinimum", {W::above}},
      {"exclusiveMaximum", {W::below}},
      {"multipleOf", {W::multiple}},
      {"$schema", {W::note}},
      {"$id", {W::note, 6}},
      {"id", {W::note, 4, 4}},
      {"$anchor", {W::note, 2019}},
      {"$dynamicAnchor", {W::note, 2020}},
      {"$recursiveAnchor", {W::note, 2019, 2019}},
      {"$vocabulary", {W::note, 2019}},
      {"$comment", {W::note}},
      {"$defs", {W::note}},
      {"definitions", {W::note}},
      {"title", {W::note}},
      {"description", {W::note}},
      {"default", {W::note}},
      {"examples", {W::note}},
      {"deprecated", {W::note}},
      {"readOnly", {W::note}},
      {"writeOnly", {W::note}},
      {"contentMediaType", {W::note}},
      {"contentEncoding", {W::note}},
      {"contentSchema", {W::note}},
  };
  return names;
}

}  // namespace sluice::inline v0::detail
