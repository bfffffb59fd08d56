// SPDX-License-Identifier: Apache-2.0
/// \file
/// Conjunctions of JSON schemas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_keywords.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The schemas that apply to one text. Several form a conjunction of objects; $ref and allOf have been resolved, anyOf
/// and oneOf have not.
class JsonConjunctions {
 protected:
  using Kind = JsonValue::Kind;
  /// One object of a conjunction, and which of its alternatives have been chosen.
  struct Part {
    JsonValue const* schema;
    bool any_of = false, one_of = false;
    friend bool operator==(Part const&, Part const&) = default;
    /// In source order.
    friend bool operator<(Part const& a, Part const& b) {
      return std::tuple(a.schema->place, a.any_of, a.one_of) < std::tuple(b.schema->place, b.any_of, b.one_of);
    }
  };
  using Parts = std::vector<Part>;
  struct Conjunction {
    Parts parts;
    bool nothing = false;
  };
  enum Type : std::uint32_t {
    null = 1,
    boolean = 2,
    integer = 4,
    number = 8,
    string = 16,
    array = 32,
    object = 64,
    all = 127
  };

  template <class = void>
  JsonConjunctions(std::string_view text, GrammarLimits const& limits)
      : reader_("schema", text, limits), root_(JsonReader::parse("schema", text, limits)), old_(is_old()) {}

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  template <class = void>
  [[noreturn]] void fail(JsonValue const& value, std::string const& why) const {
    reader_.fail_at(value.place, why);
  }

  /// Adds a schema with its $ref and allOf resolved.
  template <class = void>
  void flatten(JsonValue const& schema, Conjunction& of, std::int32_t nesting) const {
    if (schema.is(Kind::boolean)) {
      of.nothing = of.nothing || !schema.truth;
      return;
    }
    if (!schema.is(Kind::object)) fail(schema, "a schema must be an object, true or false");
    check_keywords(schema);
    if (std::ranges::find(of.parts, &schema, &Part::schema) != of.parts.end()) return;
    if (of.parts.size() > 1000 || nesting > reader_.limits().nesting) fail(schema, "allOf and $ref lead too deep");
    of.parts.push_back({&schema});
    if (auto const* const ref = schema.find("$ref")) flatten(target(*ref), of, nesting + 1);
    if (auto const* const parts = schema.find("allOf"))
      for (auto const& part : list(*parts)) flatten(part, of, nesting + 1);
  }

  template <class = void>
  JsonValue const& target(JsonValue const& ref) const {
    if (!ref.is(Kind::string)) fail(ref, "$ref must be a string");
    if (!ref.text.starts_with('#')) fail(ref, "$ref to another document is not supported");
    auto const* value = &root_;
    std::string_view rest = std::string_view(ref.text).substr(1);
    while (!rest.empty()) {
      if (rest[0] != '/') fail(ref, "$ref to an anchor is not supported");
      rest.remove_prefix(1);
      std::string name;
      while (!rest.empty() && rest[0] != '/') {
        auto const hex = [](char c) {
          return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
        };
        if (rest[0] == '~' && rest.size() > 1) name += rest[1] == '0' ? '~' : '/', rest.remove_prefix(2);
        else if (rest[0] == '%' && rest.size() > 2 && hex(rest[1]) >= 0 && hex(rest[2]) >= 0)
          name += static_cast<char>(hex(rest[1]) * 16 + hex(rest[2])), rest.remove_prefix(3);
        else name += rest[0], rest.remove_prefix(1);
      }
      if (value->is(Kind::array)) {
        auto const index = name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos
                               ? value->items.size()
                               : std::stoul(name);
        value = index < value->items.size() ? &value->items[index] : nullptr;
      } else value = value->find(name);
      if (value == nullptr) fail(ref, "$ref leads nowhere: " + ref.text);
    }
    return *value;
  }

  template <class = void>
  std::vector<JsonValue> const& list(JsonValue const& value) const {
    if (!value.is(Kind::array) || value.items.empty()) fail(value, "must be an array of schemas");
    return value.items;
  }

  template <class = void>
  void check_keywords(JsonValue const& schema) const {
    auto const &known = json_keywords(), &notes = json_notes();
    for (auto const& [name, value] : schema.members) {
      if (name == "uniqueItems" && value.is(Kind::boolean) && !value.truth) continue;
      if (!known.contains(name) && !notes.contains(name))
        fail(value, "the keyword " + json_quoted(name) + " is not supported");
      if (auto const* const items = schema.find("items"); name == "prefixItems") {
        if (items != nullptr && items->is(Kind::array))
          fail(value, "prefixItems beside an array of items is not supported: both say what comes first");
        if (schema.find("additionalItems") != nullptr)
          fail(value, "prefixItems beside additionalItems is not supported: `items` says what may follow");
      }
      if (name == "$id" && &schema != &root_) fail(value, "$id within a schema is not supported");
      if (!old_) continue;
      if (name == "prefixItems") fail(value, "prefixItems is unknown in the draft that $schema names");
      if (schema.find("$ref") != nullptr && name != "$ref" && !notes.contains(name))
        fail(value, json_quoted(name) + " beside $ref says nothing in the draft that $schema names: not supported");
    }
  }

