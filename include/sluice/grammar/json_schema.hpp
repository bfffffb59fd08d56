// SPDX-License-Identifier: Apache-2.0
/// \file
/// From JSON schemas to rules.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/grammar/expressions.hpp>
#include <sluice/grammar/json_formats.hpp>
#include <sluice/grammar/json_numbers.hpp>
#include <sluice/grammar/json_texts.hpp>
#include <sluice/grammar/json_value.hpp>
#include <sluice/grammar/regex.hpp>
#include <sluice/grammar/source_reader.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How a JSON schema is read.
struct JsonSchemaOptions {
  std::int32_t white_space = 0;  ///< characters of it at most wherever JSON allows some; 0: compact; -1: any number
  GrammarLimits limits{};
};

namespace detail {

/// Which texts a schema accepts. A schema is a conjunction of objects: $ref and allOf add some, anyOf and oneOf choose; for
/// each conjunction that comes up there is one rule, so that a schema may come back to itself.
template <class = void>
class LazyJsonSchema {
 public:
  using Id = Expressions::Id;

  /// \returns  a rule
  static std::int32_t compile(std::string_view text, JsonSchemaOptions const& options, Expressions& out) {
    require(options.white_space >= -1, "options.white_space", options.white_space, "must be -1 or more");
    return LazyJsonSchema(text, options, out).whole();
  }

 private:
  using Kind = JsonValue::Kind;
  /// One object of a conjunction, and which of its choices have been made.
  struct Part {
    JsonValue const* schema;
    bool any_of = false, one_of = false;
    friend auto operator<=>(Part const&, Part const&) = default;
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

  LazyJsonSchema(std::string_view text, JsonSchemaOptions const& options, Expressions& out)
      : reader_("schema", text, options.limits),
        root_(JsonReader::parse("schema", text, options.limits)),
        out_(out),
        texts_(out, options.white_space) {}

  std::int32_t whole() {
    auto const root = out_.add_rule("schema");
    auto const value = rule_of({&root_}, 0);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {  // grows
      auto const [rule, parts, nesting] = waiting_[i];
      auto const body = body_of(parts, nesting);
      out_.rules[at(rule)].expression = body;
    }
    out_.rules[at(root)].expression = value;
    return root;
  }

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  [[noreturn]] void fail(JsonValue const& value, std::string const& why) const { reader_.fail_at(value.place, why); }

  // ---- conjunctions ----

