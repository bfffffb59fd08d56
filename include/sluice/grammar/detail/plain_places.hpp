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

/// Tells the states from which every plain text can be read, without leaving the automaton. Names that must not be some
/// words, and patterns that may match anywhere, consist of such states. Found for an automaton when a state of it is
/// first asked for. Not thread-safe.
class PlainPlaces {
 public:
  explicit PlainPlaces(Automaton const& a) : a_(a) {}

  /// \param place  of any kind
  template <class = void>
  bool open(std::int32_t place) {
    if (a_.places[at(place)].kind != Place::state) return false;
    open_.resize(a_.places.size(), unknown);
    if (open_[at(place)] == unknown) {
      auto const after = std::ranges::upper_bound(a_.texts, place, {}, &Automaton::Text::first);
      solve(*std::prev(after));
    }
    return open_[at(place)] == yes;
  }

 private:
  using Place = Automaton::Place;
  enum : std::int8_t { unknown = -1, no = 0, yes = 1 };
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  template <class = void>
  void solve(Automaton::Text text) {
    auto const first = text.first, last = text.first + text.count;
    for (auto p = first; p < last; ++p) open_[at(p)] = a_.places[at(p)].kind == Place::state ? yes : no;
    inner_.resize(a_.places.size());
    auto changed = true;
    for (auto round = 0; round < 8 && changed; ++round) {
      changed = false;
      std::fill(inner_.begin() + first, inner_.begin() + last,
                std::array<std::int8_t, 4>{unknown, unknown, unknown, unknown});
      for (auto p = last; p-- > first;) {
        if (open_[at(p)] == no) continue;
        auto const reads = [&](auto const& bytes) { return covers(p, bytes.data(), length(bytes)); };
        if (!std::ranges::all_of(plain_characters, reads)) open_[at(p)] = no, changed = true;
      }
    }
    if (changed) std::fill(open_.begin() + first, open_.begin() + last, std::int8_t{no});  // a long chain
  }
  static int length(std::array<PlainBytes, 4> const& bytes) {
    auto n = 1;
    while (n < 4 && bytes[static_cast<std::size_t>(n)].last != 0) ++n;
    return n;
  }
  /// Whether all texts of these ranges of bytes lead to states that are not known to be closed.
  template <class = void>
  bool covers(std::int32_t p, PlainBytes const* bytes, int count) {
    if (count == 0) return open_[at(p)] != no;
    auto const usual = bytes->first == 0x80 && bytes->last == 0xBF;
    if (usual && inner_[at(p)][at(count)] != unknown) return inner_[at(p)][at(count)] == yes;
    auto const edges = a_.edges_of(a_.places[at(p)]);
    auto edge = std::ranges::lower_bound(edges, bytes->first, {}, &Automaton::ByteEdge::last);
    int next = bytes->first;
    for (; next <= bytes->last && edge != edges.end() && edge->first <= next; ++edge) {
      if (!covers(edge->to, bytes + 1, count - 1)) break;
      next = edge->last + 1;
    }
    if (usual) inner_[at(p)][at(count)] = next > bytes->last ? yes : no;
    return next > bytes->last;
  }

  Automaton const& a_;
  std::vector<std::int8_t> open_;                  // [place]
  std::vector<std::array<std::int8_t, 4>> inner_;  // [place][number of bytes 80..BF that follow]: whether they lead on
};

}  // namespace sluice::inline v0::detail
