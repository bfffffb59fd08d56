// SPDX-License-Identifier: Apache-2.0
/// \file
/// What JSON schemas show at a glance.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_scalars.hpp>
#include <sluice/grammar/detail/json_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Types, lists of values, and constants that tell schemas apart.
class JsonGlance : public JsonScalars {
 protected:
  using JsonScalars::JsonScalars;

  static bool is_false(Literal const& one) {
    return one.schema->is(JsonValue::Kind::boolean) && one.schema->truth == one.negated;
  }
  static bool is_true(Literal const& one) {
    return one.schema->is(JsonValue::Kind::boolean) && one.schema->truth != one.negated;
  }

  /// The types that a schema may allow, as far as its keywords show it.
  SLUICE_LAZY std::uint32_t may_be(Literal const& one, int depth = 0) {
    if (one.schema->is(Kind::boolean)) return is_false(one) ? 0u : std::uint32_t{all};
    auto const& of = schema(*one.schema);
    if (one.negated) {
      if (of.parts.empty()) return 0;
      if (of.parts.size() > 1 || of.parts[0].word != Word::type) return all;
      auto const some = types(*of.parts[0].value);
      return all & ~some;
    }
    std::uint32_t out = all;
    auto const scope = enter(one.scope, of);
    auto const sub = [&](JsonValue const& value) { return may_be({&value, false, scope}, depth + 1); };
    for (auto const& part : of.parts) {
      if (depth > 20) break;
      std::uint32_t some = 0;
      auto const& value = *part.value;
      switch (part.word) {
        case Word::type: out &= types(value); break;
        case Word::constant: out &= type_of(value); break;
        case Word::values:
          if (!value.is(Kind::array)) fail(value, "enum must be an array");
          for (auto const& v : value.items) some |= type_of(v);
          out &= some;
          break;
        case Word::ref:
        case Word::dynamic_ref:
        case Word::recursive_ref: out &= sub(target(of, part, scope)); break;
        case Word::all_of:
          for (auto const& v : list(value)) out &= sub(v);
          break;
        case Word::any_of:
        case Word::one_of:
          for (auto const& v : list(value)) some |= sub(v);
          out &= some;
          break;
        case Word::no: out &= may_be({&value, true, scope}, depth + 1); break;
        default: break;
      }
    }
    return out;
  }
  SLUICE_LAZY std::uint32_t may_be(Literals const& all_of) {
    std::uint32_t out = all;
    for (auto const& one : all_of) out &= may_be(one);
    return out;
  }
  /// The values that one of the schemas lists, as far as they fit all; null: none does.
  SLUICE_LAZY std::optional<std::vector<JsonValue const*>> listed(Literals const& all_of) {
    for (auto const& one : all_of) {
      if (one.negated) continue;
      auto exactly = all_of.size() == 1;
      auto found = listed(*one.schema, one.scope, exactly, 0);
      if (!found) continue;
      std::set<std::string> keys;
      std::erase_if(*found, [&](JsonValue const* value) {
        return (!exactly && !fits(all_of, *value)) || !keys.insert(json_key(*value)).second;
      });
      return found;
    }
    return {};
  }

  /// Whether objects of these schemas have a member in common that tells all of them apart by its constant.
  SLUICE_LAZY bool told_apart(std::vector<JsonValue const*> const& schemas, std::int32_t scope) {
    if (schemas.size() < 2) return true;
    auto const of = [&](JsonValue const& value, std::string const& name) {
      Tags tags;
      find_tags(value, scope, name, tags, 0);
      return tags;
    };
    Tags first;
    find_tags(*schemas[0], scope, {}, first, 0);
    return std::ranges::any_of(first.required, [&](std::string const& name) {
      std::set<std::string> keys;
      return std::ranges::all_of(schemas, [&](JsonValue const* one) {
        auto const tags = of(*one, name);
        if (!tags.required.contains(name) || !tags.value) return false;
        auto exactly = true;
        auto const values = listed(*tags.value->schema, tags.value->scope, exactly, 0);
        if (!values) return false;
        std::set<std::string> own;
        for (auto const* const value : *values) own.insert(json_key(*value));
        return std::ranges::all_of(own, [&](std::string const& key) { return keys.insert(key).second; });
      });
    });
  }

 private:
  struct Tags {
    std::set<std::string> required{};
    std::optional<Literal> value{};  // of the member looked for
  };
  SLUICE_LAZY void find_tags(JsonValue const& value, std::int32_t scope, std::string const& name, Tags& tags,
                             int depth) {
    if (!value.is(Kind::object) || depth > 20) return;
    auto const& its = schema(value);
    scope = enter(scope, its);
    for (auto const& part : its.parts) {
      if (part.word == Word::required && part.value->is(Kind::array))
        for (auto const& one : part.value->items) tags.required.insert(one.text);
      if (part.word == Word::ref) find_tags(target(its, part, scope), scope, name, tags, depth + 1);
      if (part.word == Word::all_of)
        for (auto const& one : list(*part.value)) find_tags(one, scope, name, tags, depth + 1);
      if (part.word != Word::properties || tags.value) continue;
      auto const* const properties = own(its, "properties");
      auto const* const one = properties == nullptr ? nullptr : properties->find(name);
      if (one != nullptr) tags.value = Literal{one, false, scope};
    }
  }

  /// \param exactly  becomes false if the schema may say more
  SLUICE_LAZY std::optional<std::vector<JsonValue const*>> listed(JsonValue const& value, std::int32_t scope,
                                                                  bool& exactly, int depth) {
    if (!value.is(Kind::object) || depth > 20) return {};
    auto const& of = schema(value);
    scope = enter(scope, of);
    exactly = exactly && of.parts.size() == 1;
    for (auto const& part : of.parts) {
      if (part.word == Word::constant) return std::vector{part.value};
      if (part.word == Word::values) {
        std::vector<JsonValue const*> out;
        for (auto const& one : part.value->items) out.push_back(&one);
        return out;
      }
      std::optional<std::vector<JsonValue const*>> found;
      if (part.word == Word::ref) found = listed(target(of, part, scope), scope, exactly, depth + 1);
      if (part.word == Word::all_of) {
        exactly = exactly && part.value->items.size() == 1;
        for (auto const& one : list(*part.value))
          if (!found) found = listed(one, scope, exactly, depth + 1);
      }
      if (part.word == Word::any_of || part.word == Word::one_of) {
        found.emplace();
        std::map<std::string, int> times;
        for (auto const& one : list(*part.value)) {
          auto const its = listed(one, scope, exactly, depth + 1);
          if (its && found) found->insert(found->end(), its->begin(), its->end());
          else found.reset();
          if (!its) break;
          std::set<std::string> own;
          for (auto const* const v : *its) own.insert(json_key(*v));
          for (auto const& key : own) ++times[key];
        }
        // What two schemas list, each of them without more ado, fits two.
        if (found && exactly && part.word == Word::one_of)
          std::erase_if(*found, [&](JsonValue const* v) { return times[json_key(*v)] > 1; });
      }
      if (found) return found;
    }
    return {};
  }
};

}  // namespace sluice::inline v0::detail
