// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compiles rules to automata.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/rule_facts.hpp>
#include <sluice/grammar/detail/rule_graph.hpp>
#include <sluice/grammar/detail/source_reader.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

class Compiler {
 public:
  explicit Compiler(Expressions const& expressions) : x_(expressions) {}

  /// \throws std::invalid_argument  for left-recursive rules, a grammar without any finite text, or one that exceeds
  ///     its limits; naming the rule
  SLUICE_LAZY Automaton compile(std::int32_t root) {
    a_.root = root;
    FactFinder(x_).find(facts_);
    if (auto const e = x_.rules[at(root)].expression; e >= 0 && facts_.possible[at(e)] == 0)
      refuse(root, "no text obeys this rule: it never ends, or demands the impossible");
    choose_in_place();
    RuleGraph graph(x_, facts_, a_);
    a_.places.reserve(at(x_.size()));
    a_.start.assign(x_.rules.size(), -1);
    for (auto const& rule : x_.rules)
      a_.nullable.push_back(rule.expression >= 0                                ? facts_.nullable[at(rule.expression)]
                            : rule.other != nullptr && rule.other->empty_text() ? 1
                                                                                : 0);
    for (std::size_t r = 0; r < x_.rules.size(); ++r) origin_.push_back(static_cast<std::int32_t>(r));
    std::vector<std::int32_t> open{root};
    a_.start[at(root)] = 0;
    while (!open.empty()) {
      auto const rule = open.back();
      open.pop_back();
      auto const before = a_.places.size();
      if (is_other(rule)) {
        others_.push_back(rule);
        continue;
      }
      if (rule < count() && x_.rules[at(rule)].expression < 0) refuse(rule, "is not defined");
      auto const expression = rule < count() ? x_.rules[at(rule)].expression : graph.outlined()[at(rule - count())];
      a_.start[at(rule)] = graph.build(expression);
      while (a_.start.size() < x_.rules.size() + graph.outlined().size()) {
        a_.nullable.push_back(facts_.nullable[at(graph.outlined()[a_.start.size() - x_.rules.size()])]);
        a_.start.push_back(-1), origin_.push_back(origin_[at(rule)]);
      }
      for (auto i = before; i < a_.places.size(); ++i)
        if (auto const& place = a_.places[i]; place.kind == Place::call && a_.start[at(place.first)] < 0)
          a_.start[at(place.first)] = 0, open.push_back(place.first);
    }
    rank();
    a_.terminals = x_.terminals();
    for (std::int32_t rule = 0; rule < count(); ++rule)
      if (auto const& one = x_.rules[at(rule)]; one.captured && a_.start[at(rule)] >= 0)
        a_.captures.push_back({rule, one.capture_suffix, one.capture});
    for (auto const rule : others_) link(rule);
    a_.classify();
    return std::move(a_);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  using Kind = Expressions::Kind;
  using Place = Automaton::Place;
  std::int32_t count() const { return static_cast<std::int32_t>(x_.rules.size()); }

  /// Whether it was compiled before.
  bool is_other(std::int32_t rule) const { return rule < count() && x_.rules[at(rule)].other != nullptr; }
  SLUICE_LAZY void link(std::int32_t rule) {
    auto const& other = *x_.rules[at(rule)].other;
    auto const limit = x_.limits().size;
    require(std::int64_t{a_.nodes()} + other.nodes() < limit, "limits.size", limit,
            "the grammar has more places than that");
    auto const called = a_.include(other) + other.root, end = a_.nodes();
    a_.places.push_back({.kind = Place::end});
    a_.places.push_back({.kind = Place::call, .to = end, .first = called});
    a_.start[at(rule)] = end + 1;
  }

  /// Inlines small rules that call only inlined rules: they are then determinised together with their surroundings. A rule
  /// that is called in many places is inlined only if it is very small, one that is captured is not.
  SLUICE_LAZY void choose_in_place() {
    facts_.in_place.assign(x_.rules.size(), 0);
    constexpr std::int32_t little = 48, large = 1 << 20, very_little = 8, often = 8;
    std::vector<std::int32_t> uses(x_.rules.size());
    for (std::int32_t id = 0; id < x_.size(); ++id)
      for (auto const part : x_.parts(id))
        if (auto const& e = x_[part]; e.kind == Kind::call) ++uses[at(e.rule)];
    std::vector<std::int32_t> size(at(x_.size()));
    facts_.weight.assign(at(x_.size()), 0);
    auto const least = [](std::int64_t one) { return static_cast<std::int32_t>((std::min)(one, std::int64_t{large})); };
    for (auto pass = 0; pass < 3; ++pass) {
      for (std::int32_t id = 0; id < x_.size(); ++id) {  // parts come before the expressions that contain them
        auto const& e = x_[id];
        std::int64_t sum = 0, weight = 0;
        switch (e.kind) {
          case Kind::bytes:
          case Kind::token: sum = weight = 1; break;
          case Kind::automaton: {
            auto const& automaton = x_.automaton_of(e);
            sum = weight = automaton.most >= 0 ? large : static_cast<std::int64_t>(automaton.edges.size()) + 1;
            break;
          }
          case Kind::call: {
            auto const called = x_.rules[at(e.rule)].expression;
            auto const inlined = facts_.in_place[at(e.rule)] != 0;
            sum = inlined ? size[at(called)] : large, weight = inlined ? facts_.weight[at(called)] : 1;
            break;
          }
          default:
            for (auto const part : x_.parts(id)) sum += size[at(part)], weight += facts_.weight[at(part)];
            if (e.kind == Kind::repeat) {
              std::int64_t const times = (std::max)({1, e.minimum, e.maximum});
              sum *= times, weight *= times;
            }
        }
        size[at(id)] = least(sum), facts_.weight[at(id)] = least(weight);
      }
      auto more = false;
      for (std::size_t r = 0; r < x_.rules.size(); ++r)
        if (auto const e = x_.rules[r].expression; e >= 0 && size[at(e)] <= (uses[r] > often ? very_little : little) &&
                                                   facts_.in_place[r] == 0 && !x_.rules[r].captured)
          facts_.in_place[r] = 1, more = true;
      if (!more) break;
    }
  }

  /// Calls take(place) for the places to which a place leads, whether it reads something or not.
  template <class Take>
  void each_next(Place const& place, Take const& take) const {
    switch (place.kind) {
      case Place::split:
        for (auto const to : a_.targets_of(place)) take(to);
        break;
      case Place::state:
        for (auto const& edge : a_.edges_of(place)) take(edge.to);
        if (place.to >= 0) take(place.to);
        break;
      case Place::byte:
      case Place::call: take(place.to); break;
      case Place::loop: {
        auto const& loop = a_.loops[at(place.first)];
        if (loop.body >= 0) take(loop.body);
        if (loop.to >= 0) take(loop.to);
        break;
      }
      case Place::again: take(a_.loops[at(place.first)].to); break;
      case Place::end: break;
    }
  }

  /// The rules with which the texts of a rule can begin.
  SLUICE_LAZY std::vector<std::int32_t> first_calls(std::int32_t rule) {
    if (is_other(rule)) return {};
    seen_.resize(a_.places.size(), -1);
    std::vector<std::int32_t> open, out;
    auto const visit = [&](std::int32_t p) {
      if (seen_[at(p)] != rule) seen_[at(p)] = rule, open.push_back(p);
    };
    visit(a_.start[at(rule)]);
    while (!open.empty()) {
      auto const& place = a_.places[at(open.back())];
      open.pop_back();
      if (place.kind == Place::call) out.push_back(place.first);
      if (place.kind == Place::split || place.kind == Place::again ||
          (place.kind == Place::call && a_.nullable[at(place.first)] != 0))
        each_next(place, visit);
      if (place.kind == Place::state && place.to >= 0) visit(place.to);
      if (place.kind != Place::loop) continue;
      auto const& loop = a_.loops[at(place.first)];
      if (loop.body >= 0) visit(loop.body);
      if (loop.minimum == 0 && loop.to >= 0) visit(loop.to);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  /// Orders rules by which ones they can begin with; checks that there is no left recursion.
  SLUICE_LAZY void rank() {
    enum : std::uint8_t { fresh, open, done };
    struct Visit {
      std::int32_t rule;
      std::vector<std::int32_t> calls;
      std::size_t next = 0;  // of the calls to look at
    };
    auto const rules = a_.start.size();
    std::vector<std::uint8_t> state(rules, fresh);
    a_.rank.assign(rules, 0);
    auto next = static_cast<std::int32_t>(rules);
    std::vector<Visit> path;
    for (std::size_t r = 0; r < rules; ++r) {
      if (a_.start[r] < 0 || state[r] != fresh) continue;
      auto const enter = [&](std::int32_t rule) {
        state[at(rule)] = open;
        path.push_back({rule, first_calls(rule)});
      };
      enter(static_cast<std::int32_t>(r));
      while (!path.empty()) {
        auto& step = path.back();
        if (step.next == step.calls.size()) {
          state[at(step.rule)] = done, a_.rank[at(step.rule)] = --next;
          path.pop_back();
          continue;
        }
        auto const called = step.calls[step.next++];
        if (state[at(called)] == fresh) enter(called);
        else if (state[at(called)] == open) {
          std::vector<std::int32_t> way;
          way.reserve(path.size());
          for (auto const& one : path) way.push_back(one.rule);
          refuse_left_recursion(way, called);
        }
      }
    }
  }
  SLUICE_LAZY void refuse_left_recursion(std::vector<std::int32_t> const& path, std::int32_t rule) const {
    auto const name = [&](std::int32_t r) -> std::string const& { return x_.rules[at(origin_[at(r)])].name; };
    std::string way;
    auto const from = std::ranges::find(path, rule);
    for (auto i = from; i != path.end() && i - from < 8; ++i)
      if (*i < count()) way += name(*i) + " -> ";
    refuse(origin_[at(rule)], "left-recursive: the rule begins with itself (" + way + name(rule) +
                                  "); write it as a repetition, or with the recursion at the end");
  }
  SLUICE_LAZY [[noreturn]] void refuse(std::int32_t rule, std::string const& why) const {
    auto const& one = x_.rules[at(rule)];
    if (!x_.source.empty()) SourceReader("grammar", x_.source, x_.limits()).fail_at(one.place, one.name + ": " + why);
    throw std::invalid_argument("sluice: grammar = " + one.name + ": " + why);
  }

  Expressions const& x_;
  RuleFacts facts_;
  Automaton a_;
  std::vector<std::int32_t> others_;  // rules that were compiled before
  std::vector<std::int32_t> origin_;  // [rule]: the rule of the expressions that contains it
  std::vector<std::int32_t> seen_;    // [place]: by first_calls()
};

/// \throws std::invalid_argument  see Compiler::compile
inline Automaton compile(Expressions const& expressions, std::int32_t root) {
  return Compiler(expressions).compile(root);
}

}  // namespace sluice::inline v0::detail
