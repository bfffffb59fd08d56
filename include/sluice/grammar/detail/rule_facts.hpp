// SPDX-License-Identifier: Apache-2.0
/// \file
/// What rules need to know of each other before they are compiled.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Facts about the expressions and rules that compile() provides for their graphs.
struct RuleFacts {
  std::vector<std::uint8_t> nullable;  // [expression]: its text may be empty
  std::vector<std::uint8_t> possible;  // [expression]: it has a text; others are left out
  std::vector<std::uint8_t> in_place;  // [rule]: is inlined where it is called
  std::vector<std::int32_t> weight;    // [expression]: about how many places it needs, with repetitions written out
};

/// The reverse of a reference relation: the users of i are the ones that refer to it.
class Users {
 public:
  SLUICE_LAZY explicit Users(std::size_t count) : begins_(count + 1) {}
  SLUICE_LAZY void add(std::int32_t used, std::int32_t user) { pairs_.emplace_back(used, user); }
  SLUICE_LAZY void sort() {
    for (auto const& [used, user] : pairs_) ++begins_[static_cast<std::size_t>(used)];
    std::size_t sum = 0;
    for (auto& begin : begins_) sum += begin, begin = sum;
    users_.resize(sum);
    for (auto const& [used, user] : pairs_) users_[--begins_[static_cast<std::size_t>(used)]] = user;
  }
  template <class Take>
  void for_each(std::int32_t used, Take const& take) const {
    auto const* const begin = begins_.data() + used;
    for (auto i = begin[0]; i < begin[1]; ++i) take(users_[i]);
  }

 private:
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs_;
  std::vector<std::size_t> begins_;
  std::vector<std::int32_t> users_;
};

/// Finds which expressions may be empty, and which have a text at all: both hold for a sequence of all parts, a choice of
/// any, a repetition of none, and where they are given. Both are found at once, as bits.
class FactFinder {
 public:
  using Kind = Expressions::Kind;
  static constexpr std::uint8_t nullable = 1, possible = 2, both = nullable | possible;
  explicit FactFinder(Expressions const& expressions) : x_(expressions) {}

