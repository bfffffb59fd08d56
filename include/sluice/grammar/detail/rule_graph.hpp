// SPDX-License-Identifier: Apache-2.0
/// \file
/// The graph of one rule: an expression becomes places.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/rule_facts.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Builds the graph of one rule after another (Thompson 1968).
class RuleGraph {
 public:
  using Id = std::int32_t;
  using Place = Automaton::Place;
  RuleGraph(Expressions const& expressions, RuleFacts const& facts, Automaton& automaton)
      : expressions_(expressions), facts_(facts), a_(automaton) {}

  /// Appends the rule's places; returns the first.
  /// \throws std::invalid_argument  if all rules together have more places than the limits allow
  SLUICE_LAZY Id build(Id expression) {
    loop_ = -1;
    return build(expression, add({.kind = Place::end}));
  }
  /// Expressions that became rules of their own, which begin with the number after the last of the expressions' rules.
  std::vector<Id> const& outlined() const { return outlined_; }

 private:
  using Kind = Expressions::Kind;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY Id add(Place place) {
    auto const limit = expressions_.limits().size;
    require(++total_ <= limit, "limits.size", limit, "the grammar has more places than that");
    place.within = loop_;
    a_.places.push_back(place);
    return a_.nodes() - 1;
  }
  SLUICE_LAZY Id split(std::span<Id const> targets) {
    auto const limit = expressions_.limits().size;
    require(a_.targets.size() + targets.size() <= 4 * static_cast<std::size_t>(limit), "limits.size", limit,
            "the grammar has more choices than four times that");
    auto const first = static_cast<std::int32_t>(a_.targets.size());
    a_.targets.insert(a_.targets.end(), targets.begin(), targets.end());
    return add({.kind = Place::split, .first = first, .count = static_cast<std::int32_t>(targets.size())});
  }
  SLUICE_LAZY Id split(Id a, Id b) {
    Id const both[] = {a, b};
    return split(both);
  }

  /// Builds the expression; returns the place from which its texts lead to `to`.
  SLUICE_LAZY Id build(Id id, Id to) {
    auto const& e = expressions_[id];
    auto const parts = expressions_.parts(id);
    switch (e.kind) {
      case Kind::nothing: return split({});
      case Kind::bytes: return add({.kind = Place::byte, .low = e.range.first, .high = e.range.last, .to = to});
      case Kind::sequence:
        for (auto i = parts.size(); i-- > 0;) to = build(parts[i], to);
        return to;
      case Kind::choice: {
        auto const begun = open_.size();
        for (auto const part : parts)
          if (facts_.possible[at(part)] != 0) {
            auto const first = build(part, to);
            open_.push_back(first);
          }
        auto const targets = std::span<Id const>(open_).subspan(begun);
        auto const first = targets.size() == 1 ? targets[0] : split(targets);
        open_.resize(begun);
        return first;
      }
      case Kind::repeat: return repeat(id, to);
      case Kind::call:
        if (facts_.in_place[at(e.rule)] != 0) return build(expressions_.rules[at(e.rule)].expression, to);
        return add({.kind = Place::call, .to = to, .first = e.rule});
      case Kind::automaton: {
        auto const& automaton = expressions_.automaton_of(e);
        if (automaton.most < 0) return embed(automaton, to);
        return loop_ < 0 ? count(automaton, to) : outline(id, to);
      }
      case Kind::token: {
        auto const place = add({.kind = Place::state});
        a_.texts.push_back({place, 1});
        a_.token_places.push_back({place, e.rule, to});
        return place;
      }
    }
    return to;
  }

  SLUICE_LAZY Id repeat(Id id, Id to) {
    auto e = expressions_[id];
    auto part = expressions_.parts(id)[0];
    while (joins(e, part)) part = expressions_.parts(part)[0];
    if (facts_.possible[at(part)] == 0) return to;
    auto const minimum = facts_.nullable[at(part)] != 0 ? 0 : e.minimum;
    if (minimum <= 1 && e.maximum < 0) {
      auto const first = split(to, to);
      auto const body = build(part, first);
      a_.targets[at(a_.places[at(first)].first)] = body;
      return minimum == 0 ? first : body;
    }
    if (e.maximum == 0) return to;
    auto const times = (std::max)(e.maximum, minimum);
    auto const little = loop_ < 0 ? 12 : 64;
    if (times == 1 || std::int64_t{facts_.weight[at(part)]} * times <= little) {
      auto first = to;
      if (e.maximum < 0) {
        first = split(to, to);
        auto const body = build(part, first);
        a_.targets[at(a_.places[at(first)].first)] = body;
      }
      for (auto i = minimum; i < e.maximum; ++i) first = split(build(part, first), to);
      for (std::int32_t i = 0; i < minimum; ++i) first = build(part, first);
      return first;
    }
    if (loop_ >= 0) return outline(id, to);
    loop_ = static_cast<std::int32_t>(a_.loops.size());
    a_.loops.push_back({-1, to, minimum, e.maximum, -1});
    auto const first = add({.kind = Place::loop, .first = loop_});
    auto const again = add({.kind = Place::again, .to = first, .first = loop_});
    auto const body = build(part, again);
    a_.loops[at(loop_)].body = body, a_.loops[at(loop_)].again = again;
    loop_ = -1;
    return first;
  }

