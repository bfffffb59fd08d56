// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether numbers from a file are a compiled grammar.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

[[noreturn]] inline void fail_grammar(std::string const& what) { throw std::runtime_error("grammar: " + what); }

/// Checks all that runs of an automaton rely on: whatever its texts are, they read nothing outside it, and end.
class AutomatonCheck {
 public:
  /// \throws std::runtime_error  saying which number is wrong
  SLUICE_LAZY static void all(Automaton const& a) {
    AutomatonCheck const check(a);
    check.sizes();
    for (std::int32_t i = 0; i < a.nodes(); ++i) check.place(i);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(a.loops.size()); ++i) check.loop(i);
    check.texts();
    check.tokens();
    check.ranks();
  }

 private:
  using Place = Automaton::Place;
  explicit AutomatonCheck(Automaton const& a) : a_(a) {}
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static bool below(std::int32_t i, std::size_t size) { return i >= 0 && at(i) < size; }

  SLUICE_LAZY static void require_that(bool fits, char const* what, std::int64_t number) {
    if (!fits) fail_grammar(std::string(what) + " " + std::to_string(number) + " is no part of a grammar");
  }

  SLUICE_LAZY void sizes() const {
    auto const rules = a_.start.size();
    require_that(!a_.places.empty() && a_.places.size() < std::size_t{1} << 30, "a number of places", a_.nodes());
    require_that(a_.rank.size() == rules && a_.nullable.size() == rules, "a number of rules", a_.rules());
    require_that(below(a_.root, rules) && a_.start[at(a_.root)] >= 0, "the root", a_.root);
    for (std::int32_t r = 0; r < a_.rules(); ++r) {
      auto const start = a_.start[at(r)];
      require_that(start == -1 || (below(start, a_.places.size()) && enters(-1, start)), "rule", r);
      require_that(a_.nullable[at(r)] <= 1, "rule", r);
    }
    for (auto const& one : a_.captures) require_that(below(one.rule, rules) && one.suffix >= 0, "a capture", one.rule);
  }

  /// Whether a place within this loop may lead to another: a loop is entered by its own place alone, and left by it.
  SLUICE_LAZY bool enters(std::int32_t within, std::int32_t to) const {
    if (!below(to, a_.places.size())) return false;
    auto const& place = a_.places[at(to)];
    return place.within == within || (within < 0 && place.kind == Place::loop);
  }

  SLUICE_LAZY void place(std::int32_t i) const {
    auto const& own = a_.places[at(i)];
    auto const part = [&](std::size_t size) {
      return own.first >= 0 && own.count >= 0 && at(own.first) <= size && at(own.count) <= size - at(own.first);
    };
    auto fits = own.within == -1 || below(own.within, a_.loops.size());
    if (own.kind == Place::split || own.kind == Place::end || own.kind == Place::loop) fits = fits && own.to == -1;
    if (fits && own.within >= 0 && a_.loops[at(own.within)].counts_characters())
      fits = own.kind == Place::state || own.kind == Place::loop || own.kind == Place::again;
    switch (own.kind) {
      case Place::split:
        fits = fits && part(a_.targets.size()) &&
               std::ranges::all_of(a_.targets_of(own), [&](std::int32_t to) { return enters(own.within, to); });
        break;
      case Place::byte: fits = fits && own.low <= own.high && enters(own.within, own.to); break;
      case Place::state: {
        fits = fits && own.low <= 1 && part(a_.edges.size()) && (own.to == -1 || enters(own.within, own.to));
        auto next = 0;
        for (auto const& edge : fits ? a_.edges_of(own) : std::span<Automaton::ByteEdge const>()) {
          fits = fits && edge.first >= next && edge.last >= edge.first && enters(own.within, edge.to);
          next = edge.last + 1;
        }
        break;
      }
      case Place::call:
        fits = fits && below(own.first, a_.start.size()) && a_.start[at(own.first)] >= 0 && enters(own.within, own.to);
        break;
      case Place::end: break;
      case Place::loop:
      case Place::again:
        fits = fits && own.within >= 0 && own.first == own.within;
        if (fits && own.kind == Place::again)
          fits = below(own.to, a_.places.size()) && a_.places[at(own.to)].kind == Place::loop &&
                 a_.places[at(own.to)].first == own.first;
        break;
      default: fits = false;
    }
    require_that(fits, "place", i);
  }

  SLUICE_LAZY void loop(std::int32_t i) const {
    constexpr std::int32_t large = (std::int32_t{1} << 30) - 1;
    auto const& own = a_.loops[at(i)];
    auto fits = own.minimum >= 0 && own.maximum >= -1 && own.reach >= -1 && own.reach <= large &&
                (own.maximum < 0 ? !own.counts_characters() : own.minimum <= own.maximum || own.counts_characters()) &&
                (own.body == -1 || (below(own.body, a_.places.size()) && a_.places[at(own.body)].within == i)) &&
                (own.to == -1 || enters(-1, own.to)) && below(own.again, a_.places.size());
    if (fits) fits = a_.places[at(own.again)].kind == Place::again && a_.places[at(own.again)].first == i;
    // A body that may be empty is repeated for nothing until it has its minimum.
    if (fits && own.minimum > 0 && !own.counts_characters() && own.body >= 0) fits = !reaches(own.body, own.again);
    require_that(fits, "loop", i);
    if (own.counts_characters())
      require_that(a_.left.size() == a_.places.size() &&
                       std::ranges::all_of(a_.left, [&](auto left) { return left >= 0 && left <= large; }),
                   "a number of characters, to the end of loop", i);
  }

  /// Calls take(place) for the places to which one leads without reading anything.
  template <class Take>
  void each_next(Place const& place, Take const& take) const {
    if (place.kind == Place::split)
      for (auto const to : a_.targets_of(place)) take(to);
    if (place.kind == Place::state && place.to >= 0) take(place.to);
    if (place.kind == Place::call && a_.nullable[at(place.first)] != 0) take(place.to);
    if (place.kind == Place::again) take(place.to);
    if (place.kind != Place::loop && place.kind != Place::again) return;
    auto const& loop = a_.loops[at(place.first)];
    if (place.kind == Place::loop && loop.body >= 0) take(loop.body);
    if ((place.kind == Place::again || loop.minimum == 0) && loop.to >= 0) take(loop.to);
  }
  SLUICE_LAZY bool reaches(std::int32_t from, std::int32_t to) const {
    std::vector<std::int32_t> open{from};
    std::vector<bool> seen(a_.places.size());
    while (!open.empty() && open.back() != to) {
      auto const& place = a_.places[at(open.back())];
      open.pop_back();
      if (place.kind == Place::loop) continue;
      each_next(place, [&](std::int32_t next) {
        if (!seen[at(next)]) seen[at(next)] = true, open.push_back(next);
      });
    }
    return !open.empty();
  }

  /// Each state is one of a text; they are in order.
  SLUICE_LAZY void texts() const {
    std::int32_t end = 0;
    std::size_t states = 0;
    for (auto const& [first, count] : a_.texts) {
      require_that(first >= end && count >= 1 && count <= a_.nodes() - first, "a text at place", first);
      end = first + count;
      for (auto p = first; p < end; ++p) states += a_.places[at(p)].kind == Place::state ? 1u : 0u;
    }
    std::size_t all = 0;
    for (auto const& place : a_.places) all += place.kind == Place::state ? 1u : 0u;
    require_that(all == states, "a number of texts", static_cast<std::int64_t>(a_.texts.size()));
  }

  SLUICE_LAZY void tokens() const {
    for (auto const& [place, terminal, to] : a_.token_places)
      require_that(below(place, a_.places.size()) && a_.places[at(place)].kind == Place::state &&
                       below(terminal, a_.terminals.size()) && enters(a_.places[at(place)].within, to),
                   "a token at place", place);
    for (auto const& terminal : a_.terminals)
      for (auto const& [first, last] : terminal.ranges)
        require_that(first >= 0 && last >= first, "a range of tokens from", first);
    for (auto const& text : a_.token_texts) {
      auto fits = below(text.place, a_.places.size()) && text.count >= 1 && text.count <= a_.nodes() - text.place &&
                  below(text.loop, a_.loops.size()) && a_.loops[at(text.loop)].counts_characters() &&
                  a_.loops[at(text.loop)].body == text.place;
      for (auto p = text.place; fits && p < text.place + text.count; ++p) {
        auto const& own = a_.places[at(p)];
        fits = own.kind == Place::state && own.within == text.loop;
        for (auto const& edge : fits ? a_.edges_of(own) : std::span<Automaton::ByteEdge const>())
          fits = fits && edge.to >= text.place && edge.to < text.place + text.count;
      }
      require_that(fits, "a text of tokens at place", text.place);
    }
  }

  /// A rule begins only with rules that rank behind it: so none begins with itself.
  SLUICE_LAZY void ranks() const {
    std::vector<std::int32_t> seen(a_.places.size(), -1), open;
    for (std::int32_t rule = 0; rule < a_.rules(); ++rule) {
      if (a_.start[at(rule)] < 0) continue;
      auto const visit = [&](std::int32_t p) {
        if (seen[at(p)] != rule) seen[at(p)] = rule, open.push_back(p);
      };
      visit(a_.start[at(rule)]);
      while (!open.empty()) {
        auto const& place = a_.places[at(open.back())];
        open.pop_back();
        if (place.kind == Place::call)
          require_that(a_.rank[at(place.first)] > a_.rank[at(rule)], "the rank of rule", place.first);
        if (place.kind == Place::again) {  // behind a body that is empty: what follows the loop
          if (auto const to = a_.loops[at(place.first)].to; to >= 0) visit(to);
          continue;
        }
        each_next(place, visit);
      }
    }
  }

  Automaton const& a_;
};

}  // namespace sluice::inline v0::detail
