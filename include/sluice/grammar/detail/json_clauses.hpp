// SPDX-License-Identifier: Apache-2.0
/// \file
/// JSON schemas of arrays and objects in disjunctive normal form.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_unevaluated.hpp>
#include <sluice/grammar/detail/json_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Expands conjunctions of schemas. A choice whose outcome is clear from the rest is made first (unit propagation), so
/// unions that a member's constant tells apart do not multiply.
class JsonClauses : public JsonUnevaluated {
 protected:
  using JsonUnevaluated::JsonUnevaluated;

  /// \param type  array or object
  SLUICE_LAZY std::vector<Clause> expand(Literals const& all_of, std::uint32_t type) {
    State begun;
    for (std::size_t i = 0; i < all_of.size(); ++i)
      begun.open.push_back({.one = all_of[i], .path = {static_cast<std::int32_t>(i)}, .source = all_of[i].schema});
    std::vector<Clause> out;
    std::size_t steps = 0;
    run(std::move(begun), type, out, steps, *all_of[0].schema);
    return out;
  }

  /// Whether schemas may contradict each other. One that contradicts itself is found when its rule is made.
  static bool doubtful(Literals const& all_of) {
    return all_of.size() > 1 || (all_of.size() == 1 && all_of[0].negated);
  }
  /// Whether it is clear that no value fits all of them.
  SLUICE_LAZY bool empty(Literals const& all_of) {
    if (all_of.empty()) return false;
    for (auto const& one : all_of)
      if (is_false(one) || std::find(all_of.begin(), all_of.end(), opposite(one)) != all_of.end()) return true;
    if (all_of.size() == 1 && all_of[0].schema->is(Kind::boolean)) return false;
    auto const [it, fresh] = empty_.try_emplace(all_of, false);
    if (!fresh) return it->second;
    if (depth_ > 12) return false;
    ++depth_;
    auto const found = find_empty(all_of);
    --depth_;
    return empty_[all_of] = found;
  }

 private:
  struct State {
    Clause clause{};
    std::vector<Atom> open{};
    std::vector<Ways> choices{};
    std::set<Literal> done{};
  };
  enum class Outcome : std::uint8_t { open, never, given };

  SLUICE_LAZY bool find_empty(Literals const& all_of) {
    auto const some = may_be(all_of);
    if (some == 0) return true;
    if (auto const values = listed(all_of)) return values->empty();
    JsonValue simple;
    if ((some & null) != 0 && fits(all_of, simple)) return false;
    simple.kind = Kind::boolean;
    if ((some & boolean) != 0 && fits(all_of, simple)) return false;
    simple.truth = true;
    if ((some & boolean) != 0 && fits(all_of, simple)) return false;
    try {
      if ((some & (number | integer)) != 0)
        if (auto const found = numbers(all_of); found == nullptr || !found->empty()) return false;
      if ((some & string) != 0) {
        std::vector<Flat> ways{{}};
        auto const known = flatten(all_of, ways);
        if (!known || !ways.empty()) {
          if (known && std::ranges::any_of(ways, [](Flat const& one) {
                return one.values.empty() && one.all_patterns.size() + one.formats.size() < 2;
              }))
            return false;
          if (auto const found = strings(all_of); found == nullptr || !found->empty()) return false;
        }
      }
      for (auto const type : {array, object})
        if ((some & type) != 0)
          for (auto const& clause : expand(all_of, type))
            if (possible(clause, type)) return false;
    } catch (Unsupported const&) {
      return false;
    }
    return true;
  }
  SLUICE_LAZY bool possible(Clause const& clause, std::uint32_t type) {
    if (type == object)
      return std::all_of(clause.members.begin(), clause.members.end(), [&](auto const& one) {
        if (!one.second.required) return true;
        auto const its = member(clause, one.first);
        return !doubtful(its) || !empty(its);
      });
    for (std::int64_t i = 0; i < (std::min<std::int64_t>)(clause.least, 8); ++i)
      if (auto const its = item(clause, i); doubtful(its) && empty(its)) return false;
    return true;
  }