  /// A call of a rule for the expression.
  SLUICE_LAZY Id outline(Id id, Id to) {
    auto const rules = static_cast<std::int32_t>(expressions_.rules.size());
    auto const [known, fresh] = rule_of_.try_emplace(id, rules + static_cast<std::int32_t>(outlined_.size()));
    if (fresh) outlined_.push_back(id);
    return add({.kind = Place::call, .to = to, .first = known->second});
  }

  /// Whether a repetition of a repetition is one repetition of its part, as in (a{1,2}){3,4} = a{3,8}; joins them.
  SLUICE_LAZY bool joins(Expressions::Expression& outer, Id part) const {
    auto const& inner = expressions_[part];
    if (inner.kind != Kind::repeat || outer.maximum == 0 || inner.maximum == 0) return false;
    std::int64_t const m = inner.minimum, n = inner.maximum, p = outer.minimum, q = outer.maximum;
    // With one repetition more, the least number must not leave a gap behind the most with one less.
    if (p != q && n >= 0 && m * (p + 1) > n * p + 1) return false;
    if (p != q && n < 0 && p == 0 && m > 1) return false;
    auto const minimum = m * p, maximum = n < 0 || q < 0 ? std::int64_t{-1} : n * q;
    if ((std::max)(minimum, maximum) > (std::numeric_limits<std::int32_t>::max)()) return false;
    outer.minimum = static_cast<std::int32_t>(minimum), outer.maximum = static_cast<std::int32_t>(maximum);
    return true;
  }

  SLUICE_LAZY Id embed(ByteAutomaton const& automaton, Id to) {
    auto const base = a_.nodes();
    a_.texts.push_back({base, static_cast<std::int32_t>(automaton.states.size())});
    auto const offset = static_cast<std::int32_t>(a_.edges.size());
    for (auto const& state : automaton.states)
      add({.kind = Place::state,
           .to = state.accepts ? to : -1,
           .first = offset + state.first_edge,
           .count = state.edges});
    for (auto const& edge : automaton.edges) a_.edges.push_back({edge.first, edge.last, base + edge.to});
    return base;
  }
  /// A text of which the characters, or tokens, are counted.
  SLUICE_LAZY Id count(ByteAutomaton const& automaton, Id to) {
    loop_ = static_cast<std::int32_t>(a_.loops.size());
    a_.loops.push_back({-1, to, automaton.states[0].accepts ? 0 : 1, automaton.most, -1});
    auto const first = add({.kind = Place::loop, .first = loop_});
    auto const behind = add({.kind = Place::again, .to = first, .first = loop_});
    auto const base = embed(automaton, behind);
    for (std::int32_t i = 0; i < automaton.characters; ++i) a_.places[at(base + i)].low = 1;
    auto& loop = a_.loops[at(loop_)];
    loop.body = base, loop.again = behind;
    if (automaton.tokens.empty()) {
      loop.reach = find_left(automaton, base);
    } else {  // known when tokens are
      loop.reach = 0, a_.left.resize(at(a_.nodes()));
      a_.token_texts.push_back({base, static_cast<std::int32_t>(automaton.states.size()), loop_, automaton.tokens});
    }
    loop_ = -1;
    return first;
  }
  /// Finds the fewest characters from each state to the end; returns the most of them.
  SLUICE_LAZY std::int32_t find_left(ByteAutomaton const& automaton, Id base) {
    constexpr auto none = (std::numeric_limits<std::int32_t>::max)() / 2;
    auto const size = automaton.states.size();
    a_.left.resize(at(base) + size, none);
    auto* const left = a_.left.data() + base;
    std::vector<std::int32_t> begins(size + 1), from(automaton.edges.size()), open, next;
    for (auto const& edge : automaton.edges) ++begins[at(edge.to)];
    std::int32_t sum = 0;
    for (auto& begin : begins) sum += begin, begin = sum;
    for (std::size_t i = 0; i < size; ++i)
      for (auto e = automaton.states[i].first_edge; e < automaton.states[i].first_edge + automaton.states[i].edges; ++e)
        from[at(--begins[at(automaton.edges[at(e)].to)])] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < size; ++i)
      if (automaton.states[i].accepts) left[i] = 0, open.push_back(static_cast<std::int32_t>(i));
    for (std::int32_t count = 0; !open.empty(); ++count, open.swap(next), next.clear())
      while (!open.empty()) {
        auto const state = open.back();
        open.pop_back();
        if (left[state] != count) continue;
        auto const ends = state < automaton.characters ? 1 : 0;  // a character, with the edge to it
        for (auto i = begins[at(state)]; i < begins[at(state) + 1]; ++i)
          if (auto const before = from[at(i)]; left[before] > count + ends)
            left[before] = count + ends, (ends > 0 ? next : open).push_back(before);
      }
    std::int32_t most = 0;
    for (std::size_t i = 0; i < size; ++i)
      if (left[i] < none) most = (std::max)(most, left[i]);
    return most;
  }

  Expressions const& expressions_;
  RuleFacts const& facts_;
  Automaton& a_;
  std::int32_t total_ = 0, loop_ = -1;
  std::vector<Id> open_;  // targets of choices that are being built
  std::vector<Id> outlined_;
  std::map<Id, std::int32_t> rule_of_;  // [outlined expression]
};

}  // namespace sluice::inline v0::detail
