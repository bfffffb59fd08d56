// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules that begin with themselves, written otherwise.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Left recursion among some rules is a left-linear system, X_A = sum of X_B r_AB + base_A, whose solution is a walk: a
/// base, then rests that lead on. So X_A becomes its bases, each followed by the walks from there to A, which recur at their
/// ends. Rules in which something optional may stand before the recursion, other than a part with ?, stay as they are.
class LeftRecursion {
 public:
  /// \param rules  to look at; others call none of them, and have no empty text
  template <class = void>
  static void remove(Expressions& x, std::span<std::int32_t const> rules) {
    LeftRecursion(x, rules).all();
  }

 private:
  using Id = Expressions::Id;
  using Kind = Expressions::Kind;
  struct Split {
    std::vector<std::pair<std::int32_t, Id>> left{};  // a rule that it begins with, and what follows
    std::vector<Id> base{};                           // what begins with none
  };
  static constexpr std::size_t most = 64;  // rules that begin with each other: their walks are as many, squared

  LeftRecursion(Expressions& x, std::span<std::int32_t const> rules) : x_(x), rules_(rules) {}
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  template <class = void>
  void all() {
    find_empty();
    std::vector<std::vector<std::int32_t>> begins(x_.rules.size());
    for (auto const rule : rules_)
      if (x_.rules[at(rule)].expression >= 0) first_calls(x_.rules[at(rule)].expression, begins[at(rule)]);
    group_.assign(begins.size(), -1);
    for (auto const& group : components(begins)) {
      auto const self = std::ranges::find(begins[at(group[0])], group[0]) != begins[at(group[0])].end();
      if ((group.size() == 1 && !self) || group.size() > most) continue;
      for (auto const rule : group) group_[at(rule)] = group[0];
      rewrite(group);
    }
  }

  /// Finds the rules that may be empty.
  template <class = void>
  void find_empty() {
    empty_.assign(x_.rules.size(), 0);
    std::vector<std::vector<std::int32_t>> callers(x_.rules.size());
    std::vector<std::int32_t> open, calls;
    for (auto const rule : rules_) {
      if (x_.rules[at(rule)].expression < 0) continue;
      calls.clear();
      first_calls(x_.rules[at(rule)].expression, calls, true);
      for (auto const called : calls) callers[at(called)].push_back(rule);
      open.push_back(rule);
    }
    while (!open.empty()) {
      auto const rule = open.back();
      open.pop_back();
      if (empty_[at(rule)] != 0 || !empty(x_.rules[at(rule)].expression)) continue;
      empty_[at(rule)] = 1;
      open.insert(open.end(), callers[at(rule)].begin(), callers[at(rule)].end());
    }
  }
  template <class = void>
  bool empty(Id id) const {
    auto const& e = x_[id];
    auto const parts = x_.parts(id);
    auto const is_empty = [&](Id part) { return empty(part); };
    switch (e.kind) {
      case Kind::sequence: return std::ranges::all_of(parts, is_empty);
      case Kind::choice: return std::ranges::any_of(parts, is_empty);
      case Kind::repeat: return e.minimum == 0 || empty(parts[0]);
      case Kind::call: return empty_[at(e.rule)] != 0;
      case Kind::automaton: return x_.automaton_of(e).states[0].accepts;
      default: return false;
    }
  }

  /// The rules that an expression may begin with. \param all  all that it calls
  template <class = void>
  void first_calls(Id id, std::vector<std::int32_t>& out, bool all = false) const {
    auto const& e = x_[id];
    if (e.kind == Kind::call) out.push_back(e.rule);
    for (auto const part : x_.parts(id)) {
      first_calls(part, out, all);
      if (!all && e.kind == Kind::sequence && !empty(part)) return;
    }
  }
  template <class = void>
  bool begins_within(Id id, std::int32_t group) const {
    std::vector<std::int32_t> calls;
    first_calls(id, calls);
    return std::ranges::any_of(
        calls, [&](std::int32_t rule) { return at(rule) < group_.size() && group_[at(rule)] == group; });
  }

  /// Rules that reach each other (Tarjan 1972).
  template <class = void>
  static std::vector<std::vector<std::int32_t>> components(std::vector<std::vector<std::int32_t>> const& next) {
    std::vector<std::vector<std::int32_t>> out;
    std::vector<std::int32_t> number(next.size(), -1), low(next.size()), stack;
    std::vector<std::uint8_t> open(next.size());
    std::vector<std::pair<std::int32_t, std::size_t>> path;
    std::int32_t count = 0;
    auto const enter = [&](std::int32_t rule) {
      number[at(rule)] = low[at(rule)] = count++, open[at(rule)] = 1;
      stack.push_back(rule), path.emplace_back(rule, 0);
    };
    for (std::size_t r = 0; r < next.size(); ++r) {
      if (number[r] < 0) enter(static_cast<std::int32_t>(r));
      while (!path.empty()) {
        auto const rule = path.back().first;
        if (path.back().second < next[at(rule)].size()) {
          auto const to = next[at(rule)][path.back().second++];
          if (number[at(to)] < 0) enter(to);
          else if (open[at(to)] != 0) low[at(rule)] = (std::min)(low[at(rule)], number[at(to)]);
          continue;
        }
        path.pop_back();
        if (!path.empty()) low[at(path.back().first)] = (std::min)(low[at(path.back().first)], low[at(rule)]);
        if (low[at(rule)] != number[at(rule)]) continue;
        out.emplace_back();
        do {
          out.back().push_back(stack.back()), open[at(stack.back())] = 0;
          stack.pop_back();
        } while (out.back().back() != rule);
      }
    }
    return out;
  }

