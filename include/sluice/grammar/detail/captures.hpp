// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which parts of a finished text rules have matched.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Parses a text (Earley 1970), over the nodes of rules in place of their items. What is read are steps between positions,
/// of which there may be several at one place: a token is its bytes, or its name.
class Parse {
 public:
  struct Step {
    std::int32_t from, to;  // from < to
    std::uint8_t byte;
  };
  struct Found {
    std::int32_t rule, begin, end;  // positions
  };

  /// \param steps  in order of `to`
  /// \param starts  where the text may begin
  /// \returns  for texts of the grammar, the root rule and those within, in the order in which they begin, outer ones
  ///     first; else nothing. Of several readings that in which, from the left to the right, the longest rule that can
  ///     stand at a place stands there; of equal ones the first. A rule with an empty text is not there.
  /// \throws std::length_error  for a text so ambiguous that its readings do not fit into memory
  SLUICE_LAZY static std::vector<Found> of(Automaton const& a, std::int32_t positions, std::vector<Step> const& steps,
                                           std::vector<std::int32_t> const& starts) {
    Parse parse(a);
    parse.read(positions, steps, starts);
    return parse.found(positions - 1, starts);
  }

 private:
  struct Item {
    std::int32_t node, rule, origin, position, links = -1;
  };
  struct Link {
    std::int32_t before, called, next;  // called: the rule between the items; -1: a byte
  };
  struct Next {
    std::int32_t item, called;
  };
  static constexpr std::size_t most = std::size_t{1} << 24;
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static std::uint64_t key(std::int32_t a, std::int32_t b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }
  explicit Parse(Automaton const& a) : a_(a), nodes_(a) {}

  SLUICE_LAZY void read(std::int32_t positions, std::vector<Step> const& steps,
                        std::vector<std::int32_t> const& starts) {
    auto step = steps.begin();
    for (std::int32_t p = 0; p < positions; ++p) {
      begins_.push_back(static_cast<std::int32_t>(items_.size()));
      known_.clear();
      for (; step != steps.end() && step->to == p; ++step)
        for (auto i = begins_[at(step->from)]; i < begins_[at(step->from) + 1]; ++i) {
          auto const item = items_[at(i)];
          if (auto const to = nodes_.next(item.node, a_.class_of[step->byte]); to != Nodes::none)
            add({to, item.rule, item.origin, p}, i, -1);
        }
      if (std::ranges::find(starts, p) != starts.end()) add({nodes_.start(a_.root), a_.root, p, p}, -1, -1);
      for (auto i = begins_.back(); i < static_cast<std::int32_t>(items_.size()); ++i) advance(i);
    }
    begins_.push_back(static_cast<std::int32_t>(items_.size()));
  }

  /// Enters the rules that may come next, and returns from one that may end.
  SLUICE_LAZY void advance(std::int32_t i) {
    auto const item = items_[at(i)];
    auto const calls = nodes_.calls(item.node);
    std::vector<Nodes::CallEdge> const all(calls.begin(), calls.end());
    for (auto const& [rule, to] : all) {
      waits_[key(item.position, rule)].push_back({i, to});
      add({nodes_.start(rule), rule, item.position, item.position}, -1, -1);
    }
    if (!nodes_.end(item.node) || item.origin == item.position) return;
    auto const waiting = waits_.find(key(item.origin, item.rule));
    if (waiting == waits_.end()) return;
    for (auto const& [before, to] : waiting->second)
      add({to, items_[at(before)].rule, items_[at(before)].origin, item.position}, before, item.rule);
  }
  SLUICE_LAZY void add(Item item, std::int32_t before, std::int32_t called) {
    if (items_.size() + links_.size() > most)
      throw std::length_error("sluice: a grammar is so ambiguous that the readings of a text take too much memory");
    auto const [it, fresh] = known_.try_emplace(key(item.node, item.origin), static_cast<std::int32_t>(items_.size()));
    if (fresh) items_.push_back(item);
    if (before < 0) return;
    auto& own = items_[at(it->second)];
    for (auto l = own.links; l >= 0; l = links_[at(l)].next)
      if (links_[at(l)].before == before && links_[at(l)].called == called) return;
    links_.push_back({before, called, own.links});
    own.links = static_cast<std::int32_t>(links_.size()) - 1;
  }

  SLUICE_LAZY std::vector<Found> found(std::int32_t end, std::vector<std::int32_t> const& starts) {
    std::vector<Found> out, open, within;
    for (auto const start : starts)
      if (open.empty() && start < end && !ends({a_.root, start, end}).empty()) open.push_back({a_.root, start, end});
    while (!open.empty()) {
      auto const one = open.back();
      open.pop_back();
      out.push_back(one);
      within.clear();
      walk(one, within);
      open.insert(open.end(), within.rbegin(), within.rend());
    }
    return out;
  }
  SLUICE_LAZY std::vector<std::int32_t> ends(Found const& one) {
    std::vector<std::int32_t> out;
    for (auto i = begins_[at(one.end)]; i < begins_[at(one.end) + 1]; ++i)
      if (auto const& item = items_[at(i)]; item.rule == one.rule && item.origin == one.begin && nodes_.end(item.node))
        out.push_back(i);
    return out;
  }
  /// Finds the rules that one reading of a rule's text calls.
  SLUICE_LAZY void walk(Found const& one, std::vector<Found>& within) {
    std::unordered_map<std::int32_t, std::vector<Next>> next;  // of items from which the end can be reached
    auto open = ends(one);
    for (auto const i : open) next[i];
    while (!open.empty()) {
      auto const i = open.back();
      open.pop_back();
      for (auto l = items_[at(i)].links; l >= 0; l = links_[at(l)].next) {
        auto const [before, called, other] = links_[at(l)];
        auto const [it, fresh] = next.try_emplace(before);
        it->second.push_back({i, called});
        if (fresh) open.push_back(before);
      }
    }
    auto const start = nodes_.start(one.rule);
    auto current = begins_[at(one.begin)];
    while (items_[at(current)].node != start || items_[at(current)].origin != one.begin) ++current;
    auto const position = [&](std::int32_t i) { return items_[at(i)].position; };
    while (position(current) < one.end) {
      auto const& all = next.at(current);
      auto const better = [&](Next const& a, Next const& b) {
        if ((a.called < 0) != (b.called < 0)) return b.called < 0;
        if (position(a.item) != position(b.item)) return position(a.item) > position(b.item);
        return a.called != b.called ? a.called < b.called : a.item < b.item;
      };
      auto const best = *std::min_element(all.begin(), all.end(), better);
      if (best.called >= 0) within.push_back({best.called, position(current), position(best.item)});
      current = best.item;
    }
  }

  Automaton const& a_;
  Nodes nodes_;
  std::vector<Item> items_;
  std::vector<Link> links_;
  std::vector<std::int32_t> begins_;                                   // [position]: its first item
  std::unordered_map<std::uint64_t, std::int32_t> known_;              // of this position: node and origin
  std::unordered_map<std::uint64_t, std::vector<Nodes::Pair>> waits_;  // position and rule: items, and nodes behind it
};

}  // namespace sluice::inline v0::detail
