// SPDX-License-Identifier: Apache-2.0
/// \file
/// What rules need to know of each other before they are compiled.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/expressions.hpp>

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
  template <class = void>
  explicit Users(std::size_t count) : begins_(count + 1) {}
  template <class = void>
  void add(std::int32_t used, std::int32_t user) {
    pairs_.emplace_back(used, user);
  }
  template <class = void>
  void sort() {
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

/// Finds expressions whose text may be empty, and those that have a text at all.
template <class = void>
void find_facts(Expressions const& x, RuleFacts& facts) {
  using Kind = Expressions::Kind;
  auto const at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  auto const count = at(x.size());
  Users parents(count), callers(x.rules.size()), rules(count);
  std::vector<std::int32_t> missing(count, 1), open;
  for (std::int32_t id = 0; id < x.size(); ++id) {
    auto const& e = x[id];
    if (e.kind == Kind::call) callers.add(e.rule, id);
    for (auto const part : x.parts(id)) parents.add(part, id);
  }
  for (std::size_t r = 0; r < x.rules.size(); ++r)  // one that nothing calls need not be defined
    if (x.rules[r].expression >= 0) rules.add(x.rules[r].expression, static_cast<std::int32_t>(r));
  parents.sort(), callers.sort(), rules.sort();
  auto const reach = [&](std::int32_t id) {
    if (missing[at(id)] > 0 && --missing[at(id)] == 0) open.push_back(id);
  };
  auto const spread = [&](std::vector<std::uint8_t>& fact, auto const& given) {
    fact.assign(count, 0);
    for (std::int32_t id = 0; id < x.size(); ++id) {
      auto const& e = x[id];
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
  };
  spread(facts.nullable, [&](Expressions::Expression const& e) {
    if (e.kind == Kind::call) return x.rules[at(e.rule)].other != nullptr && x.rules[at(e.rule)].other->empty_text();
    return e.kind == Kind::automaton && x.automaton_of(e).states[0].accepts;
  });
  spread(facts.possible, [&](Expressions::Expression const& e) {
    if (e.kind == Kind::automaton) return x.automaton_of(e).states[0].accepts || x.automaton_of(e).states[0].edges > 0;
    return e.kind == Kind::bytes || e.kind == Kind::token ||
           (e.kind == Kind::call && x.rules[at(e.rule)].expression < 0);  // compiled before, or refused later
  });
}

}  // namespace sluice::inline v0::detail
