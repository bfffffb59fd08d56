// SPDX-License-Identifier: Apache-2.0
/// \file
/// What JSON schemas ask of arrays and objects, in a normal form.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_glance.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The parts of the normal form: what holds for all members or items of a kind, what some member or item must fit, and
/// how many there are.
class JsonAtoms : public JsonGlance {
 protected:
  using JsonGlance::JsonGlance;

  /// A set of names: those listed, or that match a pattern or fit schemas; or all others.
  struct Names {
    bool others = false;
    std::vector<std::string> listed{};  // sorted
    std::vector<std::pair<JsonValue const*, std::string>> patterns{};
    Literals texts{};
    bool simple() const { return patterns.empty() && texts.empty(); }
  };
  using NamesOf = std::shared_ptr<Names const>;
  using Path = std::vector<std::int32_t>;  // orders names as they stand in the schema

  struct Atom {
    enum Kind : std::uint8_t { literal, each, some, least, most, each_item, some_item, holds, unique };
    Kind kind = literal;
    Literal one{};    // literal, holds
    NamesOf names{};  // each, some; null: only `name`
    std::string name{};
    Literals values{};                 // each, some: what the value must fit
    std::int64_t from = 0, until = 0;  // counts; items from .. until, -1: all that follow
    Path path{};
    JsonValue const* source = nullptr;
  };
  using Way = std::vector<Atom>;
  using Ways = std::vector<Way>;  // one of them must hold

  struct Member {
    Literals all{};
    bool required = false;
    Path path{};
  };
  struct Clause {
    std::map<std::string, Member> members{};
    std::vector<Atom> each{}, some{};  // members, or items
    std::vector<Atom> contains{};
    std::int64_t least = 0, most = -1;
    JsonValue const* unique = nullptr;
  };