  /// The rule of what obeys all of these schemas.
  Id rule_of(std::vector<JsonValue const*> const& schemas, std::int32_t nesting) {
    Conjunction of;
    for (auto const* const schema : schemas) flatten(*schema, of, 0);
    return rule_of(std::move(of), nesting);
  }
  Id rule_of(Conjunction of, std::int32_t nesting) {
    if (of.nothing) return out_.nothing();
    std::ranges::sort(of.parts);
    of.parts.erase(std::unique(of.parts.begin(), of.parts.end()), of.parts.end());
    if (of.parts.empty()) return texts_.any();
    auto const [it, fresh] = rules_.try_emplace(of.parts, 0);
    if (fresh) {
      auto const place = of.parts.front().schema->place;
      it->second = out_.add_rule("schema at byte " + std::to_string(place));
      waiting_.push_back({it->second, of.parts, nesting});
      if (rules_.size() > 100'000) fail(*of.parts.front().schema, "leads to more than 100000 combinations of schemas");
    }
    return out_.call(it->second);
  }

  /// Adds what a schema says, without $ref and allOf.
  void flatten(JsonValue const& schema, Conjunction& of, std::int32_t nesting) {
    if (schema.is(Kind::boolean)) {
      of.nothing = of.nothing || !schema.truth;
      return;
    }
    if (!schema.is(Kind::object)) fail(schema, "a schema must be an object, true or false");
    check_keywords(schema);
    if (std::ranges::find(of.parts, &schema, &Part::schema) != of.parts.end()) return;
    if (of.parts.size() > 1000 || nesting > out_.limits().nesting) fail(schema, "allOf and $ref lead too deep");
    of.parts.push_back({&schema});
    if (auto const* const ref = schema.find("$ref")) flatten(target(*ref), of, nesting + 1);
    if (auto const* const parts = schema.find("allOf"))
      for (auto const& part : list(*parts)) flatten(part, of, nesting + 1);
  }

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

  std::vector<JsonValue> const& list(JsonValue const& value) const {
    if (!value.is(Kind::array) || value.items.empty()) fail(value, "must be an array of schemas");
    return value.items;
  }

  void check_keywords(JsonValue const& schema) const {
    static std::set<std::string_view> const known{
        "$ref", "allOf", "anyOf", "oneOf", "type", "enum", "const", "properties", "required", "additionalProperties",
        "items", "prefixItems", "additionalItems", "minItems", "maxItems", "minLength", "maxLength", "pattern",
        "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        // what says nothing about values, or holds schemas that others refer to
        "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
        "deprecated", "readOnly", "writeOnly"};
    for (auto const& [name, value] : schema.members) {
      if (name == "uniqueItems" && value.is(Kind::boolean) && !value.truth) continue;
      if (!known.contains(name)) fail(value, "the keyword " + json_quoted(name) + " is not supported");
      if (name == "$id" && &schema != &root_) fail(value, "$id within a schema is not supported");
    }
  }

  // ---- what a conjunction accepts ----

  Id body_of(Parts const& parts, std::int32_t nesting) {
    if (nesting > 10'000) fail(*parts.front().schema, "schemas lead too deep");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto const& schema = *parts[i].schema;
      for (auto const one : {false, true}) {
        if (one ? parts[i].one_of : parts[i].any_of) continue;
        auto const* const choices = schema.find(one ? "oneOf" : "anyOf");
        if (choices == nullptr) continue;
        if (one) check_disjoint(*choices);
        std::vector<Id> bodies;
        for (auto const& choice : list(*choices)) {
          Conjunction of{.parts = parts};
          (one ? of.parts[i].one_of : of.parts[i].any_of) = true;
          flatten(choice, of, 0);
          bodies.push_back(rule_of(std::move(of), nesting + 1));
        }
        return out_.choice(bodies);
      }
    }
    auto types = types_of(parts);
    if (auto const values = values_of(parts)) {
      std::vector<Id> choices;
      refuse_beside_values(parts);
      for (auto const* const value : *values)
        if ((type_of(*value) & types) != 0) choices.push_back(texts_.exactly(*value));
      return out_.choice(choices);
    }
    std::vector<Id> choices;
    if ((types & null) != 0) choices.push_back(out_.text("null"));
    if ((types & boolean) != 0) choices.push_back(out_.text("true")), choices.push_back(out_.text("false"));
    if ((types & (integer | number)) != 0) choices.push_back(number_of(parts, (types & number) == 0));
    if ((types & string) != 0) choices.push_back(string_of(parts));
    if ((types & array) != 0) choices.push_back(array_of(parts, nesting));
    if ((types & object) != 0) choices.push_back(object_of(parts, nesting));
    return out_.choice(choices);
  }

  static std::uint32_t type_of(JsonValue const& value) {
    switch (value.kind) {
      case Kind::null: return null;
      case Kind::boolean: return boolean;
      case Kind::string: return string;
      case Kind::array: return array;
      case Kind::object: return object;
      case Kind::number: break;
    }
    JsonDecimal x;
    return JsonDecimal::parse(value.text, x) && x.fraction.empty() ? integer | number : number;
  }

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
          auto const it = std::ranges::find(names, one.text, &std::pair<std::string_view, std::uint32_t>::first);
          if (!one.is(Kind::string) || it == names.end()) fail(one, "is no type of JSON");
          own |= it->second;
        }
        types &= own;
      }
    return types;
  }

