// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules that begin with themselves, written otherwise.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/components.hpp>
#include <sluice/grammar/detail/rule_facts.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Left recursion among some rules is a left-linear system of their texts other than the empty one, X_A = sum of X_B r_AB
/// + base_A. Its solution is a walk: a base, then rests that lead on. So X_A becomes its bases, each followed by the
/// walks from there to A, which recur at their ends. Where r_AB may be empty, a walk goes on from wherever such steps
/// lead.
class LeftRecursion {
 public:
  /// \throws std::invalid_argument  if that takes more places than the limits allow
  SLUICE_LAZY static void remove(Expressions& x) { LeftRecursion(x).all(); }

 private:
  using Id = Expressions::Id;
  using Kind = Expressions::Kind;
  struct Split {
    std::vector<std::pair<std::int32_t, Id>> left{};  // a rule that it begins with, and what follows
    std::vector<Id> base{};                           // what begins with none
  };
  static constexpr std::size_t most = 64;  // rules that begin with each other: their walks are as many, squared

  explicit LeftRecursion(Expressions& x) : x_(x) {}
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY void all() {
    find_empty();
    std::vector<std::vector<std::int32_t>> begins(x_.rules.size());
    for (std::size_t rule = 0; rule < begins.size(); ++rule) {
      if (x_.rules[rule].expression < 0) continue;
      first_calls(x_.rules[rule].expression, begins[rule]);
      std::ranges::sort(begins[rule]);
      begins[rule].erase(std::unique(begins[rule].begin(), begins[rule].end()), begins[rule].end());
    }
    group_.assign(begins.size(), -1);
    nonempty_.assign(begins.size(), -1);
    for (auto const& group : components(begins)) {  // those with which others begin come first
      auto const self = std::ranges::binary_search(begins[at(group[0])], group[0]);
      if ((group.size() == 1 && !self) || group.size() > most) continue;
      for (auto const rule : group) {
        group_[at(rule)] = group[0];
        require(!x_.rules[at(rule)].captured, "grammar: [capture]", x_.rules[at(rule)].name,
                "begins with itself: capture a rule around it");
      }
      rewrite(group);
    }
    for (std::size_t i = 0; i < pending_.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const body = nonempty(x_.rules[at(pending_[i])].expression);
      x_.rules[at(nonempty_[at(pending_[i])])].expression = body;
    }
  }

  // What may be empty.
  SLUICE_LAZY void find_empty() {
    RuleFacts facts;
    FactFinder(x_).find(facts);
    empty_ = std::move(facts.nullable);
    calls_empty_.reserve(x_.rules.size());
    for (auto const& rule : x_.rules) {
      auto const may_be =
          rule.expression >= 0 ? empty_[at(rule.expression)] != 0 : rule.other != nullptr && rule.other->empty_text();
      calls_empty_.push_back(may_be ? 1 : 0);
    }
  }
  SLUICE_LAZY bool empty(Id id) {
    while (empty_.size() <= at(id)) {  // parts come before what contains them
      auto const now = static_cast<Id>(empty_.size());
      auto const& e = x_[now];
      auto const parts = x_.parts(now);
      auto const is_empty = [&](Id part) { return empty_[at(part)] != 0; };
      auto const fits = e.kind == Kind::sequence ? std::ranges::all_of(parts, is_empty)
                        : e.kind == Kind::choice ? std::ranges::any_of(parts, is_empty)
                        : e.kind == Kind::repeat ? e.minimum == 0 || is_empty(parts[0])
                        : e.kind == Kind::call   ? calls_empty_[at(e.rule)] != 0
                                                 : e.kind == Kind::automaton && x_.automaton_of(e).states[0].accepts;
      empty_.push_back(fits ? 1 : 0);
    }
    return empty_[at(id)] != 0;
  }
  SLUICE_LAZY std::int32_t add_rule(std::string name, std::size_t place, bool may_be_empty) {
    auto const rule = x_.add_rule(std::move(name));
    x_.rules.back().place = place;
    calls_empty_.push_back(may_be_empty ? 1 : 0), group_.push_back(-1), nonempty_.push_back(-1);
    return rule;
  }

