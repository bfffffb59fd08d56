// SPDX-License-Identifier: Apache-2.0
/// \file
/// The graph of one rule: an expression becomes places and edges, and these become nodes of an automaton.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Facts about the rules that compile() provides for their graphs.
struct RuleFacts {
  std::vector<std::uint8_t> nullable;  // [rule]: its text may be empty
  std::vector<std::uint8_t> in_place;  // [rule]: is inlined where it is called
};

/// Builds the graph of one rule after another (Thompson 1968) and turns each into nodes (Rabin and Scott 1959): one
/// node for each set of places in which the same texts end, or, if there would be too many, one for each place.
class RuleGraph {
 public:
  using Id = std::int32_t;
  RuleGraph(Expressions const& expressions, RuleFacts const& facts) : expressions_(expressions), facts_(facts) {}

  /// Appends the rule's nodes, without the end of the last node's edges; returns the first.
  /// \throws std::invalid_argument  if all rules together have more places than the limits allow
  template <class = void>
  std::int32_t append_to(Automaton& automaton, Id expression) {
    places_.clear(), targets_.clear();
    auto const end = add({.kind = Place::end});
    auto const first = build(expression, end);
    for (auto const budget : {places_.size() * 8 + 4096, std::size_t{0}})
      if (make_nodes(automaton, first, budget)) break;
    return static_cast<std::int32_t>(automaton.all.size()) - static_cast<std::int32_t>(sets_.size());
  }

 private:
  struct Place {
    enum Kind : std::uint8_t { split, byte, call, end };
    Kind kind = split;
    ByteRange range{};
    Id to = 0;                          // byte, call
    std::int32_t rule = 0;              // call
    std::int32_t first = 0, count = 0;  // split: of the targets
  };
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  template <class = void>
  Id add(Place place) {
    auto const limit = expressions_.limits().size;
    require(++total_ <= limit, "limits.size", limit, "the grammar has more places than that, repetitions written out");
    places_.push_back(place);
    return static_cast<Id>(places_.size()) - 1;
  }
  template <class = void>
  Id split(std::span<Id const> targets) {
    auto const first = static_cast<std::int32_t>(targets_.size());
    targets_.insert(targets_.end(), targets.begin(), targets.end());
    return add({.kind = Place::split, .first = first, .count = static_cast<std::int32_t>(targets.size())});
  }
  template <class = void>
  Id split(Id a, Id b) {
    Id const both[] = {a, b};
    return split(both);
  }

  /// Builds the expression; returns the place from which its texts lead to `to`.
  template <class = void>
  Id build(Id id, Id to) {
    auto const e = expressions_[id];
    auto const parts = expressions_.parts(id);
    using Kind = Expressions::Kind;
    switch (e.kind) {
      case Kind::nothing: return split({});
      case Kind::bytes: return add({.kind = Place::byte, .range = e.range, .to = to});
      case Kind::sequence:
        for (auto i = parts.size(); i-- > 0;) to = build(parts[i], to);
        return to;
      case Kind::choice: {
        std::vector<Id> targets;
        for (auto const part : parts) targets.push_back(build(part, to));
        return split(targets);
      }
      case Kind::repeat: {
        auto first = to;
        if (e.maximum < 0) {
          first = split(to, to);
          auto const body = build(parts[0], first);
          targets_[at(places_[at(first)].first)] = body;
        }
        for (std::int32_t i = e.minimum; i < e.maximum; ++i) first = split(build(parts[0], first), to);
        for (std::int32_t i = 0; i < e.minimum; ++i) {
          auto const before = places_.size();
          first = build(parts[0], first);
          if (places_.size() == before) break;  // a part without places: repetitions add nothing
        }
        return first;
      }
      case Kind::call:
        if (facts_.in_place[at(e.rule)] != 0) return build(expressions_.rules[at(e.rule)].expression, to);
        return add({.kind = Place::call, .to = to, .rule = e.rule});
      case Kind::automaton: {
        auto const& automaton = expressions_.automaton_of(e);
        std::vector<Id> states, ways;
        for (auto const& state : automaton.states) {
          ways.assign(at(state.edges + (state.accepts ? 1 : 0)), to);
          states.push_back(split(ways));
        }
        for (std::size_t i = 0; i < states.size(); ++i)
          for (std::int32_t k = 0; k < automaton.states[i].edges; ++k) {
            auto const& edge = automaton.edges[at(automaton.states[i].first_edge + k)];
            auto const byte = add({.kind = Place::byte, .range = {edge.first, edge.last}, .to = states[at(edge.to)]});
            targets_[at(places_[at(states[i])].first + k)] = byte;
          }
        return states[0];
      }
    }
    return to;
  }

  /// All places, except splits, that can be reached from `from` without reading a byte. Sorted.
  template <class = void>
  std::vector<Id> closure(std::span<Id const> from) {
    if (seen_.size() < places_.size()) seen_.resize(places_.size());
    std::vector<Id> out, open;
    touched_.clear();
    auto const visit = [&](Id place) {
      if (seen_[at(place)] != 0) return;
      seen_[at(place)] = 1, touched_.push_back(place), open.push_back(place);
    };
    for (auto const place : from) visit(place);
    while (!open.empty()) {
      auto const id = open.back();
      auto const& place = places_[at(id)];
      open.pop_back();
      if (place.kind == Place::split)
        for (std::int32_t i = 0; i < place.count; ++i) visit(targets_[at(place.first + i)]);
      else out.push_back(id);
      if (place.kind == Place::call && facts_.nullable[at(place.rule)] != 0) visit(place.to);
    }
    for (auto const place : touched_) seen_[at(place)] = 0;
    std::sort(out.begin(), out.end());
    return out;
  }