  /// Whether $schema is draft 7 or older.
  template <class = void>
  bool is_old() const {
    auto const* const dialect = root_.find("$schema");
    if (dialect == nullptr) return false;
    if (!dialect->is(Kind::string)) fail(*dialect, "$schema must be a string");
    auto const& name = dialect->text;
    if (name.find("json-schema.org/") == std::string::npos)
      fail(*dialect, "$schema: the dialect " + json_quoted(name) + " is not supported");
    return name.find("json-schema.org/draft-0") != std::string::npos;
  }

  // ---- the meaning of a conjunction ----

  template <class = void>
  static std::uint32_t type_of(JsonValue const& value) {
    switch (value.kind) {
      case Kind::null: return null;
      case Kind::boolean: return boolean;
      case Kind::string: return string;
      case Kind::array: return array;
      case Kind::object: return object;
      case Kind::number: break;
    }
    return JsonNumber::of(value.text).whole() ? integer | number : number;
  }

  template <class = void>
  std::uint32_t types_of(Parts const& parts) const {
    std::uint32_t types = all;
    for (auto const& part : parts)
      if (auto const* const type = part.schema->find("type")) {
        std::uint32_t own = 0;
        for (auto const& one : type->is(Kind::array) ? std::span(type->items) : std::span(type, 1)) {
          static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 7> names{
              {{"null", null},
               {"boolean", boolean},
               {"integer", integer},
               {"number", integer | number},
               {"string", string},
               {"array", array},
               {"object", object}}};
          // NOLINTNEXTLINE(readability-qualified-auto): an iterator, which need not be a pointer
          auto const it = std::ranges::find(names, one.text, &std::pair<std::string_view, std::uint32_t>::first);
          if (!one.is(Kind::string) || it == names.end()) fail(one, "is no type of JSON");
          own |= it->second;
        }
        types &= own;
      }
    return types;
  }

  /// The values that enum and const allow; nullopt: there is neither.
  template <class = void>
  std::optional<std::vector<JsonValue const*>> values_of(Parts const& parts) const {
    std::optional<std::vector<JsonValue const*>> values;
    std::set<std::string> keys;  // of `values`
    auto const keep = [&](std::span<JsonValue const> own) {
      std::vector<JsonValue const*> kept;
      std::set<std::string> kept_keys;
      for (auto const& value : own) {
        auto key = json_key(value);
        if ((!values || keys.contains(key)) && kept_keys.insert(std::move(key)).second) kept.push_back(&value);
      }
      values = std::move(kept), keys = std::move(kept_keys);
    };
    for (auto const& part : parts) {
      if (auto const* const value = part.schema->find("const")) keep({value, 1});
      if (auto const* const own = part.schema->find("enum")) {
        if (!own->is(Kind::array)) fail(*own, "enum must be an array");
        keep(own->items);
      }
    }
    return values;
  }
  template <class = void>
  void refuse_beside_values(Parts const& parts) const {
    for (auto const& part : parts)
      for (auto const* const name : {"properties", "required", "additionalProperties", "items", "prefixItems",
                                     "minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "minimum",
                                     "maximum", "exclusiveMinimum", "exclusiveMaximum"})
        if (auto const* const value = part.schema->find(name))
          fail(*value, std::string(name) + " beside enum or const is not supported");
  }

  template <class = void>
  std::int32_t count(JsonValue const& value) const {
    auto const x = value.is(Kind::number) ? JsonNumber::of(value.text) : JsonNumber{.negative = true};
    if (x.negative || !x.whole()) fail(value, "must be a whole number, 0 or more");
    auto const most = reader_.limits().repetition;
    JsonDecimal digits;
    if (!JsonDecimal::parse(value.text, digits) || digits.whole.size() > 9 || std::stol(digits.whole) > most)
      fail(value, "is more than limits.repetition = " + std::to_string(most));
    return static_cast<std::int32_t>(std::stol(digits.whole));
  }
  /// \returns  the largest minimum and the smallest maximum (-1: none)
  template <class = void>
  std::pair<std::int32_t, std::int32_t> counts(Parts const& parts, std::string_view least,
                                               std::string_view most) const {
    std::pair<std::int32_t, std::int32_t> out{0, -1};
    for (auto const& part : parts) {
      if (auto const* const value = part.schema->find(least)) out.first = (std::max)(out.first, count(*value));
      if (auto const* const value = part.schema->find(most))
        out.second = out.second < 0 ? count(*value) : (std::min)(out.second, count(*value));
    }
    return out;
  }

  /// The schemas that apply to the i-th item.
  template <class = void>
  std::vector<JsonValue const*> items_at(Parts const& parts, std::size_t i) const {
    std::vector<JsonValue const*> out;
    for (auto const& part : parts) {
      auto const *first = part.schema->find("prefixItems"), *rest = part.schema->find("items");
      if (rest != nullptr && rest->is(Kind::array))
        first = rest, rest = part.schema->find("additionalItems");  // draft 7
      if (first != nullptr && !first->is(Kind::array)) fail(*first, "prefixItems must be an array");
      if (first != nullptr && i < first->items.size()) out.push_back(&first->items[i]);
      else if (rest != nullptr) out.push_back(rest);
    }
    return out;
  }

  template <class = void>
  JsonValue const* properties(JsonValue const& schema) const {
    auto const* const own = schema.find("properties");
    if (own != nullptr && !own->is(Kind::object)) fail(*own, "properties must be an object");
    return own;
  }

  SourceReader reader_;  // for source positions
  JsonValue root_;
  bool old_ = false;  // a draft in which $ref overrides its sibling keywords
};

}  // namespace sluice::inline v0::detail
