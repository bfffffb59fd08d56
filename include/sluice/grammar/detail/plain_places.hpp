// SPDX-License-Identifier: Apache-2.0
/// \file
/// The states of automata of texts in which any plain characters may follow.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/plain_text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Tells how many plain characters can be read from the states of automata, whichever they are. Names that must not be
/// some words, and patterns that may match anywhere, have states from which every plain text can be read; patterns that
/// count have others. Found for an automaton when a state of it is first asked for. Not thread-safe.
class PlainPlaces {
 public:
  explicit PlainPlaces(Automaton const& a) : a_(a) {}

  /// The number of plain characters that can be read from a place without leaving the automaton, whatever is counted;
  /// PlainText::unlimited: any. \param place  of any kind
  SLUICE_LAZY std::int32_t length(std::int32_t place) {
    if (a_.places[at(place)].kind != Place::state) return 0;
    length_.resize(a_.places.size(), unknown);
    if (length_[at(place)] == unknown) {
      auto const after = std::ranges::upper_bound(a_.texts, place, {}, &Automaton::Text::first);
      solve(*std::prev(after));
    }
    return length_[at(place)];
  }

 private:
  using Place = Automaton::Place;
  static constexpr std::int32_t unknown = -1;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  /// The bytes that may come next within a character, and the number of the rest behind them; 0: the character ends.
  struct Rest {
    PlainBytes bytes;
    std::int32_t then;
  };
  static constexpr std::array<Rest, 13> rests{{{{0, 0}, 0},  // not used
                                               {{0x80, 0xBF}, 0},
                                               {{0x80, 0xBF}, 1},
                                               {{0x80, 0xBF}, 2},
                                               {{0xA0, 0xBF}, 1},
                                               {{0x80, 0x9F}, 1},
                                               {{0x90, 0xBF}, 2},
                                               {{0x80, 0x8F}, 2},
                                               {{0x80, 0x80}, 10},
                                               {{0x80, 0x80}, 11},
                                               {{0x80, 0xA7}, 0},
                                               {{0xAA, 0xBF}, 0},
                                               {{0x81, 0xBF}, 1}}};
  /// The same at the beginning: as plain_characters.
  static constexpr std::array<Rest, 15> firsts{{{{0x20, 0x21}, 0},
                                                {{0x23, 0x5B}, 0},
                                                {{0x5D, 0x7E}, 0},
                                                {{0xC2, 0xDF}, 1},
                                                {{0xE0, 0xE0}, 4},
                                                {{0xE1, 0xE1}, 2},
                                                {{0xE2, 0xE2}, 8},
                                                {{0xE2, 0xE2}, 9},
                                                {{0xE2, 0xE2}, 12},
                                                {{0xE3, 0xEC}, 2},
                                                {{0xED, 0xED}, 5},
                                                {{0xEE, 0xEF}, 2},
                                                {{0xF0, 0xF0}, 6},
                                                {{0xF1, 0xF3}, 3},
                                                {{0xF4, 0xF4}, 7}}};

  /// Finds lengths backwards, from places where a plain character cannot be read. What is numbered is a place, and how
  /// much of a character has been read before it.
  SLUICE_LAZY void solve(Automaton::Text text) {
    constexpr std::int32_t kinds = rests.size();
    auto const size = at(text.count * kinds);
    std::vector<std::pair<std::int32_t, std::int32_t>> leads;  // to, from; some twice
    std::vector<std::int32_t> left(size, unlimited), open, next, todo;
    std::vector<std::uint8_t> seen(size);
    auto const visit = [&](std::int32_t from, std::int32_t place, std::int32_t rest) {
      auto const to = (place - text.first) * kinds + rest;
      leads.emplace_back(to, from);
      if (rest > 0 && std::exchange(seen[at(to)], std::uint8_t{1}) == 0) todo.push_back(to);
    };
    auto const read = [&](std::int32_t from, std::int32_t place, PlainBytes bytes, std::int32_t rest) {
      auto const edges = a_.edges_of(a_.places[at(place)]);
      auto edge = std::ranges::lower_bound(edges, bytes.first, {}, &Automaton::ByteEdge::last);
      int byte = bytes.first;
      auto const inside = [&](std::int32_t to) { return to >= text.first && to < text.first + text.count; };
      for (; byte <= bytes.last && edge != edges.end() && edge->first <= byte && inside(edge->to); ++edge) {
        visit(from, edge->to, rest);
        byte = edge->last + 1;
      }
      if (byte <= bytes.last && left[at(from)] != 0) left[at(from)] = 0, open.push_back(from);
    };
    for (auto p = text.first; p < text.first + text.count; ++p)
      if (a_.places[at(p)].kind == Place::state)
        for (auto const& [bytes, rest] : firsts) read((p - text.first) * kinds, p, bytes, rest);
      else left[at((p - text.first) * kinds)] = 0, open.push_back((p - text.first) * kinds);
    while (!todo.empty()) {
      auto const from = todo.back();
      todo.pop_back();
      auto const& [bytes, then] = rests[at(from % kinds)];
      read(from, text.first + from / kinds, bytes, then);
    }
    std::vector<std::int32_t> begins(size + 1), befores(leads.size());
    for (auto const& [to, from] : leads) ++begins[at(to)];
    std::int32_t sum = 0;
    for (auto& begin : begins) sum += begin, begin = sum;
    for (auto const& [to, from] : leads) befores[at(--begins[at(to)])] = from;
    for (std::int32_t count = 0; !open.empty(); ++count, open.swap(next), next.clear())
      while (!open.empty()) {
        auto const to = open.back();
        open.pop_back();
        auto const ends = to % kinds == 0 ? 1 : 0;  // a character
        for (auto i = begins[at(to)]; i < begins[at(to) + 1]; ++i)
          if (auto const before = befores[at(i)]; left[at(before)] > count + ends)
            left[at(before)] = count + ends, (ends > 0 ? next : open).push_back(before);
      }
    for (std::int32_t i = 0; i < text.count; ++i) length_[at(text.first + i)] = left[at(i * kinds)];
  }
  static constexpr auto unlimited = PlainText::unlimited;

  Automaton const& a_;
  std::vector<std::int32_t> length_;  // [place]
};

}  // namespace sluice::inline v0::detail