  template <class = void>
  std::int32_t number(std::vector<Id> set) {
    auto const [it, fresh] = numbers_.try_emplace(std::move(set), static_cast<std::int32_t>(sets_.size()));
    if (fresh) sets_.push_back(&it->first), weight_ += it->first.size();
    bound(weight_);
    return it->second;
  }
  /// Checks the number of edges: there may be too many for sets of places, or for the limits.
  template <class = void>
  void bound(std::size_t ways) {
    auto const limit = static_cast<std::size_t>(expressions_.limits().size) * 4;
    if (budget_ > 0) over_ = over_ || ways > limit || weight_ > budget_;
    else require(ways <= limit, "limits.size", limit / 4, "the grammar has more than four times as many ways on");
  }
  /// The node of a single place and its closure, which is computed once.
  template <class = void>
  std::int32_t number_of(Id place) {
    auto& known = numbers_of_places_[at(place)];
    if (known < 0) known = number(closure({&place, 1}));
    return known;
  }

  /// \param budget  maximum number of places in all sets; 0: one set per place, none with several
  template <class = void>
  bool make_nodes(Automaton& automaton, Id first, std::size_t budget) {
    auto const nodes = automaton.all.size(), bytes = automaton.byte_edges.size(), calls = automaton.call_edges.size();
    auto const base = static_cast<std::int32_t>(nodes);
    numbers_.clear(), sets_.clear(), weight_ = 0, budget_ = budget, over_ = false;
    if (budget == 0) numbers_of_places_.assign(places_.size(), -1);
    number(closure({&first, 1}));
    for (std::size_t i = 0; i < sets_.size() && !over_; ++i) {
      auto const& set = *sets_[i];
      automaton.all.push_back({static_cast<std::int32_t>(automaton.byte_edges.size()),
                               static_cast<std::int32_t>(automaton.call_edges.size())});
      automaton.all.back().end =
          std::any_of(set.begin(), set.end(), [&](Id p) { return places_[at(p)].kind == Place::end; });
      bound(automaton.byte_edges.size() + automaton.call_edges.size() + set.size());
      if (budget == 0) each_edge(automaton, set, base);
      else joined_edges(automaton, set, base);
    }
    if (over_) automaton.all.resize(nodes), automaton.byte_edges.resize(bytes), automaton.call_edges.resize(calls);
    return !over_;
  }

  template <class = void>
  void each_edge(Automaton& automaton, std::vector<Id> const& set, std::int32_t base) {
    for (auto const id : set) {
      auto const& place = places_[at(id)];
      if (place.kind == Place::end) continue;
      auto const to = base + number_of(place.to);
      if (place.kind == Place::byte) automaton.byte_edges.push_back({place.range.first, place.range.last, to});
      else automaton.call_edges.push_back({place.rule, to});
    }
  }

  template <class = void>
  void joined_edges(Automaton& automaton, std::vector<Id> const& set, std::int32_t base) {
    std::vector<Id> to, gone, kept;
    std::map<std::int32_t, std::vector<Id>> by_rule;
    std::vector<std::pair<std::int32_t, Id>> opens, closes;  // byte, place
    for (auto const id : set) {
      auto const& place = places_[at(id)];
      if (place.kind == Place::call) by_rule[place.rule].push_back(place.to);
      if (place.kind != Place::byte) continue;
      opens.emplace_back(place.range.first, place.to), closes.emplace_back(place.range.last + 1, place.to);
    }
    for (auto const& [rule, targets] : by_rule) automaton.call_edges.push_back({rule, base + number(closure(targets))});
    std::sort(opens.begin(), opens.end()), std::sort(closes.begin(), closes.end());
    // Goes through the bytes in order; `to`: the targets of ranges that have begun and not ended.
    std::size_t open = 0, close = 0;
    while (close < closes.size() && !over_) {
      auto const first = open < opens.size() ? (std::min)(opens[open].first, closes[close].first) : closes[close].first;
      gone.clear(), kept.clear();
      while (close < closes.size() && closes[close].first == first) gone.push_back(closes[close++].second);
      std::sort(to.begin(), to.end());
      std::ranges::set_difference(to, gone, std::back_inserter(kept));
      to.swap(kept);
      while (open < opens.size() && opens[open].first == first) to.push_back(opens[open++].second);
      if (to.empty()) continue;
      auto const last =
          (open < opens.size() ? (std::min)(opens[open].first, closes[close].first) : closes[close].first) - 1;
      auto const node = base + number(closure(to));
      if (auto& edges = automaton.byte_edges; edges.size() > static_cast<std::size_t>(automaton.all.back().bytes) &&
                                              edges.back().to == node && edges.back().last + 1 == first)
        edges.back().last = static_cast<std::uint8_t>(last);
      else edges.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), node});
    }
  }

  Expressions const& expressions_;
  RuleFacts const& facts_;
  std::int32_t total_ = 0;
  std::vector<Place> places_;
  std::vector<Id> targets_;
  std::vector<std::uint8_t> seen_;  // [place]
  std::vector<Id> touched_;
  std::map<std::vector<Id>, std::int32_t> numbers_;
  std::vector<std::vector<Id> const*> sets_;  // [node of this rule]
  std::size_t weight_ = 0, budget_ = 0;
  bool over_ = false;  // too many sets of places: use one node per place
  std::vector<std::int32_t> numbers_of_places_;
};

}  // namespace sluice::inline v0::detail
