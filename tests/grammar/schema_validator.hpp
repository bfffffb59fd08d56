// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random JSON schemas, and a validator written from the specification, keyword by keyword.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace sluice::test {

using nlohmann::json;

inline bool has_type(json const& instance, std::string const& type) {
  if (type == "integer") return instance.is_number() && std::floor(instance.get<double>()) == instance.get<double>();
  return (type == "null" && instance.is_null()) || (type == "boolean" && instance.is_boolean()) ||
         (type == "number" && instance.is_number()) || (type == "string" && instance.is_string()) ||
         (type == "array" && instance.is_array()) || (type == "object" && instance.is_object());
}

/// Whether a name comes twice in an object: JSON does not say what that means.
inline bool repeats_name(std::string const& text) {
  std::vector<std::set<std::string>> open;
  auto found = false;
  auto const parsed = json::parse(
      text,
      [&](int, json::parse_event_t event, json& value) {
        if (event == json::parse_event_t::object_start) open.emplace_back();
        if (event == json::parse_event_t::object_end) open.pop_back();
        if (event == json::parse_event_t::key) found = !open.back().insert(value.get<std::string>()).second || found;
        return true;
      },
      false);
  return found && !parsed.is_discarded();
}

/// Whether a number may have more digits than a double, by which valid() judges: written out, or by its exponent.
inline bool exceeds_doubles(std::string const& text) {
  static std::regex const many("[0-9.]{16}|[0-9][eE][+-]?0*[1-9][0-9]");
  return std::regex_search(text, many);
}

