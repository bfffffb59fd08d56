// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random small schemas over few letters, and the texts they accept, found by trying everything. Shares no code with
/// the library.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

/// Finds where compact texts of values that begin at one position may end.
class SchemaTexts {
 public:
  using Json = nlohmann::ordered_json;
  using Ends = std::set<std::size_t>;
  SchemaTexts(Json const& root, std::string_view text) : root_(root), text_(text) {}
  bool matches() const { return of(root_, 0).contains(text_.size()); }

 private:
  Ends of(Json const& schema, std::size_t from) const {
    if (schema.is_boolean()) return schema.get<bool>() ? of(Json::object(), from) : Ends{};
    if (schema.contains("$ref")) return of(root_.at("$defs").at("x"), from);
    Ends ends;
    if (schema.contains("anyOf")) {
      for (auto const& one : schema["anyOf"]) ends.merge(of(one, from));
      return ends;
    }
    if (schema.contains("allOf")) {
      ends = of(schema["allOf"][0], from);
      auto const other = of(schema["allOf"][1], from);
      std::erase_if(ends, [&](std::size_t end) { return !other.contains(end); });
      return ends;
    }
    if (schema.contains("enum")) {
      for (auto const& value : schema["enum"]) take(value.dump(), from, ends);
      return ends;
    }
    auto const type = schema.value("type", "");
    auto const is = [&](char const* name) { return type.empty() || type == name; };
    if (is("null")) take("null", from, ends);
    if (is("boolean")) take("true", from, ends), take("false", from, ends);
    if (is("integer") || is("number")) numbers(schema, from, ends);
    if (is("string")) strings(schema, from, ends);
    if (is("array") && at(from) == '[') arrays(schema, from, ends);
    if (is("object") && at(from) == '{') objects(schema, from, ends);
    return ends;
  }

  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool digit(std::size_t i) const { return at(i) >= '0' && at(i) <= '9'; }
  void take(std::string_view word, std::size_t from, Ends& ends) const {
    if (text_.substr(from).starts_with(word)) ends.insert(from + word.size());
  }
  /// Whole numbers only: there is no point among the letters.
  void numbers(Json const& schema, std::size_t from, Ends& ends) const {
    auto const begin = from + (at(from) == '-' ? 1 : 0);
    for (auto end = begin; digit(end); ++end) {
      if (end > begin && at(begin) == '0') break;
      auto const x = std::strtod(std::string(text_.substr(from, end + 1 - from)).c_str(), nullptr);
      if (x >= schema.value("minimum", -1e300) && x <= schema.value("maximum", 1e300)) ends.insert(end + 1);
    }
  }
  /// The first quotation mark ends the string: nothing is escaped.
  void strings(Json const& schema, std::size_t from, Ends& ends) const {
    if (at(from) != '"') return;
    auto const end = text_.find('"', from + 1);
    if (end == text_.npos) return;
    std::string const text(text_.substr(from + 1, end - from - 1));
    if (text.size() < schema.value("minLength", std::size_t{0}) ||
        text.size() > schema.value("maxLength", std::size_t{99}))
      return;
    if (schema.contains("pattern") && !std::regex_search(text, std::regex(schema["pattern"].get<std::string>())))
      return;
    ends.insert(end + 1);
  }
  void arrays(Json const& schema, std::size_t from, Ends& ends) const {
    auto const least = schema.value("minItems", std::size_t{0}), most = schema.value("maxItems", std::size_t{99});
    auto const first = schema.value("prefixItems", Json::array());
    auto const rest = schema.value("items", Json(true));
    Ends places{from + 1};  // after `count` items
    for (std::size_t count = 0; !places.empty() && count <= most; ++count) {
      Ends next;
      for (auto const place : places) {
        if (count >= least && at(place) == ']') ends.insert(place + 1);
        if (count > 0 && at(place) != ',') continue;
        next.merge(of(count < first.size() ? first[count] : rest, place + (count > 0 ? 1 : 0)));
      }
      places = std::move(next);
    }
  }
  void objects(Json const& schema, std::size_t from, Ends& ends) const {
    auto const properties = schema.value("properties", Json::object());
    std::vector<std::string> names;
    for (auto const& [name, value] : properties.items()) names.push_back(name);
    auto const required = schema.value("required", std::vector<std::string>{});
    for (auto const& name : required)
      if (!properties.contains(name)) names.push_back(name);
    auto const others = schema.value("additionalProperties", Json(true));
    members(names, 0, required, properties, others, from + 1, true, ends);
  }
  /// The text after the names before the i-th have been written or skipped.
  void members(std::vector<std::string> const& names, std::size_t i, std::vector<std::string> const& required,
               Json const& properties, Json const& others, std::size_t from, bool first, Ends& ends) const {
    auto const behind_comma = first ? from : at(from) == ',' ? from + 1 : text_.size() + 1;
    if (i == names.size()) {
      if (at(from) == '}') ends.insert(from + 1);
      if (behind_comma > text_.size() || at(behind_comma) != '"') return;
      auto const quote = text_.find('"', behind_comma + 1);
      if (quote == text_.npos || at(quote + 1) != ':') return;
      std::string const name(text_.substr(behind_comma + 1, quote - behind_comma - 1));
      if (std::ranges::find(names, name) != names.end()) return;
      for (auto const end : of(others, quote + 2)) members(names, i, required, properties, others, end, false, ends);
      return;
    }
    auto const& name = names[i];
    if (std::ranges::find(required, name) == required.end())
      members(names, i + 1, required, properties, others, from, first, ends);
    if (behind_comma > text_.size()) return;
    auto const begun = "\"" + name + "\":";
    if (!text_.substr(behind_comma).starts_with(begun)) return;
    for (auto const end : of(properties.value(name, others), behind_comma + begun.size()))
      members(names, i + 1, required, properties, others, end, false, ends);
  }

