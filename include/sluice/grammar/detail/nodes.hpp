// SPDX-License-Identifier: Apache-2.0
/// \file
/// The places of a grammar as deterministic automata, one per rule.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/interner.hpp>
#include <sluice/grammar/detail/plain_places.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/stable_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Nodes: one for each set of places in which the same texts end (Rabin and Scott 1959). They are made when they are
/// first reached. A place of a loop's body comes with the number of repetitions before it, so a count needs no places,
/// only a node for each number reached; where texts can be split into repetitions in several ways, a node has several
/// numbers. Not thread-safe.
class Nodes {
 public:
  using Pair = Interner::Pair;  // place, number of repetitions before it
  struct CallEdge {
    std::int32_t rule, to;
  };
  static constexpr std::int32_t none = 0;  ///< the empty set

  SLUICE_LAZY explicit Nodes(Automaton const& a) : a_(a), plain_places_(a), starts_(a.start.size(), -1) {
    marks_.resize(64);
    (void)number({});
  }

  std::int32_t size() const { return sets_.size(); }
  std::span<Pair const> places(std::int32_t node) const { return sets_[node]; }
  bool end(std::int32_t node) const { return (all_[at(node)].flags & ends) != 0; }  ///< the rule's text may end here
  bool last(std::int32_t node) const { return all_[at(node)].flags == ends; }  ///< the rule's text always ends here
  bool reads(std::int32_t node) const { return (all_[at(node)].flags & bytes_follow) != 0; }  ///< a byte may follow

  /// The first node of a rule.
  SLUICE_LAZY std::int32_t start(std::int32_t rule) {
    if (starts_[at(rule)] < 0) starts_[at(rule)] = of({a_.start[at(rule)], 0});
    return starts_[at(rule)];
  }
  /// The node of one place.
  SLUICE_LAZY std::int32_t of(Pair place) {
    from_.assign(1, place);
    return close();
  }
  /// The node after a byte of this class.
  SLUICE_LAZY std::int32_t next(std::int32_t node, std::uint8_t c) {
    auto row = all_[at(node)].row;
    if (row < 0) {
      row = static_cast<std::int32_t>(rows_.size() / at(a_.classes()));
      rows_.resize(rows_.size() + at(a_.classes()));
      all_[at(node)].row = row;
    }
    auto& cell = rows_[at(row) * at(a_.classes()) + c];
    if (cell == 0) {
      read(node, a_.first_of[c]);
      cell = (from_.empty() ? none : close()) + 1;
    }
    return cell - 1;
  }
  /// Valid until the next call.
  SLUICE_LAZY std::span<CallEdge const> calls(std::int32_t node) {
    if ((all_[at(node)].flags & calls_follow) == 0) return {};
    if (all_[at(node)].calls < 0) make_calls(node);
    auto const& one = all_[at(node)];
    return std::span(calls_).subspan(at(one.calls), at(one.count));
  }
  /// PlainText::unlimited if any plain text can be read here; a number if this is so for plain texts of up to so many
  /// characters, and for no longer ones. Otherwise, or if it is hard to tell, 0.
  SLUICE_LAZY std::int32_t plain_run(std::int32_t node) {
    if (all_[at(node)].plain < 0) {
      auto const found = find_plain_run(node);
      all_[at(node)].plain = found;
    }
    return all_[at(node)].plain;
  }
  /// At least so many plain characters can be read here, whichever they are.
  SLUICE_LAZY std::int32_t plain_length(std::int32_t node) {
    auto const run = plain_run(node);
    if (run == PlainText::unlimited) return run;
    if (all_[at(node)].length < 0) {
      auto length = run;
      for (auto const [place, count] : sets_[node]) {
        auto own = plain_places_.length(place);
        if (auto const within = a_.places[at(place)].within; own > 0 && within >= 0)
          if (auto const& loop = a_.loops[at(within)]; loop.counts_characters())
            own = (std::min)(own, loop.maximum - count - loop.reach);
        length = (std::max)(length, own);
      }
      all_[at(node)].length = length;
    }
    return all_[at(node)].length;
  }
  std::size_t bytes() const {
    return sets_.bytes() + rows_.size() * sizeof(std::int32_t) + calls_.size() * sizeof(CallEdge) +
           all_.size() * sizeof(Node);
  }

