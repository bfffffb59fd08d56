// SPDX-License-Identifier: Apache-2.0
/// \file
/// A description of a node by what it can read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/interner.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Describes sets of places so that those with equal descriptions read all texts of up to `depth` bytes alike, and end
/// in them alike. A count is described by how many repetitions must and may follow, as far as a text of that length can
/// tell.
class NodeKey {
 public:
  using Key = std::vector<std::int32_t>;
  using Pair = Interner::Pair;

  /// Compares nodes of one grammar: by its own numbers of places.
  SLUICE_LAZY static Key within(Automaton const& a, std::span<Pair const> set, std::int32_t depth) {
    Key out;
    for (auto const [place, repetitions] : set) {
      out.push_back(place);
      add_count(a, place, repetitions, depth, out);
    }
    return out;
  }
  /// Compares nodes of all grammars: by everything that follows. Empty: it would be long, or the node reads so little
  /// that its tokens are found faster than this.
  SLUICE_LAZY static Key everywhere(Automaton const& a, std::span<Pair const> set, std::int32_t depth) {
    auto const reads_little = [&](Pair pair) {
      auto const& place = a.places[at(pair.first)];
      return place.kind == Place::byte && place.low == place.high;
    };
    if (set.size() < 4 && std::ranges::all_of(set, reads_little)) return {};
    NodeKey key(a);
    for (auto const [place, repetitions] : set) {
      key.refer(place);
      add_count(a, place, repetitions, depth, key.out_);
    }
    key.out_.push_back(-2);
    for (std::size_t i = 0; i < key.order_.size(); ++i) {
      if (key.order_.size() > most_places || key.out_.size() > most_size) return {};
      key.describe(key.order_[i], depth);
    }
    return key.out_;
  }

 private:
  using Place = Automaton::Place;
  static constexpr std::size_t most_places = 400, most_size = 2000;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY explicit NodeKey(Automaton const& a) : a_(a) { slots_.fill(-1); }

  SLUICE_LAZY static void add_count(Automaton const& a, std::int32_t place, std::int32_t repetitions,
                                    std::int32_t depth, Key& out) {
    auto const within = a.places[at(place)].within;
    if (within < 0) return;
    auto const& loop = a.loops[at(within)];
    auto const enough = depth + 1 + (std::max)(loop.reach, 0);
    out.push_back(std::clamp(loop.minimum - repetitions, 0, enough));
    out.push_back(loop.maximum < 0 ? -1 : (std::min)(loop.maximum - repetitions, enough));
  }

  /// Appends the place's number in order of appearance; -1: none.
  SLUICE_LAZY void refer(std::int32_t place) {
    if (place < 0) return out_.push_back(-1);
    auto slot = static_cast<std::size_t>(static_cast<std::uint32_t>(place) * 0x9E3779B1u >> 22);
    while (slots_[slot] >= 0 && order_[at(slots_[slot])] != place) slot = (slot + 1) % slots_.size();
    if (slots_[slot] < 0) {
      if (order_.size() > most_places) return;  // gives up soon
      slots_[slot] = static_cast<std::int32_t>(order_.size()), order_.push_back(place);
    }
    out_.push_back(slots_[slot]);
  }

  SLUICE_LAZY void describe(std::int32_t current, std::int32_t depth) {
    auto const& place = a_.places[at(current)];
    out_.push_back(place.kind | place.low << 8 | place.high << 16);
    switch (place.kind) {
      case Place::split:
        out_.push_back(place.count);
        for (auto const to : a_.targets_of(place)) refer(to);
        break;
      case Place::byte: refer(place.to); break;
      case Place::state:
        out_.push_back(place.count);
        if (place.within >= 0 && a_.loops[at(place.within)].counts_characters())
          out_.push_back(-3 - place.low), out_.push_back(a_.left[at(current)]);
        for (auto const& edge : a_.edges_of(place)) out_.push_back(edge.first | edge.last << 8), refer(edge.to);
        refer(place.to);
        break;
      case Place::call:
        out_.push_back(a_.nullable[at(place.first)]);
        refer(a_.start[at(place.first)]), refer(place.to);
        break;
      case Place::end: break;
      case Place::loop: {
        auto const& loop = a_.loops[at(place.first)];
        auto const enough = depth + 1 + (std::max)(loop.reach, 0);
        out_.push_back((std::min)(loop.minimum, enough));
        out_.push_back(loop.maximum < 0 ? -1 : (std::min)(loop.maximum, enough));
        out_.push_back(loop.reach);
        refer(loop.body), refer(loop.to);
        break;
      }
      case Place::again: refer(a_.loops[at(place.first)].body), refer(a_.loops[at(place.first)].to); break;
    }
  }

  Automaton const& a_;
  Key out_;
  std::vector<std::int32_t> order_;
  std::array<std::int32_t, 1024> slots_{};
};

}  // namespace sluice::inline v0::detail
