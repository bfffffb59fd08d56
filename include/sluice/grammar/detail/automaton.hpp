// SPDX-License-Identifier: Apache-2.0
/// \file
/// A compiled grammar: one graph of places per rule; rules call each other.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// The places of all rules (Thompson 1968). A place continues with a byte or with a text of another rule (it "calls" the
/// rule), or leads on to other places, or its rule's text may end there. Calls are never empty: where a rule's text may
/// be empty, a call also leads on as if nothing were there. Every place can reach an end. Bytes that nothing
/// distinguishes form one class; classes are contiguous ranges of bytes.
///
/// A repetition with a count is one loop: places in its body stand for as many places as it has repetitions, each with
/// the number of those before it. Loops are not nested within a rule: an inner one is a rule of its own.
///
/// There is no left recursion. What reads a token leads nowhere before the automaton is bound to a vocabulary, and a text
/// of counted tokens reads bytes: see TokenBinder.
class Automaton {
 public:
  struct Place {
    enum Kind : std::uint8_t {
      split,  // leads to `count` targets from `first`
      byte,   // reads one of low..high, then `to`
      state,  // of an automaton: reads by one of `count` edges from `first`; leads to `to`, if not negative
      call,   // reads a text of the rule `first`, then `to`
      end,    // of the rule
      loop,   // between repetitions of the loop `first`
      again   // after a repetition of the loop `first`, or behind its text
    };
    Kind kind = split;
    std::uint8_t low = 0, high = 0;  // state: low is 1 between the characters of a text that is counted
    std::int32_t to = -1, first = 0, count = 0;
    std::int32_t within = -1;  // the loop in whose body it is
  };
  struct Loop {
    std::int32_t body, to;          // -1: there is no text
    std::int32_t minimum, maximum;  // -1: any number
    std::int32_t again;             // the place after a repetition
    std::int32_t reach = -1;        // the body is a text, and its characters are counted: the largest of `left`
    bool counts_characters() const { return reach >= 0; }
  };
  struct Text {
    std::int32_t first, count;  // states of one automaton
  };
  struct TokenPlace {
    std::int32_t place, terminal, to;  // a state without edges; bind() makes them
  };
  struct TokenText {
    std::int32_t place, count, loop;  // states with edges that read bytes; bind() makes others, which read tokens
    std::string written;              // for messages
  };
  struct Capture {
    std::int32_t rule, suffix;  // so many bytes at its end are left out
    std::string name;
  };
  struct ByteEdge {
    std::uint8_t first, last;  // bytes
    std::int32_t to;
  };

  std::int32_t nodes() const { return static_cast<std::int32_t>(places.size()); }
  SLUICE_LAZY std::span<std::int32_t const> targets_of(Place const& place) const {
    return std::span(targets).subspan(at(place.first), at(place.count));
  }
  SLUICE_LAZY std::span<ByteEdge const> edges_of(Place const& place) const {
    return std::span(edges).subspan(at(place.first), at(place.count));
  }
  std::int32_t rules() const { return static_cast<std::int32_t>(start.size()); }
  std::int32_t classes() const { return static_cast<std::int32_t>(first_of.size()); }

  std::vector<Place> places;
  std::vector<std::int32_t> targets;  // of splits
  std::vector<ByteEdge> edges;        // of states
  std::vector<Loop> loops;
  std::vector<std::int32_t> left;  // [state of a text that is counted]: the fewest characters to its end
  std::vector<Text> texts;         // in order
  std::vector<TokenPlace> token_places;
  std::vector<TokenText> token_texts;
  std::vector<Capture> captures;  // in order of their rules
  std::vector<TokenTerminal> terminals;
  std::vector<std::int32_t> start;     // [rule]; -1: not used
  std::vector<std::int32_t> rank;      // [rule]: lower than those of the rules that it can begin with by calls alone
  std::vector<std::uint8_t> nullable;  // [rule]: its text may be empty
  std::int32_t root = 0;               // the root rule
  bool behind_space = false;           // a leading space of the text is not part of it
  std::array<std::uint8_t, 256> class_of{};
  std::vector<std::uint8_t> first_of;  // [class]: its first byte

  bool empty_text() const { return nullable[at(root)] != 0; }

