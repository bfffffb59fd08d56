// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether no value matches two schemas of a oneOf.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_conjunctions.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Recognises simple cases: by types, or by const or enum, of the values or of a property that all of them require. All
/// schemas are compared at once, and in pairs only where that does not separate them.
class JsonDisjoint : protected JsonConjunctions {
 protected:
  using JsonConjunctions::JsonConjunctions;

  /// Throws unless they are recognised as disjoint; names two that may share a value.
  template <class = void>
  void check_disjoint(JsonValue const& choices) const {
    auto const& schemas = list(choices);
    std::vector<std::vector<JsonValue const*>> sides;
    sides.reserve(schemas.size());
    for (auto const& schema : schemas) sides.push_back({&schema});
    if (all_disjoint(choices, sides, 0)) return;
    for (std::size_t i = 0; i < sides.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!all_disjoint(schemas[i], {sides[i], sides[j]}, 0))
          fail(schemas[i],
               "oneOf is supported where it is clear that no value fits two of its schemas: by their types, or by "
               "const or enum, of themselves or of a property that both require; not so schemas " +
                   std::to_string(j) + " and " + std::to_string(i));
  }

 private:
  /// Counts the work done: schemas that can only be told apart in pairs may form too many pairs.
  template <class = void>
  void look(JsonValue const& choices, std::size_t count) const {
    constexpr std::size_t most = 1'000'000;
    looked_ += count;
    if (looked_ > most)
      fail(choices,
           "oneOf has too many schemas for comparing each with each: a property that all of them require, with "
           "a const or enum of its own in each, would tell them apart");
  }

  /// A summary of a conjunction.
  struct Glance {
    Parts parts;
    std::uint32_t types = 0;
    bool listed = false;              // all values are in `values`
    std::vector<std::string> values;  // as keys
  };
  template <class = void>
  Glance glance(JsonValue const& choices, std::vector<JsonValue const*> const& schemas) const {
    Glance out;
    Conjunction of;
    for (auto const* const one : schemas) flatten(*one, of, 0);
    for (auto const& part : of.parts) {
      look(choices, 1 + part.schema->members.size());
      for (auto const* const name : {"enum", "required"})
        if (auto const* const own = part.schema->find(name)) look(choices, own->items.size());
    }
    out.parts = of.parts;
    if (of.nothing) return out;
    out.types = types_of(of.parts);
    if (auto const values = values_of(of.parts)) {
      std::uint32_t own = 0;
      for (auto const* const value : *values)
        if (auto const type = type_of(*value); (type & out.types) != 0) {
          own |= type, out.values.push_back(json_key(*value));
          look(choices, out.values.back().size() / 16);
        }
      out.types &= own, out.listed = true;
    }
    if ((out.types & number) != 0) out.types |= integer;
    return out;
  }

  /// Whether they are recognised as disjoint.
  /// \param sides  each a conjunction
  template <class = void>
  bool all_disjoint(JsonValue const& choices, std::vector<std::vector<JsonValue const*>> const& sides,
                    int depth) const {
    std::set<std::string> values;
    std::vector<Glance> objects;         // those that are not listed
    std::uint32_t listed = 0, rest = 0;  // types
    for (auto const& side : sides) {
      auto one = glance(choices, side);
      for (auto& value : one.values)
        if (!values.insert(std::move(value)).second) return false;
      if (one.listed) listed |= one.types;
      else {
        if ((one.types & rest & ~object) != 0) return false;
        rest |= one.types;
        if ((one.types & object) != 0) objects.push_back(std::move(one));
      }
    }
    if ((listed & rest) != 0) return false;
    if (objects.size() < 2) return true;
    if (depth > 4) return false;
    auto names = required(objects[0]);
    for (auto const& one : objects) {
      auto const own = required(one);
      std::erase_if(names, [&](std::string const& name) { return !own.contains(name); });
    }
    std::size_t tried = 0;
    return std::any_of(names.begin(), names.end(), [&](std::string const& name) {
      std::vector<std::vector<JsonValue const*>> parts;
      parts.reserve(objects.size());
      for (auto const& one : objects) parts.push_back(schemas_of(one, name, choices));
      return std::ranges::none_of(parts, &std::vector<JsonValue const*>::empty) && ++tried <= 100 &&
             all_disjoint(choices, parts, depth + 1);
    });
  }
  template <class = void>
  static std::set<std::string> required(Glance const& of) {
    std::set<std::string> names;
    for (auto const& part : of.parts)
      if (auto const* const own = part.schema->find("required"))
        for (auto const& name : own->items) names.insert(name.text);
    return names;
  }
  template <class = void>
  std::vector<JsonValue const*> schemas_of(Glance const& of, std::string const& name, JsonValue const& choices) const {
    std::vector<JsonValue const*> found;
    for (auto const& part : of.parts)
      if (auto const* const own = properties(*part.schema)) {
        look(choices, 1 + own->members.size() / 16);
        if (auto const* const value = own->find(name)) found.push_back(value);
      }
    return found;
  }

  mutable std::size_t looked_ = 0;
};

}  // namespace sluice::inline v0::detail
