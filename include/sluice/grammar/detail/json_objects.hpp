// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rules for objects that JSON schemas accept.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/json_rules.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Members come in the order of the schema, then any others; or in any order.
class JsonObjects : public JsonRules {
 protected:
  using JsonRules::JsonRules;

  SLUICE_LAZY Id object_of(Literals const& all_of, std::int32_t nesting) {
    std::vector<Id> choices;
    for (auto const& clause : expand(all_of, object))
      if (auto const one = Objects{*this, clause, *all_of[0].schema, nesting + 1}.all(); !is_nothing(one))
        choices.push_back(one);
    return out_.choice(choices);
  }

 private:
  /// A member that may come next: of one name, or of a class of names.
  struct Candidate {
    Id name = -1;
    Literals values{};
    bool required = false, one = false;
    std::uint32_t some = 0;  // which of the clause's demands it may meet
    Id member = -1;          // meeting none
  };
  struct Objects {
    using State = std::tuple<std::size_t, std::int64_t, std::uint32_t, bool>;  // name, count, demands met, first
    JsonObjects& x;
    Clause const& clause;
    JsonValue const& source;
    std::int32_t nesting;
    std::vector<Candidate> known{}, others{};
    std::int64_t least = 0, most = -1;
    struct Hash {
      std::size_t operator()(State const& state) const {
        auto const& [name, count, met, first] = state;
        auto const h =
            (name ^ static_cast<std::uint64_t>(count) << 20 ^ std::uint64_t{met} << 40) * 0x9E3779B97F4A7C15u;
        return cast<std::size_t>(h ^ h >> 29 ^ (first ? 1u : 0u));
      }
    };
    std::unordered_map<State, Id, Hash> rules{};

    Id all() {
      if (clause.some.size() > 16) x.unsupported(source, "asks too much of members, which is not supported");
      if (!find_known()) return x.out_.nothing();
      find_others();
      least = clause.least, most = clause.most;
      auto const of_few = known.size() < 2 && others.size() < 2;
      auto const needed = std::count_if(known.begin(), known.end(), [](Candidate const& c) { return c.required; });
      if (least <= needed) least = 0;
      if (others.empty() && most >= static_cast<std::int64_t>(known.size())) most = -1;
      if (most >= 0 && most < needed) return x.out_.nothing();
      auto const counted = least > 0 || most >= 0 || !clause.some.empty();
      auto const any = x.texts_.style().any_order;
      if (any && !counted && known.size() > 5 && needed <= 10) return free_order();
      if (!counted && (!any || known.empty() || known.size() > 5)) return simple();
      if (!of_few) {  // each comes in many places
        for (auto& one : known) one.member = x.new_rule("a member", one.member);
        for (auto& one : others) one.member = x.new_rule("another member", one.member);
      }
      auto const body = any && known.size() <= 10 && !known.empty() ? any_order(0, 0, 0) : from(0, 0, 0, true);
      auto const empty = needed == 0 && least == 0 && clause.some.empty();
      return x.texts_.within("{", body, "}", empty);
    }

    SLUICE_LAZY Id member(Candidate const& one, std::uint32_t meets) {
      auto values = one.values;
      for (std::size_t i = 0; i < clause.some.size(); ++i)
        if ((meets >> i & 1) != 0) add(values, clause.some[i].values);
      if (JsonObjects::doubtful(values) && x.empty(values)) return x.out_.nothing();
      auto const value = x.rule_of(std::move(values), nesting);
      return x.is_nothing(value) ? value : x.texts_.member(one.name, value);
    }

