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
  std::vector<std::int64_t> weight;    // [expression]: about how many places it needs, with repetitions written out
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

/// Finds facts about expressions that hold for a sequence of all parts, a choice of any, a repetition of none, and where they are given.
class FactFinder {
 public:
  using Kind = Expressions::Kind;
  explicit FactFinder(Expressions const& expressions) : x_(expressions) {}

  /// Parts come before the expressions that contain them, so few passes find it where most calls come after their rules.
  template <class Given>
  void find(std::vector<std::uint8_t>& fact, Given const& given) const {
    fact.assign(at(x_.size()), 0);
    for (auto pass = 0; pass < 4; ++pass) {
      auto missed = false;
      for (std::int32_t id = 0; id < x_.size(); ++id)
        if (fact[at(id)] == 0 && holds(fact, id, given)) fact[at(id)] = 1;
      for (std::int32_t id = 0; id < x_.size() && !missed; ++id)
        missed = x_[id].kind == Kind::call && fact[at(id)] == 0 && holds(fact, id, given);
      if (!missed) return;
    }
    spread(fact, given);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  template <class Given>
  bool holds(std::vector<std::uint8_t> const& fact, std::int32_t id, Given const& given) const {
    auto const& e = x_[id];
    auto const has = [&](std::int32_t part) { return fact[at(part)] != 0; };
    switch (e.kind) {
      case Kind::sequence: return std::ranges::all_of(x_.parts(id), has);
      case Kind::choice: return std::ranges::any_of(x_.parts(id), has);
      case Kind::repeat: return e.minimum == 0 || has(x_.parts(id)[0]);
      case Kind::call: return x_.rules[at(e.rule)].expression < 0 ? given(e) : has(x_.rules[at(e.rule)].expression);
      default: return given(e);
    }
  }

  /// The same along the references, for rules in any order.
  template <class Given>
  void spread(std::vector<std::uint8_t>& fact, Given const& given) const {
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
    fact.assign(count, 0);
    for (std::int32_t id = 0; id < x_.size(); ++id) {
      auto const& e = x_[id];
      missing[at(id)] = e.kind == Kind::sequence ? e.count : 1;
      if ((e.kind == Kind::sequence && e.count == 0) || (e.kind == Kind::repeat && e.minimum == 0) || given(e))
        missing[at(id)] = 0, open.push_back(id);
    }
    while (!open.empty()) {
      auto const id = open.back();
      open.pop_back();
      fact[at(id)] = 1;
      parents.for_each(id, reach);
      rules.for_each(id, [&](std::int32_t rule) { callers.for_each(rule, reach); });
    }
  }

  Expressions const& x_;
};

/// Finds expressions that may be empty, and those that have a text at all.
SLUICE_LAZY void find_facts(Expressions const& x, RuleFacts& facts) {
  using Kind = Expressions::Kind;
  auto const rule_of = [&](Expressions::Expression const& e) -> auto const& {
    return x.rules[static_cast<std::size_t>(e.rule)];
  };
  FactFinder const finder(x);
  finder.find(facts.nullable, [&](Expressions::Expression const& e) {
    if (e.kind == Kind::call) return rule_of(e).other != nullptr && rule_of(e).other->empty_text();
    return e.kind == Kind::automaton && x.automaton_of(e).states[0].accepts;
  });
  finder.find(facts.possible, [&](Expressions::Expression const& e) {
    if (e.kind == Kind::automaton) return x.automaton_of(e).states[0].accepts || x.automaton_of(e).states[0].edges > 0;
    return e.kind == Kind::bytes || e.kind == Kind::token ||
           (e.kind == Kind::call && rule_of(e).expression < 0);  // compiled before, or refused later
  });
}

}  // namespace sluice::inline v0::detail