  /// Its texts other than the empty one.
  SLUICE_LAZY Id nonempty(Id id) {
    if (!empty(id)) return id;
    auto const known = some_.find(id);
    if (known != some_.end()) return known->second;
    auto const made = without_empty(id);
    return some_[id] = made;
  }
  SLUICE_LAZY Id without_empty(Id id) {
    auto const e = x_[id];
    std::vector<Id> const parts(x_.parts(id).begin(), x_.parts(id).end());
    std::vector<Id> choices;
    switch (e.kind) {
      case Kind::sequence:
        for (std::size_t i = 0; i < parts.size(); ++i)
          if (auto const some = nonempty(parts[i]); !impossible(some)) choices.push_back(behind(some, parts, i + 1));
        return x_.choice(choices);
      case Kind::choice:
        for (auto const part : parts)
          if (auto const some = nonempty(part); !impossible(some)) choices.push_back(some);
        return x_.choice(choices);
      case Kind::repeat: {
        auto const some = nonempty(parts[0]);
        if (e.maximum == 0 || impossible(some)) return x_.nothing();
        return x_.repeat(some, empty(parts[0]) ? 1 : (std::max)(e.minimum, 1), e.maximum);
      }
      case Kind::call: {
        if (x_.rules[at(e.rule)].other != nullptr) return nonempty_other(e.rule);
        if (nonempty_[at(e.rule)] < 0) {
          auto const rule = add_rule(x_.rules[at(e.rule)].name, x_.rules[at(e.rule)].place, false);
          nonempty_[at(e.rule)] = rule;
          auto const& own = x_.rules[at(e.rule)];
          auto& some = x_.rules[at(rule)];
          some.captured = own.captured, some.capture = own.capture, some.capture_suffix = own.capture_suffix;
          pending_.push_back(e.rule);
        }
        return x_.call(nonempty_[at(e.rule)]);
      }
      case Kind::automaton: {
        auto some = x_.automaton_of(e);  // its first state is twice there: first, and when it is reached again
        auto const again = some.most < 0 ? static_cast<std::int32_t>(some.states.size()) : some.characters++;
        auto const first = some.states[0];
        some.states.insert(some.states.begin() + again, first);
        some.states[0].accepts = false;
        for (auto& edge : some.edges)
          if (edge.to == 0 || edge.to >= again) edge.to = edge.to == 0 ? again : edge.to + 1;
        return x_.automaton(std::move(some));
      }
      default: return x_.nothing();
    }
  }
  bool impossible(Id id) const { return x_[id].kind == Kind::nothing; }
  SLUICE_LAZY Id nonempty_other(std::int32_t rule) {
    require(false, "grammars", x_.rules[at(rule)].name,
            "may be empty and stands before a rule that begins with itself: that is not supported");
    return x_.nothing();
  }
  /// A part, then parts of a sequence from one on.
  SLUICE_LAZY Id behind(Id part, std::vector<Id> const& parts, std::size_t from) {
    auto const left = parts.size() - from;
    work_ += left + 1;
    require(work_ <= at(x_.limits().size), "limits.size", x_.limits().size, "the grammar has more places than that");
    std::vector<Id> all{part};
    all.insert(all.end(), parts.begin() + static_cast<std::ptrdiff_t>(from), parts.end());
    return x_.sequence(all);
  }

  /// The rules that an expression may begin with.
  SLUICE_LAZY void first_calls(Id id, std::vector<std::int32_t>& out) {
    auto const& e = x_[id];
    if (e.kind == Kind::call) out.push_back(e.rule);
    for (auto const part : x_.parts(id)) {
      first_calls(part, out);
      if (e.kind == Kind::sequence && !empty(part)) return;
    }
  }
  SLUICE_LAZY bool begins_within(Id id, std::int32_t group) {
    std::vector<std::int32_t> calls;
    first_calls(id, calls);
    return std::ranges::any_of(calls, [&](std::int32_t rule) { return group_[at(rule)] == group; });
  }

  /// The texts of an expression other than the empty one, by what they begin with.
  SLUICE_LAZY void split(Id id, std::int32_t group, Split& out) {
    if (!begins_within(id, group)) {
      if (auto const some = nonempty(id); !impossible(some)) out.base.push_back(some);
      return;
    }
    auto const e = x_[id];
    std::vector<Id> const parts(x_.parts(id).begin(), x_.parts(id).end());
    auto const first = [&](Id part, std::vector<Id> const& rest, std::size_t from) {
      Split its;
      split(part, group, its);
      for (auto const& [rule, follows] : its.left) out.left.emplace_back(rule, behind(follows, rest, from));
      for (auto const base : its.base) out.base.push_back(behind(base, rest, from));
    };
    if (e.kind == Kind::call) out.left.emplace_back(e.rule, x_.empty());
    if (e.kind == Kind::choice)
      for (auto const part : parts) split(part, group, out);
    if (e.kind == Kind::repeat && e.maximum != 0)
      first(parts[0], {x_.repeat(parts[0], (std::max)(e.minimum - 1, 0), e.maximum < 0 ? -1 : e.maximum - 1)}, 0);
    if (e.kind == Kind::sequence)
      for (std::size_t i = 0; i < parts.size() && (i == 0 || empty(parts[i - 1])); ++i) first(parts[i], parts, i + 1);
  }