 private:
  using Place = Automaton::Place;
  enum : std::uint8_t { ends = 1, bytes_follow = 2, calls_follow = 4 };
  struct Node {
    std::int32_t row = -1;               // of rows_
    std::int32_t calls = -1, count = 0;  // of calls_
    std::int32_t plain = -1;             // as plain_run(); -1: unknown
    std::int32_t length = -1;            // as plain_length(); -1: unknown
    std::uint8_t flags = 0;
  };
  struct Mark {
    Pair key{};
    std::uint32_t time = 0;
  };
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY std::int32_t number(std::span<Pair const> set) {
    if (all_.size() == all_.capacity()) all_.reserve(2 * all_.size() + 16);  // first, so that a set has its node
    auto const id = sets_.intern(set);
    if (at(id) < all_.size()) return id;
    std::uint8_t flags = 0;
    for (auto const [p, k] : set) {
      auto const kind = a_.places[at(p)].kind;
      flags = static_cast<std::uint8_t>(flags | (kind == Place::end    ? ends
                                                 : kind == Place::call ? calls_follow
                                                                       : bytes_follow));
    }
    all_.push_back({.flags = flags});
    return id;
  }

  /// Puts what follows a byte at a node into from_.
  SLUICE_LAZY void read(std::int32_t node, std::uint8_t byte) {
    from_.clear();
    for (auto const [p, k] : sets_[node]) {
      auto const& place = a_.places[at(p)];
      if (place.kind == Place::byte) {
        if (place.low <= byte && byte <= place.high) from_.push_back({place.to, k});
      } else if (place.kind == Place::state) {
        auto const edges = a_.edges_of(place);
        auto const edge = std::ranges::lower_bound(edges, byte, {}, &Automaton::ByteEdge::last);
        if (edge == edges.end() || edge->first > byte) continue;
        auto const to = edge->to;
        if (place.within < 0 || !a_.loops[at(place.within)].counts_characters()) {
          from_.push_back({to, k});
          continue;
        }
        auto const count = k + a_.places[at(to)].low;
        if (count <= a_.loops[at(place.within)].maximum - a_.left[at(to)]) from_.push_back({to, count});
      }
    }
  }

  SLUICE_LAZY void make_calls(std::int32_t node) {
    struct Call {
      std::int32_t rule;
      Pair to;
      auto operator<=>(Call const&) const = default;
    };
    std::vector<Call> all;
    for (auto const [p, k] : sets_[node])
      if (auto const& place = a_.places[at(p)]; place.kind == Place::call) all.push_back({place.first, {place.to, k}});
    std::sort(all.begin(), all.end());
    std::vector<CallEdge> made;
    for (std::size_t i = 0; i < all.size();) {
      auto const rule = all[i].rule;
      from_.clear();
      for (; i < all.size() && all[i].rule == rule; ++i) from_.push_back(all[i].to);
      made.push_back({rule, close()});
    }
    auto const first = static_cast<std::int32_t>(calls_.size());
    calls_.insert(calls_.end(), made.begin(), made.end());
    all_[at(node)].calls = first;
    all_[at(node)].count = static_cast<std::int32_t>(made.size());
  }