    SLUICE_LAZY bool find_known() {
      std::vector<std::pair<Path const*, std::string const*>> order;
      for (auto const& [name, member] : clause.members) order.emplace_back(&member.path, &name);
      std::sort(order.begin(), order.end(), [](auto const& a, auto const& b) {
        return std::tie(*a.first, *a.second) < std::tie(*b.first, *b.second);
      });
      for (auto const& [path, name] : order) {
        Candidate one{.values = x.member(clause, *name), .required = clause.members.at(*name).required, .one = true};
        for (std::size_t i = 0; i < clause.some.size(); ++i)
          if (x.contains(*clause.some[i].names, *name)) one.some |= std::uint32_t{1} << i;
        auto const never = std::any_of(one.values.begin(), one.values.end(), is_false) ||
                           (!one.required && JsonObjects::doubtful(one.values) && x.empty(one.values));
        if (never && one.required) return false;
        if (never) continue;
        one.name = x.texts_.string(std::string_view(*name));
        one.member = member(one, 0);
        known.push_back(std::move(one));
      }
      return true;
    }
    /// Divides the other names by what is asked of them.
    SLUICE_LAZY void find_others() {
      struct Class {
        Texts names;  // null: all
        Literals values{};
        std::uint32_t some = 0;
        bool whole = true;
      };
      std::vector<Class> classes{{nullptr}};
      auto const split = [&](Atom const& atom, auto const& mark) {
        if (atom.names->simple()) {
          if (!atom.names->others) return;
          for (auto& one : classes) mark(one);
          return;
        }
        auto const in = x.texts_of(*atom.names);
        std::vector<Class> out;
        for (auto const& one : classes) {
          auto const inside = in == nullptr ? one.names : one.names == nullptr ? in : share(*one.names & *in);
          auto const rest = in == nullptr
                                ? share(TextAutomaton{})
                                : share((one.names == nullptr ? TextAutomaton::anything() : *one.names) - *in);
          if (inside == nullptr || !inside->empty()) {
            out.push_back(one);
            out.back().names = inside;
            mark(out.back());
          }
          if (rest == nullptr || !rest->empty()) {
            out.push_back(one);
            out.back().names = rest;
          }
        }
        classes = std::move(out);
        if (classes.size() > 200) x.unsupported(*atom.source, "patternProperties overlap in too many ways");
      };
      try {
        for (auto const& one : clause.each) split(one, [&](Class& c) { add(c.values, one.values); });
        for (std::size_t i = 0; i < clause.some.size(); ++i)
          split(clause.some[i], [&](Class& c) { c.some |= std::uint32_t{1} << i; });
        std::erase_if(classes, [&](Class const& c) { return x.empty(c.values); });
        if (classes.empty()) return;
        std::vector<std::string> taken;
        taken.reserve(clause.members.size());
        for (auto const& [name, member] : clause.members) taken.push_back(name);
        Texts free;
        if (classes.size() > 1 || classes[0].names != nullptr) {
          std::vector<std::u32string> words;
          words.reserve(taken.size());
          for (auto const& name : taken) words.push_back(decoded(name));
          free = share(TextAutomaton::but(std::move(words)));
        }
        for (auto& one : classes) {
          auto const names = one.names == nullptr ? free : free == nullptr ? one.names : share(*one.names & *free);
          if (names != nullptr && names->empty()) continue;
          Candidate other{.name = x.new_rule("another name",
                                             names == nullptr ? x.texts_.string_but(taken) : x.texts_.string(*names)),
                          .values = std::move(one.values),
                          .some = one.some};
          other.member = member(other, 0);
          if (!x.is_nothing(other.member)) others.push_back(std::move(other));
        }
      } catch (std::length_error const& e) {
        x.unsupported(source, "names lead to " + std::string(e.what()));
      }
    }

    /// Each name is written at most once, and nothing is counted.
    SLUICE_LAZY Id simple() {
      auto& out = x.out_;
      auto after = out.empty();
      std::vector<Id> first;
      auto empty = true;
      if (!others.empty()) {
        std::vector<Id> choices;
        for (auto const& one : others) choices.push_back(one.member);
        auto const any = x.new_rule("another member", out.choice(choices));
        after = out.repeat(out.sequence({x.texts_.comma(), any}), 0, -1);
        first.push_back(out.sequence({any, after}));
      }
      for (auto i = known.size(); i-- > 0;) {
        auto const& [name, values, required, one, some, member] = known[i];
        auto const rest = i + 1 == known.size() && others.empty() ? after : x.new_rule("behind a member", after);
        if (required) first.clear(), empty = false;
        first.push_back(out.sequence({member, rest}));
        auto const next = out.sequence({x.texts_.comma(), member, rest});
        after = required ? next : out.choice({next, rest});
      }
      if (first.empty()) return x.texts_.within("{", out.empty(), "}", false);
      return x.texts_.within("{", out.choice(first), "}", empty);
    }

    /// In any order. Only what is required is kept track of; of a name that comes twice, JSON does not say what it means.
    SLUICE_LAZY Id free_order() {
      auto& out = x.out_;
      std::vector<Id> needed, free;
      for (auto const& one : known) (one.required ? needed : free).push_back(one.member);
      for (auto const& one : others) free.push_back(one.member);
      auto const loop = free.empty() ? out.nothing() : x.new_rule("a member", out.choice(free));
      auto const more = free.empty() ? out.empty() : out.repeat(out.sequence({x.texts_.comma(), loop}), 0, -1);
      std::vector<Id> behind(std::size_t{1} << needed.size());  // [set of those that have been written]
      auto const all = behind.size() - 1;
      behind[all] = more;
      for (auto& one : needed) one = x.new_rule("a member", one);
      for (auto set = all; set-- > 0;) {
        std::vector<Id> choices;
        for (std::size_t i = 0; i < needed.size(); ++i)
          if ((set >> i & 1) == 0) choices.push_back(out.sequence({needed[i], behind[set | std::size_t{1} << i]}));
        behind[set] = x.new_rule("members", out.sequence({more, x.texts_.comma(), out.choice(choices)}));
      }
      std::vector<Id> first;
      if (!free.empty()) first.push_back(out.sequence({loop, behind[0]}));
      for (std::size_t i = 0; i < needed.size(); ++i)
        first.push_back(out.sequence({needed[i], behind[std::size_t{1} << i]}));
      return x.texts_.within("{", out.choice(first), "}", needed.empty());
    }