  /// Takes over the rules of others, which rank behind its own; returns the number to add to theirs. Classes are not
  /// computed.
  SLUICE_LAZY std::int32_t include(Automaton const& other) {
    auto const place = nodes(), target = static_cast<std::int32_t>(targets.size());
    auto const edge = static_cast<std::int32_t>(edges.size()), loop = static_cast<std::int32_t>(loops.size());
    auto const rule = rules(), terminal = static_cast<std::int32_t>(terminals.size());
    auto const moved = [](std::int32_t i, std::int32_t by) { return i < 0 ? i : i + by; };
    for (auto one : other.places) {
      one.to = moved(one.to, place), one.within = moved(one.within, loop);
      if (one.kind == Place::split) one.first += target;
      if (one.kind == Place::state) one.first += edge;
      if (one.kind == Place::call) one.first += rule;
      if (one.kind == Place::loop || one.kind == Place::again) one.first += loop;
      places.push_back(one);
    }
    targets.reserve(targets.size() + other.targets.size());
    for (auto const one : other.targets) targets.push_back(one + place);
    edges.reserve(edges.size() + other.edges.size());
    for (auto const& one : other.edges) edges.push_back({one.first, one.last, one.to + place});
    for (auto one : other.loops) {
      one.body = moved(one.body, place), one.to = moved(one.to, place), one.again = moved(one.again, place);
      loops.push_back(one);
    }
    left.resize(at(place));
    left.insert(left.end(), other.left.begin(), other.left.end());
    texts.reserve(texts.size() + other.texts.size());
    for (auto const& one : other.texts) texts.push_back({one.first + place, one.count});
    token_places.reserve(token_places.size() + other.token_places.size());
    for (auto const& one : other.token_places)
      token_places.push_back({one.place + place, one.terminal + terminal, one.to + place});
    captures.reserve(captures.size() + other.captures.size());
    for (auto const& one : other.captures) captures.push_back({one.rule + rule, one.suffix, one.name});
    token_texts.reserve(token_texts.size() + other.token_texts.size());
    for (auto const& one : other.token_texts)
      token_texts.push_back({one.place + place, one.count, one.loop + loop, one.written});
    terminals.insert(terminals.end(), other.terminals.begin(), other.terminals.end());
    start.reserve(start.size() + other.start.size());
    for (auto const one : other.start) start.push_back(moved(one, place));
    nullable.insert(nullable.end(), other.nullable.begin(), other.nullable.end());
    auto const ranks = *std::max_element(rank.begin(), rank.end()) + 1;  // all different, for those that are used
    rank.reserve(rank.size() + other.rank.size());
    for (auto const one : other.rank) rank.push_back(one + ranks);
    return rule;
  }

  /// Whether a vocabulary must be known before it can be run.
  bool unbound() const { return !token_places.empty() || !token_texts.empty(); }

  /// The texts of this one, followed by those of another.
  SLUICE_LAZY void append(Automaton const& other) {
    auto const second = include(other) + other.root, end = nodes();  // both are called by one more rule
    places.push_back({.kind = Place::end});
    places.push_back({.kind = Place::call, .to = end, .first = second});
    places.push_back({.kind = Place::call, .to = end + 1, .first = root});
    start.push_back(end + 2);
    nullable.push_back(nullable[at(root)] != 0 && nullable[at(second)] != 0 ? 1 : 0);
    rank.push_back(*std::min_element(rank.begin(), rank.end()) - 1);
    root = rules() - 1;
    classify();
  }

  /// Computes the byte classes. All other members must be set.
  SLUICE_LAZY void classify() {
    if (!left.empty()) left.resize(places.size());
    std::array<bool, 257> begins{};
    auto const read = [&](std::size_t first, std::size_t last) { begins[first] = begins[last + 1] = true; };
    read(0, 255);
    if (behind_space) read(' ', ' ');
    for (auto const& place : places)
      if (place.kind == Place::byte) read(place.low, place.high);
    for (auto const& edge : edges) read(edge.first, edge.last);
    first_of.clear();
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (begins[byte]) first_of.push_back(static_cast<std::uint8_t>(byte));
      class_of[byte] = static_cast<std::uint8_t>(first_of.size() - 1);
    }
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
};

}  // namespace sluice::inline v0::detail