  Json const& root_;
  std::string_view text_;
};

/// Schemas whose shortest values are short.
class SmallSchemas {
 public:
  using Json = SchemaTexts::Json;
  explicit SmallSchemas(std::mt19937_64& random) : random_(random) {}

  Json draw() {
    auto out = schema(2, true);
    if (!out.is_object()) out = Json::object();
    out["$defs"]["x"] = schema(1, false);
    return out;
  }

 private:
  Json schema(int depth, bool refers) {
    auto const kind = pick(0, depth == 0 ? 6 : refers ? 12 : 11);
    if (kind <= 1) {
      Json out{{"type", pick(0, 2) == 0 ? "number" : "integer"}};
      if (pick(0, 1) == 0) out["minimum"] = pick(-12, 2);
      if (pick(0, 1) == 0) out["maximum"] = pick(2, 111);
      return out;
    }
    if (kind <= 3) {
      Json out{{"type", "string"}};
      if (pick(0, 2) == 0)
        out["pattern"] = std::vector<std::string>{"^a+b?$", "^(ab|ba)*$", "^[^a]?$", "^a|b$"}[at(pick(0, 3))];
      else out["minLength"] = pick(0, 1), out["maxLength"] = pick(1, 2);
      return out;
    }
    if (kind == 4) return {{"type", pick(0, 1) == 0 ? "null" : "boolean"}};
    if (kind <= 6) {
      auto values = Json::array();
      for (auto count = pick(1, 3); count > 0; --count)
        values.push_back(
            std::vector<Json>{1, 11, -1, "a", "ab", nullptr, Json::array({1}), Json{{"a", 1}}}[at(pick(0, 7))]);
      return {{"enum", values}};
    }
    if (kind <= 8) {
      Json out{{"type", "array"}};
      out["items"] = pick(0, 3) == 0 ? Json(false) : schema(depth - 1, refers);
      if (pick(0, 1) == 0)
        for (auto count = pick(1, 2); count > 0; --count) out["prefixItems"].push_back(schema(depth - 1, refers));
      if (pick(0, 2) == 0) out["minItems"] = pick(0, 2);
      if (pick(0, 2) == 0) out["maxItems"] = pick(0, 3);
      return out;
    }
    if (kind <= 10) {
      Json out{{"type", "object"}};
      for (auto const* const name : {"b", "a", "ab"}) {
        if (pick(0, 1) == 0) out["properties"][name] = schema(depth - 1, refers);
        if (pick(0, 3) == 0) out["required"].push_back(name);
      }
      if (pick(0, 3) > 0) out["additionalProperties"] = pick(0, 2) == 0 ? schema(0, false) : Json(false);
      return out;
    }
    if (kind == 11) return {{pick(0, 3) == 0 ? "allOf" : "anyOf", {simple(), simple()}}};
    return {{"$ref", "#/$defs/x"}};
  }
  Json simple() {
    for (;;) {
      auto out = schema(0, false);
      if (!out.contains("enum")) return out;
    }
  }
  std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  std::mt19937_64& random_;
};

}  // namespace sluice::test