inline bool valid(json const& root, json const& schema, json const& instance) {
  if (schema.is_boolean()) return schema.get<bool>();
  auto const at = [&](char const* name) -> json const* {
    auto const it = schema.find(name);
    return it == schema.end() ? nullptr : &*it;
  };
  auto const fits = [&](json const& other) { return valid(root, other, instance); };
  if (auto const* const ref = at("$ref"))
    if (!fits(root.at(json::json_pointer(ref->get<std::string>().substr(1))))) return false;
  if (auto const* const all = at("allOf"))
    if (!std::ranges::all_of(*all, fits)) return false;
  if (auto const* const any = at("anyOf"))
    if (!std::ranges::any_of(*any, fits)) return false;
  if (auto const* const one = at("oneOf"))
    if (std::ranges::count_if(*one, fits) != 1) return false;
  if (auto const* const type = at("type")) {
    auto const is = [&](json const& name) { return has_type(instance, name.get<std::string>()); };
    if (type->is_array() ? !std::ranges::any_of(*type, is) : !is(*type)) return false;
  }
  if (auto const* const values = at("enum"))
    if (std::ranges::find(*values, instance) == values->end()) return false;
  if (auto const* const value = at("const"))
    if (*value != instance) return false;
  if (auto const* const no = at("not"); no != nullptr && fits(*no)) return false;
  if (auto const* const condition = at("if"))
    if (auto const* const then = at(fits(*condition) ? "then" : "else"); then != nullptr && !fits(*then)) return false;
  if (instance.is_number()) {
    auto const x = instance.get<double>();
    if (auto const* const by = at("multipleOf"); by != nullptr && std::fmod(x, by->get<double>()) != 0) return false;
    if (auto const* const b = at("minimum"); b != nullptr && x < b->get<double>()) return false;
    if (auto const* const b = at("maximum"); b != nullptr && x > b->get<double>()) return false;
    if (auto const* const b = at("exclusiveMinimum"); b != nullptr && x <= b->get<double>()) return false;
    if (auto const* const b = at("exclusiveMaximum"); b != nullptr && x >= b->get<double>()) return false;
  }
  if (instance.is_string()) {
    auto const text = instance.get<std::string>();
    auto const length =
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    if (auto const* const n = at("minLength"); n != nullptr && length < n->get<long>()) return false;
    if (auto const* const n = at("maxLength"); n != nullptr && length > n->get<long>()) return false;
    if (auto const* const p = at("pattern");
        p != nullptr && !std::regex_search(text, std::regex(p->get<std::string>())))
      return false;
  }
  if (instance.is_array()) {
    if (auto const* const n = at("minItems"); n != nullptr && instance.size() < n->get<std::size_t>()) return false;
    if (auto const* const n = at("maxItems"); n != nullptr && instance.size() > n->get<std::size_t>()) return false;
    if (auto const* const unique = at("uniqueItems"); unique != nullptr && unique->get<bool>())
      for (std::size_t i = 0; i < instance.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
          if (instance[i] == instance[k]) return false;
    if (auto const* const some = at("contains")) {
      auto const found = std::ranges::count_if(instance, [&](json const& item) { return valid(root, *some, item); });
      if (found < schema.value("minContains", 1) || found > schema.value("maxContains", 1'000'000)) return false;
    }
    auto const* const first = at("prefixItems");
    for (std::size_t i = 0; i < instance.size(); ++i) {
      auto const* const own = first != nullptr && i < first->size() ? &(*first)[i] : at("items");
      if (own != nullptr && !valid(root, *own, instance[i])) return false;
    }
  }
  if (instance.is_object()) {
    if (auto const* const names = at("required"))
      for (auto const& name : *names)
        if (!instance.contains(name.get<std::string>())) return false;
    if (auto const* const n = at("minProperties"); n != nullptr && instance.size() < n->get<std::size_t>())
      return false;
    if (auto const* const n = at("maxProperties"); n != nullptr && instance.size() > n->get<std::size_t>())
      return false;
    for (auto const* const word : {"dependentRequired", "dependentSchemas"})
      if (auto const* const all = at(word))
        for (auto const& [name, wanted] : all->items()) {
          if (!instance.contains(name)) continue;
          if (!wanted.is_array()) {
            if (!fits(wanted)) return false;
          } else
            for (auto const& other : wanted)
              if (!instance.contains(other.get<std::string>())) return false;
        }
    auto const *properties = at("properties"), *patterns = at("patternProperties");
    for (auto const& [name, value] : instance.items()) {
      auto known = false;
      if (auto const* const names = at("propertyNames"); names != nullptr && !valid(root, *names, json(name)))
        return false;
      if (properties != nullptr && properties->contains(name)) {
        known = true;
        if (!valid(root, properties->at(name), value)) return false;
      }
      if (patterns != nullptr)
        for (auto const& [pattern, own] : patterns->items()) {
          if (!std::regex_search(name, std::regex(pattern))) continue;
          known = true;
          if (!valid(root, own, value)) return false;
        }
      if (auto const* const others = at("additionalProperties"); !known && others != nullptr)
        if (!valid(root, *others, value)) return false;
    }
  }
  return true;
}

/// Schemas with all supported keywords, and two definitions that they may refer to.
class SchemaDraw {
 public:
  /// \param refers  to #/$defs/x and y
  explicit SchemaDraw(std::mt19937_64& random, bool refers = true) : random_(random), refers_(refers) {}

  json schema(int depth) {
    static std::vector<std::string> const names{"a", "b", "ab", "c\"d"},
        simple{"null", "boolean", "integer", "number", "string"};
    auto const kind = draw(0, refers_ ? 21 : 20);
    if (kind == 0) return true;
    if (depth == 0 || kind < 8) return scalar(simple[static_cast<std::size_t>(draw(0, 4))]);
    json out = json::object();
    if (kind < 12) {
      if (chance(80)) out["type"] = "array";
      if (chance(60)) out["items"] = schema(depth - 1);
      if (chance(40)) out["prefixItems"] = several(depth);
      if (chance(30)) out["minItems"] = draw(0, 2);
      if (chance(40)) out["maxItems"] = draw(1, 4);
      if (chance(20)) {
        out["contains"] = schema(depth - 1);
        if (chance(50)) out["minContains"] = draw(0, 2);
        if (chance(30)) out["maxContains"] = draw(1, 2);
      }
      if (chance(10)) out["uniqueItems"] = true;
    } else if (kind < 16) {
      if (chance(80)) out["type"] = "object";
      for (auto const& name : names) {
        if (chance(50)) out["properties"][name] = schema(depth - 1);
        if (chance(25)) out["required"].push_back(name);
      }
      if (chance(60)) out["additionalProperties"] = chance(60) ? json(false) : schema(depth - 1);
      if (chance(20)) out["patternProperties"][chance(50) ? "^a" : "b"] = schema(depth - 1);
      if (chance(10)) out["propertyNames"] = {{"maxLength", 2}};
      if (chance(10)) out["minProperties"] = draw(1, 3);
      if (chance(15)) out["maxProperties"] = draw(1, 3);
      if (chance(15)) out["dependentRequired"]["a"] = {"b"};
      if (chance(15)) out["dependentSchemas"]["b"] = schema(depth - 1);
    } else if (kind < 19) {
      if (chance(30)) out = scalar("integer");
      out[kind == 16 ? "anyOf" : kind == 17 ? "allOf" : "oneOf"] = several(depth);
    } else if (kind == 19) out["not"] = schema(depth - 1);
    else if (kind == 20) {
      out["if"] = schema(depth - 1);
      if (chance(70)) out["then"] = schema(depth - 1);
      if (chance(70)) out["else"] = schema(depth - 1);
    } else out["$ref"] = chance(50) ? "#/$defs/x" : "#/$defs/y";
    return out;
  }

 private:
  json scalar(std::string const& type) {
    if (chance(12)) return {{"enum", json::array({draw(-9, 9), "a\n", nullptr, true, "é", {{"a", 1}}})}};
    json out{{"type", type}};
    for (auto const* const bound : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if ((type == "integer" || type == "number") && chance(30))
        out[bound] = draw(-300, 300) / (chance(50) ? 1.0 : 8.0);
    if ((type == "integer" || type == "number") && chance(15)) out["multipleOf"] = chance(50) ? json(3) : json(0.25);
    if (type == "string" && chance(30)) out["minLength"] = draw(0, 3), out["maxLength"] = draw(2, 5);
    if (type == "string" && chance(40))
      out["pattern"] =
          std::vector<std::string>{"^a+b?$", "^(ab|ba)*", "b$", "[^a]"}[static_cast<std::size_t>(draw(0, 3))];
    return out;
  }
  json several(int depth) {
    auto out = json::array();
    for (auto count = draw(1, 3); count > 0; --count) out.push_back(schema(depth - 1));
    return out;
  }
  int draw(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool chance(int percent) { return draw(0, 99) < percent; }
  std::mt19937_64& random_;
  bool refers_;
};

inline json random_schema(std::mt19937_64& random) {
  SchemaDraw draw(random);
  auto out = draw.schema(3);
  if (!out.is_object()) out = json::object();
  SchemaDraw simple(random, false);
  out["$defs"] = {{"x", simple.schema(2)},
                  {"y", {{"anyOf", {simple.schema(0), {{"type", "array"}, {"items", {{"$ref", "#/$defs/y"}}}}}}}}};
  return out;
}

}  // namespace sluice::test