  Literal never() const { return {&never_}; }
  static Literal opposite(Literal one) {
    one.negated = !one.negated;
    return one;
  }
  static void add(Literals& to, Literals const& more) {
    for (auto const& one : more)
      if (!is_true(one) && std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
  }

  SLUICE_LAZY bool contains(Names const& names, std::string const& name) {
    auto in = std::binary_search(names.listed.begin(), names.listed.end(), name);
    if (!in && !names.patterns.empty()) {
      auto const text = decoded(name);
      in = std::any_of(names.patterns.begin(), names.patterns.end(), [&](auto const& one) {
        auto const texts = pattern(*one.first, one.second);
        return texts == nullptr || texts->matches(text);
      });
    }
    if (!in && !names.texts.empty()) {
      JsonValue value;
      value.kind = JsonValue::Kind::string, value.text = name;
      in = fits(names.texts, value);
    }
    return in != names.others;
  }
  /// As a set, without what is listed.
  SLUICE_LAZY Texts texts_of(Names const& names) {
    Texts some = share(TextAutomaton{});
    auto const also = [&](Texts const& more) {
      if (some != nullptr) some = more == nullptr ? more : share(*some | *more);
    };
    for (auto const& [source, text] : names.patterns) also(pattern(*source, text));
    if (!names.texts.empty()) also(strings(names.texts));
    if (!names.others) return some;
    return share(some == nullptr ? TextAutomaton{} : TextAutomaton::anything() - *some);
  }
  static bool applies(Atom const& atom, std::string const& name) { return atom.names == nullptr && atom.name == name; }

  /// What the value of a member must fit.
  SLUICE_LAZY Literals member(Clause const& clause, std::string const& name) {
    Literals out;
    if (auto const it = clause.members.find(name); it != clause.members.end()) add(out, it->second.all);
    for (auto const& one : clause.each)
      if (contains(*one.names, name)) add(out, one.values);
    return out;
  }
  /// What the i-th item must fit.
  static Literals item(Clause const& clause, std::int64_t i) {
    Literals out;
    for (auto const& one : clause.each)
      if (i >= one.from && (one.until < 0 || i < one.until)) add(out, one.values);
    return out;
  }

  /// False: nothing obeys.
  SLUICE_LAZY bool take(Clause& clause, Atom const& atom) {
    switch (atom.kind) {
      case Atom::literal: break;
      case Atom::each:
      case Atom::some:
        if (atom.names == nullptr) {
          auto const [it, fresh] = clause.members.try_emplace(atom.name);
          auto& own = it->second;
          if (fresh || atom.path < own.path) own.path = atom.path;
          add(own.all, atom.values);
          own.required = own.required || atom.kind == Atom::some;
          return !own.required || std::none_of(own.all.begin(), own.all.end(), is_false);
        }
        for (auto const& name : atom.names->listed) clause.members.try_emplace(name, Member{.path = {1 << 30}});
        (atom.kind == Atom::each ? clause.each : clause.some).push_back(atom);
        break;
      case Atom::least: clause.least = (std::max)(clause.least, atom.from); break;
      case Atom::most: clause.most = clause.most < 0 ? atom.from : (std::min)(clause.most, atom.from); break;
      case Atom::each_item:
        clause.each.push_back(atom);
        if (std::any_of(atom.values.begin(), atom.values.end(), is_false))
          clause.most = clause.most < 0 ? atom.from : (std::min)(clause.most, atom.from);
        break;
      case Atom::some_item: clause.some.push_back(atom); break;
      case Atom::holds: clause.contains.push_back(atom); break;
      case Atom::unique: clause.unique = atom.source; break;
    }
    return clause.most < 0 || clause.least <= clause.most;
  }

  // ---- synthetic schemas ----

  /// A schema that only this array or object fits.
  SLUICE_LAZY Literal only(JsonValue const& value) {
    auto const [it, fresh] = only_.try_emplace(&value, nullptr);
    if (fresh) {
      auto const text = [](std::string name) {
        JsonValue out;
        out.kind = JsonValue::Kind::string, out.text = std::move(name);
        return out;
      };
      auto const wrapped = [](std::string name, JsonValue of) {
        JsonValue out;
        out.kind = JsonValue::Kind::object, out.place = of.place;
        out.members.emplace_back(std::move(name), std::move(of));
        return out;
      };
      JsonValue schema, list, no;
      schema.kind = JsonValue::Kind::object, schema.place = value.place;
      list.kind = JsonValue::Kind::array, no.kind = JsonValue::Kind::boolean;
      auto const is_array = value.is(JsonValue::Kind::array);
      schema.members.emplace_back("type", text(is_array ? "array" : "object"));
      if (is_array) {
        for (auto const& one : value.items) list.items.push_back(wrapped("enum", list_of(one)));
        JsonValue size;
        size.kind = JsonValue::Kind::number, size.text = std::to_string(value.items.size());
        if (!list.items.empty()) schema.members.emplace_back("items", std::move(list));
        schema.members.emplace_back("minItems", size);
        schema.members.emplace_back("maxItems", size);
      } else {
        JsonValue properties;
        properties.kind = JsonValue::Kind::object;
        for (auto const& [name, one] : value.members) {
          properties.members.emplace_back(name, wrapped("enum", list_of(one)));
          list.items.push_back(text(name));
        }
        schema.members.emplace_back("properties", std::move(properties));
        schema.members.emplace_back("required", std::move(list));
        schema.members.emplace_back("additionalProperties", no);
      }
      it->second = &keep(std::move(schema));
    }
    return {it->second};
  }
  SLUICE_LAZY static JsonValue list_of(JsonValue const& one) {
    JsonValue out;
    out.kind = JsonValue::Kind::array, out.items.push_back(one);
    return out;
  }

  /// Keeps a schema made here; it is read as a schema of no particular draft.
  SLUICE_LAZY JsonValue const& keep(JsonValue schema) {
    made_.push_back(std::move(schema));
    return made(made_.back());
  }
  /// Keeps a schema made of parts of another.
  SLUICE_LAZY JsonValue const& keep(JsonValue schema, Schema const& of) {
    if (several()) unsupported(*of.source, "unevaluatedItems beside contains, in a document with several resources");
    made_.push_back(std::move(schema));
    return made_.back();
  }

 private:
  std::deque<JsonValue> made_;
  std::map<JsonValue const*, JsonValue const*> only_;
  JsonValue never_ = [] {
    JsonValue out;
    out.kind = JsonValue::Kind::boolean;
    return out;
  }();
};

}  // namespace sluice::inline v0::detail
