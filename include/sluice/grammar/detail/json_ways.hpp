// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a keyword of a JSON schema asks of arrays and objects, and what its opposite asks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_atoms.hpp>
#include <sluice/grammar/detail/json_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

class JsonWays : public JsonAtoms {
 protected:
  using JsonAtoms::JsonAtoms;
  /// Where a keyword stands.
  struct Place {
    Schema const* of;
    std::int32_t scope;
    Path path;
  };
  static constexpr std::int32_t behind = 1 << 29;  // in paths: names that are only required come behind the others

  static Atom literal(JsonValue const& schema, bool negated, Place const& at) {
    return {.one = {&schema, negated, at.scope}, .path = at.path, .source = &schema};
  }
  Literal within(JsonValue const& schema, bool negated, Place const& at) const { return {&schema, negated, at.scope}; }
  static Atom named(Atom::Kind kind, std::string const& name, Literals values, Path path) {
    return {.kind = kind, .name = name, .values = std::move(values), .path = std::move(path)};
  }
  static Path deeper(Path path, std::int32_t step) {
    path.push_back(step);
    return path;
  }
  static Path late(Path const& path) {
    Path out{behind};
    out.insert(out.end(), path.begin(), path.end());
    return out;
  }
  Atom absent(std::string const& name, Place const& at) const {
    return named(Atom::each, name, {never()}, late(at.path));
  }
  static Atom present(std::string const& name, Place const& at) { return named(Atom::some, name, {}, late(at.path)); }

  /// The ways in which one dependency is obeyed.
  SLUICE_LAZY Ways dependency(std::string const& name, JsonValue const& one, Place const& at) const {
    if (!one.is(Kind::array)) return {{absent(name, at)}, {literal(one, false, at)}};
    Way wanted;
    for (auto const& other : one.items) {
      if (!other.is(Kind::string)) fail(other, "must be a name");
      wanted.push_back(present(other.text, at));
    }
    return {{absent(name, at)}, std::move(wanted)};
  }
  /// The ways in which a keyword other than dependencies is obeyed, or any is not. Keywords for other types are obeyed by every value.
  /// \param type  array or object
  SLUICE_LAZY Ways ways(Part const& part, Place const& at, std::uint32_t type, bool negated) {
    auto const& value = *part.value;
    auto const sub = [&](JsonValue const& one, bool no) { return literal(one, no != negated, at); };
    auto const each = [&](std::vector<Atom> atoms) {  // all of them, or the opposite of one
      if (!negated) return Ways{std::move(atoms)};
      Ways out;
      for (auto& one : atoms) out.push_back({std::move(one)});
      return out;
    };
    auto const truth = [&](bool obeyed) { return obeyed == negated ? Ways{} : Ways{{}}; };
    std::vector<Atom> atoms;
    switch (part.word) {
      case Word::ref:
      case Word::dynamic_ref:
      case Word::recursive_ref: return {{sub(target(*at.of, part, at.scope), false)}};
      case Word::all_of:
      case Word::any_of: {
        for (auto const& one : list(value)) {
          atoms.push_back(literal(one, negated, at));
          atoms.back().path.push_back(static_cast<std::int32_t>(atoms.size()));
        }
        if (part.word == Word::all_of) return each(std::move(atoms));
        if (negated) return {std::move(atoms)};
        Ways out;
        for (auto& one : atoms) out.push_back({std::move(one)});
        return out;
      }
      case Word::one_of: return one_of(value, at, type, negated);
      case Word::no: return {{sub(value, true)}};
      case Word::condition: {
        auto const *then = own(*at.of, "then"), *otherwise = own(*at.of, "else");
        if (then == nullptr && otherwise == nullptr) return truth(true);
        Ways out;
        if (negated) {
          if (then != nullptr) out.push_back({literal(value, false, at), literal(*then, true, at)});
          if (otherwise != nullptr) out.push_back({literal(value, true, at), literal(*otherwise, true, at)});
          return out;
        }
        if (then != nullptr) out.push_back({literal(value, false, at), literal(*then, false, at)});
        else out.push_back({literal(value, false, at)});
        if (otherwise != nullptr) out.push_back({literal(value, true, at), literal(*otherwise, false, at)});
        else out.push_back({literal(value, true, at)});
        return out;
      }
      case Word::type: return truth((types(value) & type) != 0);
      case Word::values:
      case Word::constant: {
        Ways out;
        for (auto const& one : part.word == Word::constant ? std::span(&value, 1) : std::span(value.items)) {
          if (type_of(one) != type) continue;
          Atom const exactly{.one = only(one), .path = at.path, .source = &value};
          if (negated) atoms.push_back(exactly), atoms.back().one.negated = true;
          else out.push_back({exactly});
        }
        return negated ? Ways{std::move(atoms)} : out;
      }
      default: return type == object ? object_ways(part, at, negated) : array_ways(part, at, negated);
    }
  }