  /// What enum and const leave; none: there is neither.
  std::optional<std::vector<JsonValue const*>> values_of(Parts const& parts) const {
    std::optional<std::vector<JsonValue const*>> values;
    auto const keep = [&](std::span<JsonValue const> own) {
      std::vector<JsonValue const*> kept;
      for (auto const& value : own) {
        auto const same = [&](JsonValue const* other) { return json_equal(*other, value); };
        if ((!values || std::ranges::any_of(*values, same)) && std::ranges::none_of(kept, same)) kept.push_back(&value);
      }
      values = std::move(kept);
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
  void refuse_beside_values(Parts const& parts) const {
    for (auto const& part : parts)
      for (auto const* const name : {"properties", "required", "additionalProperties", "items", "prefixItems",
                                     "minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "minimum",
                                     "maximum", "exclusiveMinimum", "exclusiveMaximum"})
        if (auto const* const value = part.schema->find(name))
          fail(*value, std::string(name) + " beside enum or const is not supported");
  }

  // ---- numbers and strings ----

  Id number_of(Parts const& parts, bool integers) {
    std::optional<JsonBound> low, high;
    auto const bound = [&](JsonValue const* value, bool upper, bool strict) {
      if (value == nullptr) return;
      JsonBound one{.strict = strict};
      if (!value->is(Kind::number) || !JsonDecimal::parse(value->text, one.value))
        fail(*value, "a bound must be a number of moderate size");
      auto& known = upper ? high : low;
      auto const order = known ? JsonDecimal::compare(one.value, known->value) : 0;
      if (!known || (upper ? order < 0 : order > 0) || (order == 0 && strict)) known = one;
    };
    for (auto const& [schema, any_of, one_of] : parts) {
      bound(schema->find("minimum"), false, false), bound(schema->find("maximum"), true, false);
      bound(schema->find("exclusiveMinimum"), false, true), bound(schema->find("exclusiveMaximum"), true, true);
    }
    if (!low && !high) return texts_.number(integers);
    return JsonNumbers(out_).between(low, high, integers);
  }

  std::int32_t count(JsonValue const& value) const {
    JsonDecimal x;
    if (!value.is(Kind::number) || !JsonDecimal::parse(value.text, x) || x.negative || !x.fraction.empty())
      fail(value, "must be a whole number");
    auto const most = out_.limits().repetition;
    if (x.whole.size() > 9 || std::stol(x.whole) > most)
      fail(value, "is more than limits.repetition = " + std::to_string(most));
    return static_cast<std::int32_t>(std::stol(x.whole));
  }
  /// \returns  the largest minimum and the smallest maximum (-1: none)
  std::pair<std::int32_t, std::int32_t> counts(Parts const& parts, std::string_view least,
                                               std::string_view most) const {
    std::pair<std::int32_t, std::int32_t> out{0, -1};
    for (auto const& part : parts) {
      if (auto const* const value = part.schema->find(least)) out.first = std::max(out.first, count(*value));
      if (auto const* const value = part.schema->find(most))
        out.second = out.second < 0 ? count(*value) : std::min(out.second, count(*value));
    }
    return out;
  }

  Id string_of(Parts const& parts) {
    auto const [least, most] = counts(parts, "minLength", "maxLength");
    JsonValue const *pattern = nullptr, *format = nullptr;
    for (auto const& part : parts) {
      for (auto const form : {false, true}) {
        auto const* const value = part.schema->find(form ? "format" : "pattern");
        auto& known = form ? format : pattern;
        if (value == nullptr || (known != nullptr && known->text == value->text)) continue;
        if (!value->is(Kind::string)) fail(*value, "must be a string");
        if (known != nullptr) fail(*value, "two patterns, or formats, of one string are not supported");
        known = value;
      }
    }
    if (most >= 0 && most < least) return out_.nothing();
    if (pattern == nullptr && format == nullptr) return texts_.string(least, most);
    auto const& value = pattern != nullptr ? *pattern : *format;
    if ((pattern != nullptr && format != nullptr) || least > 0 || most >= 0)
      fail(value, "pattern, format, and minLength or maxLength, of one string are not supported together");
    auto const lower = [&](std::vector<CharacterRange> ranges) { return texts_.characters(std::move(ranges)); };
    Id body;
    if (pattern != nullptr) {
      try {
        body = Regex::parse("pattern", pattern->text, out_, true, lower);
      } catch (std::invalid_argument const& e) {
        fail(*pattern, std::string_view(e.what()).substr(std::string_view("sluice: ").size()).data());
      }
    } else {
      auto const known = json_format(format->text);
      if (known.empty()) fail(*format, "the format " + json_quoted(format->text) + " is not supported");
      body = Regex::parse("format", known, out_, false, lower);
    }
    return out_.sequence({out_.text("\""), body, out_.text("\"")});
  }

  // ---- arrays ----

  /// The schemas of the i-th item.
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

  Id array_of(Parts const& parts, std::int32_t nesting) {
    auto const [least, most] = counts(parts, "minItems", "maxItems");
    if (most >= 0 && most < least) return out_.nothing();
    std::size_t first = 0;  // items that may have schemas of their own
    for (auto const& part : parts)
      for (auto const* const name : {"prefixItems", "items"})
        if (auto const* const value = part.schema->find(name)) first = std::max(first, value->items.size());
    auto const fits = [&, limit = most](std::size_t i) { return limit < 0 || i < at(limit); };
    // From the end: what may follow when `i` items have been written.
    auto const begun = std::max<std::size_t>(first, 1);
    Id rest = out_.empty();
    {
      auto const value = rule_of(items_at(parts, first), nesting + 1);
      auto const done = static_cast<std::int32_t>(begun);
      if (fits(begun))
        rest =
            out_.repeat(out_.sequence({texts_.comma(), value}), std::max(0, least - done), most < 0 ? -1 : most - done);
    }
    for (auto i = begun; i-- > 0;) {
      if (!fits(i)) {
        rest = out_.empty();
        continue;
      }
      auto const value = rule_of(items_at(parts, i), nesting + 1);
      auto const one = i == 0 ? value : out_.sequence({texts_.comma(), value});
      rest = out_.sequence({one, rest});
      if (i >= at(least)) rest = out_.optional(rest);
      if (i % 64 == 63) {  // nothing is nested deeper
        auto const rule = out_.add_rule("from item " + std::to_string(i));
        out_.rules[at(rule)].expression = rest;
        rest = out_.call(rule);
      }
    }
    return texts_.within("[", rest, "]");
  }

  // ---- objects ----

  JsonValue const* properties(JsonValue const& schema) const {
    auto const* const own = schema.find("properties");
    if (own != nullptr && !own->is(Kind::object)) fail(*own, "properties must be an object");
    return own;
  }

  Id object_of(Parts const& parts, std::int32_t nesting) {
    struct Property {
      std::string name;
      bool required = false;
    };
    std::vector<Property> names;
    std::map<std::string, std::size_t> known;
    auto const property = [&](std::string const& name) -> Property& {
      auto const [it, fresh] = known.try_emplace(name, names.size());
      if (fresh) names.push_back({name});
      return names[it->second];
    };
    for (auto const& part : parts)
      if (auto const* const own = properties(*part.schema))
        for (auto const& [name, value] : own->members) property(name);
    for (auto const& part : parts)
      if (auto const* const required = part.schema->find("required")) {
        if (!required->is(Kind::array)) fail(*required, "required must be an array");
        for (auto const& name : required->items) {
          if (!name.is(Kind::string)) fail(name, "must be a name");
          property(name.text).required = true;
        }
      }
    std::vector<JsonValue const*> others;  // for names that are none of these
    for (auto const& part : parts)
      if (auto const* const other = part.schema->find("additionalProperties")) others.push_back(other);

    // From the end: what may follow a member, and what may come first.
    auto const other = rule_of(others, nesting + 1);
    auto const free = out_[other].kind != Expressions::Kind::nothing;
    auto after = out_.empty();
    std::vector<Id> first{out_.empty()};  // alternatives
    if (free) {
      std::vector<std::u32string> taken;
      for (auto const& one : names) {
        taken.push_back(decoded(one.name));
        if (taken.back().size() > 1000)
          fail(*parts.front().schema, "a name of more than 1000 characters is not supported beside additional ones");
      }
      auto const name_rule = out_.add_rule("another name");
      auto const name = texts_.string_but(std::move(taken));
      out_.rules[at(name_rule)].expression = name;
      auto const member = [&] { return texts_.member(out_.call(name_rule), other); };
      auto const more = [&] { return out_.repeat(out_.sequence({texts_.comma(), member()}), 0, -1); };
      after = more();
      first.push_back(out_.sequence({member(), more()}));
    }
    for (auto i = names.size(); i-- > 0;) {
      auto const& [name, required] = names[i];
      std::vector<JsonValue const*> schemas;
      for (auto const& part : parts) {
        auto const* const own = properties(*part.schema);
        auto const* const value = own == nullptr ? nullptr : own->find(name);
        if (value != nullptr) schemas.push_back(value);
        else if (auto const* const rest = part.schema->find("additionalProperties")) schemas.push_back(rest);
      }
      auto const value = rule_of(schemas, nesting + 1);
      auto const member = texts_.member(out_.text(json_quoted(name)), value);
      auto const rule = out_.add_rule("behind " + name);  // written once, come to from two sides
      out_.rules[at(rule)].expression = after;
      auto const here = out_.sequence({member, out_.call(rule)});
      if (required) first.clear();
      first.push_back(here);
      auto const next = out_.sequence({texts_.comma(), member, out_.call(rule)});
      after = required ? next : out_.choice({next, out_.call(rule)});
    }
    return texts_.within("{", out_.choice(first), "}");
  }

  static std::u32string decoded(std::string_view text) {
    std::u32string out;
    while (!text.empty()) {
      auto const [c, size] = read_utf8(text);
      out += c, text.remove_prefix(size);
    }
    return out;
  }

  // ---- oneOf ----

  void check_disjoint(JsonValue const& choices) const {
    auto const& schemas = list(choices);
    for (std::size_t i = 0; i < schemas.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!disjoint({&schemas[i]}, {&schemas[j]}, 0))
          fail(schemas[i],
               "oneOf is supported where it is plain that no value fits two of its schemas: by their types, or by "
               "const or enum, of themselves or of a property that both require; not so schemas " +
                   std::to_string(j) + " and " + std::to_string(i));
  }
  bool disjoint(std::vector<JsonValue const*> const& a, std::vector<JsonValue const*> const& b, int depth) const {
    Conjunction x, y;
    auto* const self = const_cast<LazyJsonSchema*>(this);
    for (auto const* const one : a) self->flatten(*one, x, 0);
    for (auto const* const one : b) self->flatten(*one, y, 0);
    if (x.nothing || y.nothing) return true;
    auto const types = [&](Conjunction const& of) {
      auto found = types_of(of.parts);
      if (auto const values = values_of(of.parts)) {
        std::uint32_t some = 0;
        for (auto const* const value : *values) some |= type_of(*value);
        found &= some;
      }
      return (found & number) != 0 ? found | integer : found;
    };
    auto const common = types(x) & types(y);
    if (common == 0) return true;
    auto const own = values_of(x.parts), other = values_of(y.parts);
    if (own && other)
      return std::ranges::none_of(*own, [&](JsonValue const* v) {
        return std::ranges::any_of(*other, [&](JsonValue const* w) { return json_equal(*v, *w); });
      });
    if (common != object || depth > 4) return false;
    auto const required = [&](Conjunction const& of, std::string const& name) {
      return std::ranges::any_of(of.parts, [&](Part const& part) {
        auto const* const names = part.schema->find("required");
        return names != nullptr &&
               std::ranges::any_of(names->items, [&](JsonValue const& n) { return n.text == name; });
      });
    };
    auto const schemas = [&](Conjunction const& of, std::string const& name) {
      std::vector<JsonValue const*> found;
      for (auto const& part : of.parts)
        if (auto const* const own_properties = properties(*part.schema))
          if (auto const* const value = own_properties->find(name)) found.push_back(value);
      return found;
    };
    for (auto const& part : x.parts)
      if (auto const* const of = properties(*part.schema))
        for (auto const& [name, value] : of->members)
          if (required(x, name) && required(y, name) && disjoint(schemas(x, name), schemas(y, name), depth + 1))
            return true;
    return false;
  }

  struct Waiting {
    std::int32_t rule;
    Parts parts;
    std::int32_t nesting;
  };
  SourceReader reader_;  // for places
  JsonValue root_;
  Expressions& out_;
  JsonTexts texts_;
  std::map<Parts, std::int32_t> rules_;
  std::vector<Waiting> waiting_;
};
using JsonSchema = LazyJsonSchema<>;

}  // namespace detail

}  // namespace sluice::inline v0