    /// What may follow, with a comma where it is not the first.
    SLUICE_LAZY Id from(std::size_t i, std::int64_t count, std::uint32_t met, bool first) {
      if (most < 0) count = (std::min)(count, least);
      auto const [it, fresh] = rules.try_emplace({i, count, met, first}, -1);
      if (!fresh) return it->second;
      auto const rule = x.out_.add_rule("members");
      it->second = x.out_.call(rule);
      check();
      auto const here = it->second;
      Id body = -1;
      if (i == known.size()) body = more(count, met, first);
      else {
        std::vector<Id> choices;
        auto const& one = known[i];
        if (!one.required) choices.push_back(from(i + 1, count, met, first));
        if (most < 0 || count < most)
          each_meeting(one, met, [&](Id member, std::uint32_t now) {
            choices.push_back(then(member, first, from(i + 1, count + 1, now, false)));
          });
        body = x.out_.choice(choices);
      }
      x.out_.rules[JsonObjects::at(rule)].expression = body;
      return here;
    }
    SLUICE_LAZY Id more(std::int64_t count, std::uint32_t met, bool first) {
      auto& out = x.out_;
      auto const wanted = (std::uint32_t{1} << clause.some.size()) - 1;
      std::vector<Id> choices;
      if (met == wanted) {
        auto const low = (std::max<std::int64_t>)(least - count, 0), high = most < 0 ? -1 : most - count;
        if (low == 0 && !first) choices.push_back(out.empty());
        if (others.empty() || high == 0) return out.choice(choices);
        std::vector<Id> any;
        for (auto const& one : others) any.push_back(one.member);
        auto const one = x.new_rule("another member", out.choice(any));
        auto const next = out.sequence({x.texts_.comma(), one});
        auto const least_more = (std::max<std::int64_t>)(low - 1, 0);
        choices.push_back(
            then(one, first,
                 out.repeat(next, x.repetition(least_more, source), high < 0 ? -1 : x.repetition(high - 1, source))));
        return out.choice(choices);
      }
      if (most < 0 || count < most)
        for (auto const& one : others)
          each_meeting(one, met, [&](Id member, std::uint32_t now) {
            choices.push_back(then(member, first, from(known.size(), count + 1, now, false)));
          });
      return out.choice(choices);
    }
    SLUICE_LAZY Id then(Id member, bool first, Id rest) {
      return first ? x.out_.sequence({member, rest}) : x.out_.sequence({x.texts_.comma(), member, rest});
    }
    /// The ways in which a member meets demands that are open.
    template <class Take>
    void each_meeting(Candidate const& one, std::uint32_t met, Take const& take) {
      auto const open = one.some & ~met;
      for (auto meets = open;; meets = (meets - 1) & open) {
        auto const own = meets == 0 ? one.member : member(one, meets);
        if (!x.is_nothing(own)) take(own, met | meets);
        if (meets == 0) break;
      }
    }
    SLUICE_LAZY void check() const {
      if (rules.size() > 50'000)
        x.unsupported(source, "minProperties, maxProperties or what members must exist lead to too many cases");
    }

    /// \param used  names that have been written
    SLUICE_LAZY Id any_order(std::uint32_t used, std::int64_t count, std::uint32_t met) {
      if (most < 0) count = (std::min)(count, least);
      auto const [it, fresh] = rules.try_emplace({used, count, met, used == 0 && count == 0}, -1);
      if (!fresh) return it->second;
      auto const rule = x.out_.add_rule("members");
      auto const here = it->second = x.out_.call(rule);
      check();
      auto const first = used == 0 && count == 0 && met == 0;
      std::vector<Id> choices;
      auto complete = count >= least && met == (std::uint32_t{1} << clause.some.size()) - 1;
      for (std::size_t i = 0; i < known.size(); ++i) {
        auto const bit = std::uint32_t{1} << i;
        if ((used & bit) != 0) continue;
        complete = complete && !known[i].required;
        if (most >= 0 && count >= most) continue;
        each_meeting(known[i], met, [&](Id member, std::uint32_t now) {
          choices.push_back(x.out_.sequence({member, any_order(used | bit, count + 1, now)}));
        });
      }
      if (most < 0 || count < most)
        for (auto const& one : others)
          each_meeting(one, met, [&](Id member, std::uint32_t now) {
            choices.push_back(x.out_.sequence({member, behind(used, count + 1, now)}));
          });
      auto body = x.out_.choice(choices);
      if (!first && !choices.empty()) body = x.out_.sequence({x.texts_.comma(), body});
      if (complete && !first) body = choices.empty() ? x.out_.empty() : x.out_.choice({x.out_.empty(), body});
      x.out_.rules[JsonObjects::at(rule)].expression = body;
      return here;
    }
    /// Behind another member: no longer first, though no known name may have been used.
    SLUICE_LAZY Id behind(std::uint32_t used, std::int64_t count, std::uint32_t met) {
      return any_order(used | std::uint32_t{1} << 31, count, met);
    }
  };
};

}  // namespace sluice::inline v0::detail