  SLUICE_LAZY void find(RuleFacts& facts) {
    facts_.assign(at(x_.size()), 0);
    for (auto const& rule : x_.rules)
      if (rule.expression >= 0) descend(rule.expression);
    pass();
    if (missed()) spread(nullable), spread(possible);
    facts.nullable.resize(facts_.size()), facts.possible.resize(facts_.size());
    for (std::size_t id = 0; id < facts_.size(); ++id)
      facts.nullable[id] = facts_[id] & nullable, facts.possible[id] = facts_[id] & possible;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static constexpr std::uint8_t opened = 4, closed = 8;  // of descend()

  SLUICE_LAZY std::uint8_t given(Expressions::Expression const& e) const {
    switch (e.kind) {
      case Kind::bytes:
      case Kind::token: return possible;
      case Kind::automaton: {
        auto const& first = x_.automaton_of(e).states[0];
        return first.accepts ? both : first.edges > 0 ? possible : std::uint8_t{0};
      }
      case Kind::call:  // compiled before, or refused later
        if (auto const& rule = x_.rules[at(e.rule)]; rule.expression < 0)
          return rule.other != nullptr && rule.other->empty_text() ? both : possible;
        return 0;
      default: return 0;
    }
  }
  SLUICE_LAZY std::uint8_t held(std::int32_t id) const {
    auto const& e = x_[id];
    unsigned out = 0;
    switch (e.kind) {
      case Kind::sequence:
        out = both;
        for (auto const part : x_.parts(id)) out &= facts_[at(part)];
        break;
      case Kind::choice:
        for (auto const part : x_.parts(id)) out |= facts_[at(part)];
        break;
      case Kind::repeat: out = e.minimum == 0 ? both : facts_[at(x_.parts(id)[0])]; break;
      case Kind::call:
        out = x_.rules[at(e.rule)].expression < 0 ? given(e) : facts_[at(x_.rules[at(e.rule)].expression)];
        break;
      default: out = given(e); break;
    }
    return static_cast<std::uint8_t>(out & both);
  }

  /// Parts and called rules first: finds all but what goes around in a circle.
  SLUICE_LAZY void descend(std::int32_t root) {
    struct Part {
      std::int32_t id, next;  // the next part
    };
    std::vector<Part> path;
    auto const enter = [&](std::int32_t id) {
      if (facts_[at(id)] != 0) return false;
      facts_[at(id)] = opened, path.push_back({id, 0});
      return true;
    };
    enter(root);
    while (!path.empty()) {
      auto& step = path.back();
      auto const id = step.id;
      auto const& e = x_[id];
      auto entered = false;
      if (e.kind == Kind::call) {
        if (auto const to = x_.rules[at(e.rule)].expression; to >= 0 && step.next++ == 0) entered = enter(to);
      } else {
        auto const parts = x_.parts(id);
        while (!entered && at(step.next) < parts.size()) {
          auto const part = parts[at(step.next++)];
          if (leaf(part)) continue;
          entered = enter(part);
          if (entered) break;
        }
      }
      if (entered) continue;
      facts_[at(id)] = static_cast<std::uint8_t>(held(id) | closed);
      path.pop_back();
    }
  }
  /// Without parts; known at once.
  SLUICE_LAZY bool leaf(std::int32_t id) {
    if (auto const kind = x_[id].kind; kind == Kind::bytes) return facts_[at(id)] = possible | closed, true;
    return false;
  }
  /// Parts come before the expressions that contain them.
  SLUICE_LAZY void pass() {
    for (std::int32_t id = 0; id < x_.size(); ++id)
      if ((facts_[at(id)] & both) != both) facts_[at(id)] |= held(id);
  }
  SLUICE_LAZY bool missed() const {
    for (std::int32_t id = 0; id < x_.size(); ++id)
      if (x_[id].kind == Kind::call && (held(id) & ~facts_[at(id)]) != 0) return true;
    return false;
  }

  /// Finds one fact along the references, for rules in any order.
  SLUICE_LAZY void spread(std::uint8_t fact) {
    auto const count = at(x_.size());
    Users parents(count), callers(x_.rules.size()), rules(count);
    std::vector<std::int32_t> missing(count, 1), open;
    for (std::int32_t id = 0; id < x_.size(); ++id) {
      auto const& e = x_[id];
      if (e.kind == Kind::call) callers.add(e.rule, id);
      for (auto const part : x_.parts(id)) parents.add(part, id);
    }
    for (std::size_t r = 0; r < x_.rules.size(); ++r)  // one that nothing calls need not be defined
      if (x_.rules[r].expression >= 0) rules.add(x_.rules[r].expression, static_cast<std::int32_t>(r));
    parents.sort(), callers.sort(), rules.sort();
    auto const reach = [&](std::int32_t id) {
      if (missing[at(id)] > 0 && --missing[at(id)] == 0) open.push_back(id);
    };
    for (std::int32_t id = 0; id < x_.size(); ++id) {
      auto const& e = x_[id];
      missing[at(id)] = e.kind == Kind::sequence ? e.count : 1;
      if ((e.kind == Kind::sequence && e.count == 0) || (e.kind == Kind::repeat && e.minimum == 0) ||
          (given(e) & fact) != 0)
        missing[at(id)] = 0, open.push_back(id);
    }
    while (!open.empty()) {
      auto const id = open.back();
      open.pop_back();
      facts_[at(id)] |= fact;
      parents.for_each(id, reach);
      rules.for_each(id, [&](std::int32_t rule) { callers.for_each(rule, reach); });
    }
  }

  Expressions const& x_;
  std::vector<std::uint8_t> facts_;  // [expression]
};

}  // namespace sluice::inline v0::detail