  /// \returns  false: it stays as it is
  template <class = void>
  bool split(Id id, std::int32_t group, Split& out) {
    if (!begins_within(id, group)) {
      out.base.push_back(id);
      return true;
    }
    auto const e = x_[id];
    std::vector<Id> const parts(x_.parts(id).begin(), x_.parts(id).end());
    if (e.kind == Kind::call) out.left.emplace_back(e.rule, x_.empty());
    if (e.kind == Kind::choice) return std::ranges::all_of(parts, [&](Id part) { return split(part, group, out); });
    if (e.kind == Kind::repeat) return split_repeat(e, parts[0], group, out);
    if (e.kind != Kind::sequence) return true;
    Split first;
    if (!split(parts[0], group, first)) return false;
    auto const rest = x_.sequence(std::span(parts).subspan(1));
    for (auto const& [rule, behind] : first.left) out.left.emplace_back(rule, x_.sequence({behind, rest}));
    for (auto const base : first.base) {
      if (!empty(base) || !begins_within(rest, group)) {
        out.base.push_back(x_.sequence({base, rest}));
        continue;
      }
      auto const one = x_[base];  // nothing, or an optional part: either is a base of its own
      auto const nothing = one.kind == Kind::sequence && one.count == 0;
      if (!nothing && (one.kind != Kind::repeat || empty(x_.parts(base)[0]))) return false;
      if (!nothing) {
        auto const some = x_.repeat(x_.parts(base)[0], 1, one.maximum);
        out.base.push_back(x_.sequence({some, rest}));
      }
      if (!split(rest, group, out)) return false;
    }
    return true;
  }
  template <class = void>
  bool split_repeat(Expressions::Expression const& e, Id part, std::int32_t group, Split& out) {
    if (e.maximum == 0) {
      out.base.push_back(x_.empty());
      return true;
    }
    Split first;
    if (empty(part) || !split(part, group, first)) return false;
    auto const rest = x_.repeat(part, (std::max)(e.minimum - 1, 0), e.maximum < 0 ? -1 : e.maximum - 1);
    for (auto const& [rule, behind] : first.left) out.left.emplace_back(rule, x_.sequence({behind, rest}));
    for (auto const base : first.base) out.base.push_back(x_.sequence({base, rest}));
    if (e.minimum == 0) out.base.push_back(x_.empty());
    return true;
  }

  template <class = void>
  void rewrite(std::vector<std::int32_t> const& group) {
    std::vector<Split> splits(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      auto& [left, base] = splits[i];
      if (!split(x_.rules[at(group[i])].expression, group[0], splits[i])) return;
      std::erase_if(left, [&](auto const& one) {  // a rule that is itself says nothing
        return one.first == group[i] &&
               std::ranges::all_of(x_.parts(one.second),
                                   [&](Id part) { return x_[part].kind == Kind::sequence && x_[part].count == 0; }) &&
               x_[one.second].kind == Kind::sequence;
      });
    }
    std::vector<Id> choices;
    if (group.size() == 1) {
      for (auto const& [rule, behind] : splits[0].left) choices.push_back(behind);
      auto const more = x_.repeat(x_.choice(choices), 0, -1);
      x_.rules[at(group[0])].expression =
          choices.empty() ? x_.choice(splits[0].base) : x_.sequence({x_.choice(splits[0].base), more});
      return;
    }
    auto const count = group.size();
    std::vector<std::int32_t> walk(count * count);  // [to][from]
    for (std::size_t to = 0; to < count; ++to)
      for (std::size_t from = 0; from < count; ++from) {
        auto const place = x_.rules[at(group[to])].place;
        walk[to * count + from] = x_.add_rule(std::string(x_.rules[at(group[to])].name));
        x_.rules.back().place = place;
      }
    for (std::size_t to = 0; to < count; ++to) {
      for (std::size_t from = 0; from < count; ++from) {
        choices.clear();
        if (from == to) choices.push_back(x_.empty());
        for (std::size_t next = 0; next < count; ++next)
          for (auto const& [rule, behind] : splits[next].left)
            if (rule == group[from]) choices.push_back(x_.sequence({behind, x_.call(walk[to * count + next])}));
        x_.rules[at(walk[to * count + from])].expression = x_.choice(choices);
      }
      choices.clear();
      for (std::size_t from = 0; from < count; ++from)
        if (!splits[from].base.empty())
          choices.push_back(x_.sequence({x_.choice(splits[from].base), x_.call(walk[to * count + from])}));
      x_.rules[at(group[to])].expression = x_.choice(choices);
    }
  }

  Expressions& x_;
  std::span<std::int32_t const> rules_;
  std::vector<std::uint8_t> empty_;  // [rule]
  std::vector<std::int32_t> group_;  // [rule]: a name of those that begin with each other; -1: none
};

}  // namespace sluice::inline v0::detail