 private:
  SLUICE_LAZY Ways one_of(JsonValue const& value, Place const& at, std::uint32_t type, bool negated) {
    std::vector<JsonValue const*> schemas;  // that may matter
    for (auto const& one : list(value))
      if ((may_be({&one, false, at.scope}) & type) != 0) schemas.push_back(&one);
    auto const apart = type == object && told_apart(schemas, at.scope);
    if (!apart && schemas.size() > 300)
      unsupported(
          value, "oneOf has too many schemas for comparing each with each, which is not supported: a property that all "
                 "of them require, with a const or enum of its own in each, would tell them apart");
    Ways out;
    for (std::size_t i = 0; !negated && i < schemas.size(); ++i) {
      Way way{literal(*schemas[i], false, at)};
      way[0].path.push_back(static_cast<std::int32_t>(i));
      for (std::size_t k = 0; !apart && k < schemas.size(); ++k)
        if (k != i) way.push_back(literal(*schemas[k], true, at));
      out.push_back(std::move(way));
    }
    if (!negated) return out;
    out.emplace_back();
    for (auto const* const one : schemas) out.back().push_back(literal(*one, true, at));
    for (std::size_t i = 0; !apart && i < schemas.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        out.push_back({literal(*schemas[k], false, at), literal(*schemas[i], false, at)});
    return out;
  }

  SLUICE_LAZY Ways counts(Part const& part, bool at_least, bool negated) const {
    auto n = count(*part.value);
    if (negated) {
      if (at_least && n == 0) return {};
      n += at_least ? -1 : 1;
    }
    return {{{.kind = at_least != negated ? Atom::least : Atom::most, .from = n, .source = part.value}}};
  }

  SLUICE_LAZY Ways object_ways(Part const& part, Place const& at, bool negated) {
    auto const& value = *part.value;
    auto const kind = negated ? Atom::some : Atom::each;
    switch (part.word) {
      case Word::least_properties:
      case Word::most_properties: return counts(part, part.word == Word::least_properties, negated);
      case Word::required: {
        Ways out;
        if (!negated) out.emplace_back();
        if (value.is(Kind::boolean) && any_draft()) {  // draft 3
          ignore("required as a boolean");
          return negated ? Ways{} : Ways{{}};
        }
        if (!value.is(Kind::array)) fail(value, "required must be an array");
        for (auto const& name : value.items) {
          if (!name.is(Kind::string)) fail(name, "must be a name");
          if (negated) out.push_back({absent(name.text, at)});
          else {
            out[0].push_back(present(name.text, at));
            out[0].back().path.push_back(static_cast<std::int32_t>(out[0].size()));
          }
        }
        return out;
      }
      case Word::property_names: {
        if (value.is(Kind::boolean) && value.truth) return negated ? Ways{} : Ways{{}};
        Names names;
        names.texts = {within(value, true, at)};
        return {{{.kind = kind,
                  .names = std::make_shared<Names const>(std::move(names)),
                  .values = negated ? Literals{} : Literals{never()},
                  .path = at.path,
                  .source = &value}}};
      }
      case Word::dependencies: return broken_dependencies(value, at);
      case Word::properties: {
        std::vector<Atom> atoms = property_atoms(at, kind, negated);
        if (!negated) return {std::move(atoms)};
        Ways out;
        for (auto& one : atoms) out.push_back({std::move(one)});
        return out;
      }
      default: return negated ? Ways{} : Ways{{}};
    }
  }
  SLUICE_LAZY std::vector<Atom> property_atoms(Place const& at, Atom::Kind kind, bool negated) {
    std::vector<Atom> atoms;
    auto const *properties = own(*at.of, "properties"), *patterns = own(*at.of, "patternProperties"),
               *others = own(*at.of, "additionalProperties");
    auto const holds = [&](JsonValue const& schema) { return Literals{within(schema, negated, at)}; };
    if (properties != nullptr)
      for (auto const& [name, schema] : map(*properties))
        atoms.push_back(named(kind, name, holds(schema), deeper(at.path, static_cast<std::int32_t>(atoms.size()))));
    if (patterns != nullptr)
      for (auto const& [text, schema] : map(*patterns)) {
        Names names;
        names.patterns.emplace_back(&schema, text);
        atoms.push_back({.kind = kind,
                         .names = std::make_shared<Names const>(std::move(names)),
                         .values = holds(schema),
                         .path = at.path,
                         .source = &schema});
      }
    if (others != nullptr && !(others->is(Kind::boolean) && others->truth && !negated))
      atoms.push_back(
          {.kind = kind, .names = other_names(*at.of), .values = holds(*others), .path = at.path, .source = others});
    return atoms;
  }
  /// Names that a schema's properties do not list.
  SLUICE_LAZY NamesOf other_names(Schema const& of) {
    auto const [it, fresh] = others_.try_emplace(of.source);
    if (!fresh) return it->second;
    Names names;
    names.others = true;
    list_names(of, names);
    std::sort(names.listed.begin(), names.listed.end());
    return it->second = std::make_shared<Names const>(std::move(names));
  }

 protected:
  SLUICE_LAZY void list_names(Schema const& of, Names& names) const {
    if (auto const* const properties = own(of, "properties"))
      for (auto const& [name, schema] : map(*properties)) names.listed.push_back(name);
    if (auto const* const patterns = own(of, "patternProperties"))
      for (auto const& [text, schema] : map(*patterns)) names.patterns.emplace_back(&schema, text);
  }

 private:
  /// Dependencies of which one is not obeyed.
  SLUICE_LAZY Ways broken_dependencies(JsonValue const& value, Place const& at) {
    Ways out;
    for (auto const& [name, one] : map(value)) {
      if (!one.is(Kind::array)) out.push_back({present(name, at), literal(one, true, at)});
      else
        for (auto const& other : one.items) out.push_back({present(name, at), absent(other.text, at)});
    }
    return out;
  }

  SLUICE_LAZY Ways array_ways(Part const& part, Place const& at, bool negated) {
    auto const& value = *part.value;
    switch (part.word) {
      case Word::least_items:
      case Word::most_items: return counts(part, part.word == Word::least_items, negated);
      case Word::unique:
        if (!value.is(Kind::boolean)) fail(value, "must be true or false");
        if (!value.truth) return negated ? Ways{} : Ways{{}};
        if (negated) unsupported(value, "uniqueItems under `not` is not supported");
        return {{{.kind = Atom::unique, .source = &value}}};
      case Word::items: {
        auto const [first, rest] = items(*at.of);
        auto const size = first == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(first->items.size());
        Ways out;
        if (!negated) out.emplace_back();
        for (std::int64_t i = 0; i < size; ++i) {
          auto const& one = first->items[static_cast<std::size_t>(i)];
          Atom item{
              .kind = Atom::each_item, .values = {within(one, negated, at)}, .from = i, .until = i + 1, .source = &one};
          if (negated) out.push_back({{.kind = Atom::least, .from = i + 1, .source = &one}, std::move(item)});
          else if (!is_true(item.values[0])) out[0].push_back(std::move(item));
        }
        if (rest == nullptr) return out;
        Atom others{.kind = negated ? Atom::some_item : Atom::each_item,
                    .values = {within(*rest, negated, at)},
                    .from = size,
                    .until = -1,
                    .source = rest};
        if (is_true(others.values[0]) && !negated) return out;
        if (negated) out.push_back({std::move(others)});
        else out[0].push_back(std::move(others));
        return out;
      }
      case Word::contains: {
        auto const [least, most] = this->JsonValidator::contains(*at.of);
        auto const between = [&](std::int64_t from, std::int64_t until) {
          return Way{
              {.kind = Atom::holds, .one = within(value, false, at), .from = from, .until = until, .source = &value}};
        };
        if (!negated) return {between(least, most)};
        Ways out;
        if (least > 0) out.push_back(between(0, least - 1));
        if (most >= 0) out.push_back(between(most + 1, -1));
        return out;
      }
      default: return negated ? Ways{} : Ways{{}};
    }
  }

  std::map<JsonValue const*, NamesOf> others_;
};

}  // namespace sluice::inline v0::detail
