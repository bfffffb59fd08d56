// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compiles rules to automata.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
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

/// The reverse of a reference relation: the users of i are the ones that refer to it.
class Users {
 public:
  template <class = void>
  explicit Users(std::size_t count) : begins_(count + 1) {}
  template <class = void>
  void add(std::int32_t used, std::int32_t user) {
    pairs_.emplace_back(used, user);
  }
  template <class = void>
  void sort() {
    std::sort(pairs_.begin(), pairs_.end());
    std::size_t i = 0;
    for (std::size_t used = 0; used < begins_.size(); ++used) {
      while (i < pairs_.size() && static_cast<std::size_t>(pairs_[i].first) < used) ++i;
      begins_[used] = i;
    }
  }
  template <class Take>
  void for_each(std::int32_t used, Take const& take) const {
    auto const* const begin = begins_.data() + used;
    for (auto i = begin[0]; i < begin[1]; ++i) take(pairs_[i].second);
  }

 private:
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;
  std::vector<std::size_t> begins_;
};

class Compiler {
 public:
  explicit Compiler(Expressions const& expressions) : x_(expressions) {}

  /// \throws std::invalid_argument  for left-recursive rules, a grammar without any finite text, or one that exceeds
  ///     its limits; naming the rule
  template <class = void>
  Automaton compile(std::int32_t root) {
    automaton_.root = root;
    find_nullable();
    choose_in_place();
    RuleGraph graph(x_, facts_);
    auto const rules = x_.rules.size();
    automaton_.start.assign(rules, -1);
    std::vector<std::int32_t> open{root};
    automaton_.start[at(root)] = 0;
    while (!open.empty()) {
      auto const rule = open.back();
      open.pop_back();
      auto const before = automaton_.call_edges.size();
      automaton_.start[at(rule)] = graph.append_to(automaton_, x_.rules[at(rule)].expression);
      for (auto i = before; i < automaton_.call_edges.size(); ++i)
        if (auto const called = automaton_.call_edges[i].rule; automaton_.start[at(called)] < 0)
          automaton_.start[at(called)] = 0, open.push_back(called);
    }
    close();
    prune();
    rank();
    automaton_.classify();
    return std::move(automaton_);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  using Kind = Expressions::Kind;

  template <class = void>
  void find_nullable() {
    auto const count = at(x_.size());
    Users parents(count), callers(x_.rules.size()), rules(count);
    std::vector<std::int32_t> missing(count, 1), open;
    auto const reach = [&](std::int32_t id) {
      if (missing[at(id)] > 0 && --missing[at(id)] == 0) open.push_back(id);
    };
    for (std::int32_t id = 0; id < x_.size(); ++id) {
      auto const& e = x_[id];
      if (e.kind == Kind::call) callers.add(e.rule, id);
      if (e.kind == Kind::sequence) missing[at(id)] = e.count;
      for (auto const part : x_.parts(id)) parents.add(part, id);
      if ((e.kind == Kind::sequence && e.count == 0) || (e.kind == Kind::repeat && e.minimum == 0) ||
          (e.kind == Kind::automaton && x_.automaton_of(e).states[0].accepts))
        missing[at(id)] = 0, open.push_back(id);
    }
    for (std::size_t r = 0; r < x_.rules.size(); ++r) rules.add(x_.rules[r].expression, static_cast<std::int32_t>(r));
    parents.sort(), callers.sort(), rules.sort();
    facts_.nullable.assign(x_.rules.size(), 0);
    while (!open.empty()) {
      auto const id = open.back();
      open.pop_back();
      parents.for_each(id, reach);
      rules.for_each(id, [&](std::int32_t rule) {
        facts_.nullable[at(rule)] = 1;
        callers.for_each(rule, reach);
      });
    }
  }

  /// Inlines small rules that call only inlined rules: they are then determinised together with their surroundings.
  template <class = void>
  void choose_in_place() {
    facts_.in_place.assign(x_.rules.size(), 0);
    constexpr std::int64_t little = 48, large = 1 << 20;
    std::vector<std::int64_t> size(at(x_.size()));
    for (auto pass = 0; pass < 3; ++pass) {
      for (std::int32_t id = 0; id < x_.size(); ++id) {  // parts come before the expressions that contain them
        auto const& e = x_[id];
        std::int64_t sum = e.kind == Kind::bytes ? 1 : 0;
        if (e.kind == Kind::automaton) sum = static_cast<std::int64_t>(x_.automaton_of(e).edges.size()) + 1;
        for (auto const part : x_.parts(id)) sum += size[at(part)];
        if (e.kind == Kind::repeat) sum *= (std::max)({1, e.minimum, e.maximum});
        if (e.kind == Kind::call)
          sum = facts_.in_place[at(e.rule)] != 0 ? size[at(x_.rules[at(e.rule)].expression)] : large;
        size[at(id)] = (std::min)(sum, large);
      }
      for (std::size_t r = 0; r < x_.rules.size(); ++r)
        if (size[at(x_.rules[r].expression)] <= little) facts_.in_place[r] = 1;
    }
  }

  template <class = void>
  void close() {
    automaton_.all.push_back({static_cast<std::int32_t>(automaton_.byte_edges.size()),
                              static_cast<std::int32_t>(automaton_.call_edges.size())});
  }

  /// Removes everything that can never reach an end.
  template <class = void>
  void prune() {
    auto const count = at(automaton_.nodes());
    Users from(count), calling(count), callers(x_.rules.size());
    std::vector<std::int32_t> starts(count, -1), open;
    for (std::size_t r = 0; r < automaton_.start.size(); ++r)
      if (automaton_.start[r] >= 0) starts[at(automaton_.start[r])] = static_cast<std::int32_t>(r);
    std::vector<std::uint8_t> useful(count);
    auto const reach = [&](std::int32_t node) {
      if (useful[at(node)] == 0) useful[at(node)] = 1, open.push_back(node);
    };
    for (std::int32_t n = 0; n < automaton_.nodes(); ++n) {
      for (auto const& edge : automaton_.bytes(n)) from.add(edge.to, n);
      for (auto const& edge : automaton_.calls(n)) calling.add(edge.to, n), callers.add(edge.rule, n);
      if (automaton_.end(n)) reach(n);
    }
    from.sort(), calling.sort(), callers.sort();
    auto const live = [&](auto const& edge) {
      return useful[at(edge.to)] != 0 && useful[at(automaton_.start[at(edge.rule)])] != 0;
    };
    auto const look = [&](std::int32_t n) {
      if (std::ranges::any_of(automaton_.calls(n), live)) reach(n);
    };
    while (!open.empty()) {
      auto const node = open.back();
      open.pop_back();
      from.for_each(node, reach);
      calling.for_each(node, look);
      if (starts[at(node)] >= 0) callers.for_each(starts[at(node)], look);
    }
    if (useful[at(automaton_.start[at(automaton_.root)])] == 0)
      refuse(automaton_.root, "no text obeys this rule: it never ends, or demands the impossible");
    auto old = std::exchange(automaton_.byte_edges, {});
    auto old_calls = std::exchange(automaton_.call_edges, {});
    for (std::size_t n = 0; n < count; ++n) {
      auto& node = automaton_.all[n];
      auto const bytes = static_cast<std::int32_t>(automaton_.byte_edges.size());
      auto const calls = static_cast<std::int32_t>(automaton_.call_edges.size());
      for (auto i = node.bytes; i < automaton_.all[n + 1].bytes; ++i)
        if (useful[at(old[at(i)].to)] != 0) automaton_.byte_edges.push_back(old[at(i)]);
      for (auto i = node.calls; i < automaton_.all[n + 1].calls; ++i)
        if (live(old_calls[at(i)])) automaton_.call_edges.push_back(old_calls[at(i)]);
      node.bytes = bytes, node.calls = calls;
      node.last = node.end && at(bytes) == automaton_.byte_edges.size() && at(calls) == automaton_.call_edges.size();
    }
    automaton_.all.pop_back();
    close();
  }

  /// Orders rules by which ones they can begin with; checks that there is no left recursion.
  template <class = void>
  void rank() {
    enum : std::uint8_t { fresh, open, done };
    auto const rules = x_.rules.size();
    std::vector<std::uint8_t> state(rules, fresh);
    automaton_.rank.assign(rules, 0);
    auto next = static_cast<std::int32_t>(rules);
    std::vector<std::pair<std::int32_t, std::size_t>> path;  // rule, and its call to look at next
    for (std::size_t r = 0; r < rules; ++r) {
      if (automaton_.start[r] < 0 || state[r] != fresh) continue;
      path.emplace_back(static_cast<std::int32_t>(r), 0), state[r] = open;
      while (!path.empty()) {
        auto& [rule, i] = path.back();
        auto const calls = automaton_.calls(automaton_.start[at(rule)]);
        if (i == calls.size()) {
          state[at(rule)] = done, automaton_.rank[at(rule)] = --next;
          path.pop_back();
          continue;
        }
        auto const called = calls[i++].rule;
        if (state[at(called)] == fresh) state[at(called)] = open, path.emplace_back(called, 0);
        else if (state[at(called)] == open) refuse_left_recursion(path, called);
      }
    }
  }
  template <class = void>
  void refuse_left_recursion(std::vector<std::pair<std::int32_t, std::size_t>> const& path, std::int32_t rule) const {
    auto const& name = x_.rules[at(rule)].name;
    std::string way;
    auto const from = std::ranges::find(path, rule, &std::pair<std::int32_t, std::size_t>::first);
    for (auto i = from; i != path.end() && i - from < 8; ++i) way += x_.rules[at(i->first)].name + " -> ";
    refuse(rule, "left-recursive: the rule begins with itself (" + way + name +
                     "); write it as a repetition, or with the recursion at the end");
  }
  template <class = void>
  [[noreturn]] void refuse(std::int32_t rule, std::string const& why) const {
    auto const& [name, expression, place] = x_.rules[at(rule)];
    if (!x_.source.empty()) SourceReader("grammar", x_.source, x_.limits()).fail_at(place, name + ": " + why);
    throw std::invalid_argument("sluice: grammar = " + name + ": " + why);
  }

  Expressions const& x_;
  RuleFacts facts_;
  Automaton automaton_;
};

/// \throws std::invalid_argument  see Compiler::compile
inline Automaton compile(Expressions const& expressions, std::int32_t root) {
  return Compiler(expressions).compile(root);
}

}  // namespace sluice::inline v0::detail