  SLUICE_LAZY std::int32_t find_plain_run(std::int32_t node) {
    for (auto const& pair : sets_[node])
      if (!counted_text(pair.first) && plain_places_.length(pair.first) == PlainText::unlimited)
        return PlainText::unlimited;
    if (std::ranges::any_of(sets_[node], [&](Pair pair) { return counted_text(pair.first); })) return 0;
    if (all_[at(node)].flags != bytes_follow) return 0;
    for (auto const [place, repetitions] : sets_[node]) {
      auto const within = a_.places[at(place)].within;
      if (within < 0) continue;
      auto const& loop = a_.loops[at(within)];
      if (loop.maximum >= 0 && repetitions >= loop.maximum) return 0;
      if (of({a_.places[at(loop.again)].to, repetitions}) != node) return 0;
      plain_loops_.resize(a_.loops.size(), -1);
      auto& known = plain_loops_[at(within)];
      if (known < 0) known = reads_plain(loop, node, repetitions) ? 1 : 0;
      return known == 0 ? 0 : loop.maximum < 0 ? PlainText::unlimited : loop.maximum - repetitions;
    }
    return plain_leads(node, node) ? PlainText::unlimited : 0;
  }
  SLUICE_LAZY bool counted_text(std::int32_t place) const {
    auto const within = a_.places[at(place)].within;
    return within >= 0 && a_.loops[at(within)].counts_characters();
  }
  /// Whether each repetition reads a plain character, whichever it is, and nothing plain follows the last. It is the same
  /// for any number of repetitions.
  SLUICE_LAZY bool reads_plain(Automaton::Loop const& loop, std::int32_t node, std::int32_t repetitions) {
    auto const after = loop.maximum < 0 ? (std::min)(repetitions + 1, loop.minimum) : repetitions + 1;
    if (!plain_leads(node, of({a_.places[at(loop.again)].to, after}))) return false;
    if (loop.to < 0) return true;
    auto const exit = of({loop.to, 0});
    if (all_[at(exit)].flags != bytes_follow) return false;
    return std::ranges::none_of(plain_characters, [&](auto const& bytes) {
      for (int c = a_.class_of[bytes[0].first]; c <= a_.class_of[bytes[0].last]; ++c)
        if (next(exit, static_cast<std::uint8_t>(c)) != none) return true;
      return false;
    });
  }
  /// Whether every plain character leads from one node to the other.
  SLUICE_LAZY bool plain_leads(std::int32_t from, std::int32_t to) {
    return std::ranges::all_of(plain_characters, [&](auto const& bytes) { return leads(from, to, bytes.data(), 4); });
  }
  SLUICE_LAZY bool leads(std::int32_t from, std::int32_t to, PlainBytes const* bytes, std::int32_t most) {
    auto const last = most == 1 || bytes[1].last == 0;
    for (int c = a_.class_of[bytes->first]; c <= a_.class_of[bytes->last]; ++c) {
      auto const after = next(from, static_cast<std::uint8_t>(c));
      if (last ? after != to : all_[at(after)].flags != bytes_follow || !leads(after, to, bytes + 1, most - 1))
        return false;
    }
    return true;
  }

