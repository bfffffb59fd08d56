// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns JSON schemas into rules.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/json_conjunctions.hpp>
#include <sluice/grammar/detail/json_scalars.hpp>
#include <sluice/grammar/detail/json_texts.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Options for reading a JSON schema.
struct JsonSchemaOptions {
  std::int32_t white_space = 0;  ///< maximum number of white-space characters wherever JSON allows white space; 0:
                                 ///< compact; -1: any number
  GrammarLimits limits{};
};

namespace detail {

/// The texts that a schema accepts. A schema is a conjunction of objects: $ref and allOf add objects, anyOf and oneOf
/// choose between them. Every distinct conjunction gets one rule, so schemas may be recursive.
class JsonSchema : JsonScalars {
 public:
  using Id = Expressions::Id;

  /// \returns  a rule
  template <class = void>
  static std::int32_t compile(std::string_view text, JsonSchemaOptions const& options, Expressions& out) {
    require(options.white_space >= -1, "options.white_space", options.white_space, "must be -1 or more");
    return JsonSchema(text, options, out).whole();
  }

 private:
  template <class = void>
  JsonSchema(std::string_view text, JsonSchemaOptions const& options, Expressions& out)
      : JsonScalars(text, options.limits, out, options.white_space) {}

  template <class = void>
  std::int32_t whole() {
    auto const root = out_.add_rule("schema");
    auto const value = rule_of({&root_}, 0);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const [rule, parts, nesting] = waiting_[i];
      auto const body = body_of(parts, nesting);
      out_.rules[at(rule)].expression = body;
    }
    out_.rules[at(root)].expression = value;
    return root;
  }

  // ---- conjunctions ----

  /// The rule for texts that match all of these schemas.
  template <class = void>
  Id rule_of(std::vector<JsonValue const*> const& schemas, std::int32_t nesting) {
    Conjunction of;
    for (auto const* const schema : schemas) flatten(*schema, of, 0);
    return rule_of(std::move(of), nesting);
  }
  template <class = void>
  Id rule_of(Conjunction of, std::int32_t nesting) {
    if (of.nothing) return out_.nothing();
    std::sort(of.parts.begin(), of.parts.end());
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

  // ---- texts of a conjunction ----

  template <class = void>
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

  // ---- arrays ----

  template <class = void>
  Id array_of(Parts const& parts, std::int32_t nesting) {
    auto const [least, most] = counts(parts, "minItems", "maxItems");
    if (most >= 0 && most < least) return out_.nothing();
    std::size_t first = 0;  // items that may have schemas of their own
    for (auto const& part : parts)
      for (auto const* const name : {"prefixItems", "items"})
        if (auto const* const value = part.schema->find(name)) first = (std::max)(first, value->items.size());
    auto const fits = [&, limit = most](std::size_t i) { return limit < 0 || i < at(limit); };
    // From the end: what may follow after `i` items.
    auto const begun = std::max<std::size_t>(first, 1);
    Id rest = out_.empty();
    {
      auto const value = rule_of(items_at(parts, first), nesting + 1);
      auto const done = static_cast<std::int32_t>(begun);
      if (fits(begun))
        rest = out_.repeat(out_.sequence({texts_.comma(), value}), (std::max)(0, least - done),
                           most < 0 ? -1 : most - done);
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
      if (i % 64 == 63) {  // limits nesting
        auto const rule = out_.add_rule("from item " + std::to_string(i));
        out_.rules[at(rule)].expression = rest;
        rest = out_.call(rule);
      }
    }
    return texts_.within("[", rest, "]");
  }

  // ---- objects ----

  template <class = void>
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
      auto const rule = out_.add_rule("behind " + name);  // written once, used in two places
      out_.rules[at(rule)].expression = after;
      auto const here = out_.sequence({member, out_.call(rule)});
      if (required) first.clear();
      first.push_back(here);
      auto const next = out_.sequence({texts_.comma(), member, out_.call(rule)});
      after = required ? next : out_.choice({next, out_.call(rule)});
    }
    return texts_.within("{", out_.choice(first), "}");
  }

  template <class = void>
  static std::u32string decoded(std::string_view text) {
    std::u32string out;
    while (!text.empty()) {
      auto const [c, size] = read_utf8(text);
      out += c, text.remove_prefix(size);
    }
    return out;
  }

  struct Waiting {
    std::int32_t rule;
    Parts parts;
    std::int32_t nesting;
  };
  std::map<Parts, std::int32_t> rules_;
  std::vector<Waiting> waiting_;
};

}  // namespace detail

}  // namespace sluice::inline v0