  SLUICE_LAZY void run(State state, std::uint32_t type, std::vector<Clause>& out, std::size_t& steps,
                       JsonValue const& source) {
    for (;;) {
      if (++steps > 3000 || ++all_steps_ > 300'000)
        unsupported(source, "leads to too many combinations of schemas, which is not supported");
      while (!state.open.empty()) {
        auto const atom = std::move(state.open.back());
        state.open.pop_back();
        if (atom.kind == Atom::literal ? !split(state, atom, type) : !take(state.clause, atom)) return;
      }
      auto again = false;
      for (std::size_t i = 0; i < state.choices.size() && !again; ++i) {
        auto& ways = state.choices[i];
        auto given = false;
        std::erase_if(ways, [&](Way const& way) {
          auto const known = given ? Outcome::open : outcome(state, way, type);
          given = given || known == Outcome::given;
          return known == Outcome::never;
        });
        if (ways.empty() && !given) return;
        if (!given && ways.size() > 1) continue;
        if (!given) state.open = std::move(ways[0]);
        state.choices.erase(state.choices.begin() + static_cast<std::ptrdiff_t>(i));
        again = true;
      }
      if (again) continue;
      if (state.choices.empty()) {
        if (possible(state.clause, type)) out.push_back(std::move(state.clause));
        return;
      }
      auto const best = std::ranges::min_element(state.choices, {}, &Ways::size);
      auto const ways = std::move(*best);
      state.choices.erase(best);
      for (auto const& way : ways) {
        auto next = state;
        next.open = way;
        run(std::move(next), type, out, steps, source);
      }
      return;
    }
  }

  /// Takes a schema apart; false: it cannot hold.
  SLUICE_LAZY bool split(State& state, Atom const& atom, std::uint32_t type) {
    auto const& one = atom.one;
    if (is_true(one)) return true;
    if (is_false(one) || state.done.contains(opposite(one))) return false;
    if (!state.done.insert(one).second) return true;
    auto const& of = schema(*one.schema);
    Place at{&of, enter(one.scope, of), {}};
    Ways broken;
    for (auto const& part : of.parts) {
      at.path = deeper(atom.path, part.place);
      if (!one.negated && part.word == Word::dependencies) {
        if (type == object)
          for (auto const& [name, schema] : map(*part.value)) choose(state, dependency(name, schema, at));
        continue;
      }
      auto const other = part.word == Word::other_properties || part.word == Word::other_items;
      auto ways = other ? unevaluated(part, at, type, one.negated) : this->ways(part, at, type, one.negated);
      if (!one.negated) {
        if (ways.empty()) return false;
        choose(state, std::move(ways));
      } else if (std::ranges::any_of(ways, &Way::empty)) return true;
      else broken.insert(broken.end(), std::make_move_iterator(ways.begin()), std::make_move_iterator(ways.end()));
    }
    if (!one.negated) return true;
    if (broken.empty()) return false;
    choose(state, std::move(broken));
    return true;
  }
  SLUICE_LAZY static void choose(State& state, Ways ways) {
    if (ways.size() == 1) state.open.insert(state.open.end(), ways[0].begin(), ways[0].end());
    else state.choices.push_back(std::move(ways));
  }

  /// Whether a schema may say more of a type than that it is allowed.
  SLUICE_LAZY bool speaks(JsonValue const& value, std::uint32_t type) {
    return std::ranges::any_of(schema(value).parts, [&](Part const& part) {
      if (part.word < Word::type || part.word == Word::values || part.word == Word::constant) return true;
      auto const of_arrays = (part.word >= Word::items && part.word <= Word::unique) || part.word == Word::other_items;
      auto const of_objects =
          (part.word >= Word::properties && part.word <= Word::dependencies) || part.word == Word::other_properties;
      return type == array ? of_arrays : of_objects;
    });
  }
  SLUICE_LAZY Outcome outcome(State const& state, Way const& way, std::uint32_t type) {
    auto given = true;
    for (auto const& atom : way) {
      auto const one = outcome(state, atom, type);
      if (one == Outcome::never) return one;
      given = given && one == Outcome::given;
    }
    return given ? Outcome::given : Outcome::open;
  }
  SLUICE_LAZY Outcome outcome(State const& state, Atom const& atom, std::uint32_t type) {
    auto const& clause = state.clause;
    switch (atom.kind) {
      case Atom::literal: {
        if (is_true(atom.one) || state.done.contains(atom.one)) return Outcome::given;
        if (is_false(atom.one) || state.done.contains(opposite(atom.one))) return Outcome::never;
        auto positive = atom.one;
        positive.negated = false;
        if ((may_be(positive) & type) == 0) return atom.one.negated ? Outcome::given : Outcome::never;
        if (speaks(*atom.one.schema, type)) return Outcome::open;
        return atom.one.negated ? Outcome::never : Outcome::given;
      }
      case Atom::each:
      case Atom::some: {
        if (atom.names != nullptr) return Outcome::open;
        auto const it = clause.members.find(atom.name);
        auto const required = it != clause.members.end() && it->second.required;
        auto its = member(clause, atom.name);
        if (atom.kind == Atom::each) {
          if (std::all_of(atom.values.begin(), atom.values.end(), [&](Literal const& v) { return implied(its, v); }))
            return Outcome::given;
          if (!required) return Outcome::open;
          add(its, atom.values);
          return empty(its) ? Outcome::never : Outcome::open;
        }
        auto both = its;
        add(both, atom.values);
        if (empty(both)) return Outcome::never;
        auto const given = required && std::all_of(atom.values.begin(), atom.values.end(),
                                                   [&](Literal const& v) { return implied(its, v); });
        return given ? Outcome::given : Outcome::open;
      }
      case Atom::least:
        if (atom.from <= clause.least) return Outcome::given;
        return clause.most >= 0 && atom.from > clause.most ? Outcome::never : Outcome::open;
      case Atom::most:
        if (clause.most >= 0 && clause.most <= atom.from) return Outcome::given;
        return atom.from < clause.least ? Outcome::never : Outcome::open;
      default: return Outcome::open;
    }
  }
  /// Whether values that fit all of them fit one more.
  SLUICE_LAZY bool implied(Literals its, Literal const& one) {
    if (is_true(one) || std::find(its.begin(), its.end(), one) != its.end()) return true;
    add(its, {opposite(one)});
    return empty(its);
  }

  std::map<Literals, bool> empty_;
  int depth_ = 0;
  std::size_t all_steps_ = 0;
};

}  // namespace sluice::inline v0::detail
