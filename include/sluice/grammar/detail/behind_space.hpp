// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grammars for tokenisers that add a space before every text.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Changes an automaton so that it accepts texts whose leading space is not counted: its own texts after a space, and
/// those of its texts that do not begin with a space.
///
/// For the latter, each rule with which a text can begin gets a second version, for its texts that begin with something
/// else: another first node, without that byte, which calls second versions.
class BehindSpace {
 public:
  template <class = void>
  static Automaton of(Automaton automaton) {
    return BehindSpace(std::move(automaton)).make();
  }

 private:
  template <class = void>
  explicit BehindSpace(Automaton automaton) : a_(std::move(automaton)) {}
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  template <class = void>
  Automaton make() {
    std::vector<std::int32_t> rules;  // callees at the beginning come before their callers
    for (std::size_t rule = 0; rule < a_.start.size(); ++rule)
      if (a_.start[rule] >= 0) rules.push_back(static_cast<std::int32_t>(rule));
    std::ranges::sort(rules, {}, [&](std::int32_t rule) { return -a_.rank[at(rule)]; });
    second_.assign(a_.start.size(), -1);
    for (auto const rule : rules) {
      auto const before = a_.byte_edges.size() + a_.call_edges.size();
      copy_but_space(a_.start[at(rule)]);
      if (a_.byte_edges.size() + a_.call_edges.size() > before) second_[at(rule)] = add_rule(rule);
    }
    auto const first = a_.start[at(a_.root)];
    a_.byte_edges.push_back({' ', ' ', first});
    copy_but_space(first);
    a_.all.back().end = a_.end(first);
    a_.root = add_rule(a_.root);
    a_.classify();
    return std::move(a_);
  }

  /// Appends a rule that begins like another one, with the nodes appended since as its first.
  template <class = void>
  std::int32_t add_rule(std::int32_t like) {
    a_.start.push_back(a_.nodes()), a_.rank.push_back(a_.rank[at(like)]);
    a_.all.push_back(
        {static_cast<std::int32_t>(a_.byte_edges.size()), static_cast<std::int32_t>(a_.call_edges.size())});
    return static_cast<std::int32_t>(a_.start.size()) - 1;
  }
  template <class = void>
  void copy_but_space(std::int32_t node) {
    auto const [bytes, calls, end, last] = a_.all[at(node)];
    auto const next = a_.all[at(node) + 1];
    for (auto i = at(bytes); i < at(next.bytes); ++i) {
      auto const edge = a_.byte_edges[i];
      auto const add = [&](int from, int to) {
        if (from <= to)
          a_.byte_edges.push_back({static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to), edge.to});
      };
      add(edge.first, std::min<int>(edge.last, ' ' - 1));
      add(std::max<int>(edge.first, ' ' + 1), edge.last);
    }
    for (auto i = at(calls); i < at(next.calls); ++i)
      if (auto const edge = a_.call_edges[i]; second_[at(edge.rule)] >= 0)
        a_.call_edges.push_back({second_[at(edge.rule)], edge.to});
  }

  Automaton a_;
  std::vector<std::int32_t> second_;  // [rule]: its second version; -1: none, since all its texts begin with a space
};

}  // namespace sluice::inline v0::detail