  /// Whether it was not there before.
  SLUICE_LAZY bool mark(Pair pair) {
    if (marked_ * 2 >= marks_.size()) {
      auto old = std::vector<Mark>(marks_.size() * 2);
      old.swap(marks_);
      for (auto const& one : old)
        if (one.time == time_) marks_[slot(one.key)] = one;
    }
    auto& one = marks_[slot(pair)];
    if (one.time == time_) return false;
    one = {pair, time_}, ++marked_;
    return true;
  }
  SLUICE_LAZY std::size_t slot(Pair pair) const {
    auto const h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.first)) << 32 |
                    static_cast<std::uint32_t>(pair.second)) *
                   0x9E3779B97F4A7C15u;
    std::size_t i = static_cast<std::uint32_t>(h >> 32) & (marks_.size() - 1);
    while (marks_[i].time == time_ && marks_[i].key != pair) i = (i + 1) & (marks_.size() - 1);
    return i;
  }

  /// The node of all places that can be reached from those in from_ without reading anything.
  SLUICE_LAZY std::int32_t close() {
    if (from_.size() == 1) {
      auto const& place = a_.places[at(from_[0].first)];
      if (place.kind == Place::byte || place.kind == Place::end || (place.kind == Place::state && place.to < 0))
        return number(from_);
    }
    if (++time_ == 0) marks_.assign(marks_.size(), {}), time_ = 1;
    marked_ = 0, out_.clear(), open_.clear(), least_.clear();
    auto const visit = [&](Pair pair) {
      if (mark(pair)) open_.push_back(pair);
    };
    auto counts = false;
    for (auto const pair : from_) visit(pair);
    while (!open_.empty()) {
      auto const pair = open_.back();
      auto const& place = a_.places[at(pair.first)];
      open_.pop_back();
      counts = counts || place.within >= 0;
      switch (place.kind) {
        case Place::split:
          for (auto const to : a_.targets_of(place)) visit({to, pair.second});
          break;
        case Place::byte:
        case Place::end: out_.push_back(pair); break;
        case Place::state:
          if (place.count > 0) out_.push_back(pair);
          if (place.to >= 0) visit({place.to, pair.second});
          break;
        case Place::call:
          out_.push_back(pair);
          if (a_.nullable[at(place.first)] != 0) visit({place.to, pair.second});
          break;
        case Place::loop: {
          auto const& loop = a_.loops[at(place.first)];
          if (loop.counts_characters()) {
            if (loop.body >= 0 && a_.left[at(loop.body)] <= loop.maximum) visit({loop.body, 0});
            break;
          }
          if (!least(place.first, loop, pair.second)) break;
          if (loop.body >= 0 && (loop.maximum < 0 || pair.second < loop.maximum)) visit({loop.body, pair.second});
          if (loop.to >= 0 && pair.second >= loop.minimum) visit({loop.to, 0});
          break;
        }
        case Place::again: {
          auto const& loop = a_.loops[at(place.first)];
          if (loop.counts_characters()) {
            if (loop.to >= 0) visit({loop.to, 0});
            break;
          }
          visit({place.to, loop.maximum < 0 ? (std::min)(pair.second + 1, loop.minimum) : pair.second + 1});
          break;
        }
      }
    }
    std::sort(out_.begin(), out_.end());
    if (counts && out_.size() > 1) reduce();
    return number(out_);
  }

  /// Whether no smaller number at which the loop may be left was seen: with more repetitions to go, there are more texts.
  /// So a body that may be empty is not repeated for nothing.
  SLUICE_LAZY bool least(std::int32_t number, Automaton::Loop const& loop, std::int32_t count) {
    if (count < loop.minimum || loop.maximum < 0) return true;
    auto const known = std::ranges::find(least_, number, &Pair::first);
    if (known == least_.end()) least_.push_back({number, count});
    else if (known->second <= count) return false;
    else known->second = count;
    return true;
  }

  /// Of the numbers that one place has, removes those whose texts another one has too.
  SLUICE_LAZY void reduce() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out_.size();) {
      auto const place = out_[i].first;
      auto last = i + 1;
      while (last < out_.size() && out_[last].first == place) ++last;
      auto const within = a_.places[at(place)].within;
      if (last - i > 1 && within >= 0) {
        auto const& loop = a_.loops[at(within)];
        if (loop.maximum < 0) i = last - 1;
        while (i < last) {
          out_[kept++] = out_[i];
          if (out_[i++].second >= loop.minimum) break;
        }
      } else {
        out_[kept++] = out_[i];
      }
      i = last;
    }
    out_.resize(kept);
  }

  Automaton const& a_;
  PlainPlaces plain_places_;
  Interner sets_;
  std::vector<Node> all_;
  std::vector<std::int32_t> starts_;  // [rule]
  StableVector<std::int32_t> rows_;   // [row][class]: a node + 1; 0: unknown
  std::vector<CallEdge> calls_;
  std::vector<std::int8_t> plain_loops_;  // [loop]; -1: unknown
  std::vector<Pair> from_, out_, open_, least_;
  std::vector<Mark> marks_;  // open addressing
  std::size_t marked_ = 0;
  std::uint32_t time_ = 0;
};

}  // namespace sluice::inline v0::detail