  SLUICE_LAZY void rewrite(std::vector<std::int32_t> const& group) {
    auto const count = group.size();
    std::vector<Split> splits(count);
    std::vector<std::uint8_t> may_be_empty(count), steps(count * count);  // [from][to]: without text
    auto const number = [&](std::int32_t rule) {
      return static_cast<std::size_t>(std::ranges::find(group, rule) - group.begin());
    };
    for (std::size_t i = 0; i < count; ++i) {
      may_be_empty[i] = calls_empty_[at(group[i])];
      split(x_.rules[at(group[i])].expression, group[0], splits[i]);
      steps[i * count + i] = 1;
      for (auto& [rule, follows] : splits[i].left) {
        if (empty(follows)) steps[number(rule) * count + i] = 1;
        follows = nonempty(follows);
      }
      std::erase_if(splits[i].left, [&](auto const& one) { return impossible(one.second); });
    }
    for (std::size_t k = 0; k < count; ++k)  // all ways (Warshall 1962)
      for (std::size_t from = 0; from < count; ++from)
        for (std::size_t to = 0; to < count && steps[from * count + k] != 0; ++to)
          if (steps[k * count + to] != 0) steps[from * count + to] = 1;
    std::vector<Id> choices;
    if (count == 1) {
      if (splits[0].base.empty()) splits[0].base.push_back(x_.nothing());
      for (auto const& [rule, follows] : splits[0].left) choices.push_back(follows);
      auto all = x_.choice(splits[0].base);
      if (!choices.empty()) all = x_.sequence({all, x_.repeat(x_.choice(choices), 0, -1)});
      x_.rules[at(group[0])].expression = may_be_empty[0] != 0 ? x_.choice({x_.empty(), all}) : all;
      return;
    }
    struct Edge {
      std::size_t to;
      Id follows;
    };
    std::vector<std::vector<Edge>> edges(count);  // [from]
    for (std::size_t to = 0; to < count; ++to)
      for (auto const& [rule, follows] : splits[to].left) edges[number(rule)].push_back({to, follows});
    std::vector<std::int32_t> walk(count * count),
        leave(count * count);  // [to][from]: to the end; with an edge first
    auto const new_rule = [&](std::size_t to, bool may_be) {
      return add_rule(std::string(x_.rules[at(group[to])].name), x_.rules[at(group[to])].place, may_be);
    };
    for (std::size_t to = 0; to < count; ++to)
      for (std::size_t from = 0; from < count; ++from)
        walk[to * count + from] = new_rule(to, steps[from * count + to] != 0);
    for (std::size_t to = 0; to < count; ++to) {
      auto const take_edges = [&](std::size_t from) {
        for (auto const& edge : edges[from])
          choices.push_back(behind(edge.follows, {x_.call(walk[to * count + edge.to])}, 0));
      };
      for (std::size_t from = 0; from < count; ++from) {
        choices.clear();
        take_edges(from);
        leave[to * count + from] = new_rule(to, false);
        auto const all = x_.choice(choices);
        x_.rules.back().expression = all;
      }
      for (std::size_t from = 0; from < count; ++from) {
        choices.clear();
        if (steps[from * count + to] != 0) choices.push_back(x_.empty());
        for (std::size_t by = 0; by < count; ++by)
          if (steps[from * count + by] != 0) choices.push_back(x_.call(leave[to * count + by]));
        auto const all = x_.choice(choices);
        x_.rules[at(walk[to * count + from])].expression = all;
      }
      choices.clear();
      if (may_be_empty[to] != 0) choices.push_back(x_.empty());
      for (std::size_t from = 0; from < count; ++from)
        if (!splits[from].base.empty())
          choices.push_back(x_.sequence({x_.choice(splits[from].base), x_.call(walk[to * count + from])}));
      auto const all = x_.choice(choices);
      x_.rules[at(group[to])].expression = all;
    }
  }

  Expressions& x_;
  std::vector<std::uint8_t> empty_{}, calls_empty_{};  // [expression], [rule]: whether its text may be empty
  std::vector<std::int32_t> group_{};                  // [rule]: a name of those that begin with each other; -1: none
  std::vector<std::int32_t> nonempty_{};  // [rule]: one with its texts other than the empty one; -1: not made
  std::vector<std::int32_t> pending_{};   // rules of which nonempty ones are to be written
  std::unordered_map<Id, Id> some_{};     // what nonempty() made
  std::size_t work_ = 0;
};

}  // namespace sluice::inline v0::detail
