// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables of AnyOf: built once from its items, shared by its copies.
#pragma once

#include <sluice/language.hpp>

#include <sluice/processor/phrase.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A set of up to 256 items, as bits.
class ItemSet {
 public:
  static constexpr std::size_t most = 256;

  bool has(std::int32_t item) const { return (words_[word(item)] >> (word_bit(item)) & 1) != 0; }
  void insert(std::int32_t item) { words_[word(item)] |= std::uint64_t{1} << word_bit(item); }
  /// Whether it has an item that `other` lacks.
  SLUICE_LAZY bool any_beyond(ItemSet const& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if ((words_[i] & ~other.words_[i]) != 0) return true;
    return false;
  }

 private:
  static std::size_t word(std::int32_t item) { return static_cast<std::size_t>(item) / 64; }
  static std::size_t word_bit(std::int32_t item) { return static_cast<std::size_t>(item) % 64; }
  std::array<std::uint64_t, most / 64> words_{};
};

struct AnyOfTables {
  /// Items with the same phrases.
  struct Kind {
    std::vector<Phrase> phrases;  // ascending, each once
    std::int32_t first = 0, copies = 0;
    std::int32_t longest = 0, shortest = 0;

    SLUICE_LAZY void insert_into(ItemSet& set) const {
      for (auto item = first; item < first + copies; ++item) set.insert(item);
    }
  };
  struct Node {
    std::vector<std::int32_t> ends;  // kinds with a phrase that ends here
    ItemSet through{};               // items with a phrase that continues from here
    ItemSet leads{};                 // those, and the items with a phrase that ends here with all its tokens
  };

  std::vector<std::vector<Phrase>> items;
  std::string name;
  std::vector<Kind> kinds;
  PhraseMatcher matcher;
  std::vector<Node> nodes;  // [state of the matcher]
  std::int32_t total = 0;   // tokens of the longest phrase of every item

  /// Items that AnyOf::initial() rejects get no tables.
  SLUICE_LAZY AnyOfTables(std::vector<std::vector<Phrase>> given, std::string its_name)
      : items(std::move(given)), name(std::move(its_name)) {
    if (!sound()) return;
    sort_into_kinds();
    std::vector<Phrase> phrases;
    std::vector<std::int32_t> owner;  // [phrase]: its kind
    for (auto const& kind : kinds)
      for (auto const& phrase : kind.phrases)
        phrases.push_back(phrase), owner.push_back(static_cast<std::int32_t>(&kind - kinds.data()));
    matcher = PhraseMatcher(phrases);
    link(phrases, owner);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY bool sound() const {
    auto const empty = [](Phrase const& phrase) { return phrase.empty(); };
    return items.size() <= ItemSet::most && std::all_of(items.begin(), items.end(), [&](auto const& item) {
             return !item.empty() && std::none_of(item.begin(), item.end(), empty);
           });
  }

  SLUICE_LAZY void sort_into_kinds() {
    for (auto const& item : items) {
      auto phrases = item;
      std::sort(phrases.begin(), phrases.end());
      phrases.erase(std::unique(phrases.begin(), phrases.end()), phrases.end());
      auto kind = std::find_if(kinds.begin(), kinds.end(), [&](Kind const& known) { return known.phrases == phrases; });
      if (kind == kinds.end()) kind = kinds.insert(kind, Kind{.phrases = std::move(phrases)});
      ++kind->copies;
    }
    auto const shorter = [](Phrase const& a, Phrase const& b) { return a.size() < b.size(); };
    std::int32_t bits = 0;
    for (auto& kind : kinds) {
      kind.first = bits, bits += kind.copies;
      auto const [least, most] = std::minmax_element(kind.phrases.begin(), kind.phrases.end(), shorter);
      kind.shortest = static_cast<std::int32_t>(least->size());
      kind.longest = static_cast<std::int32_t>(most->size());
      total += kind.copies * kind.longest;
    }
  }

  SLUICE_LAZY void link(std::vector<Phrase> const& phrases, std::vector<std::int32_t> const& owner) {
    nodes.resize(at(matcher.states()));
    for (std::size_t p = 0; p < phrases.size(); ++p) {
      auto const& kind = kinds[at(owner[p])];
      auto node = PhraseMatcher::root;
      for (auto const token : phrases[p]) {
        kind.insert_into(nodes[at(node)].through);
        kind.insert_into(nodes[at(node)].leads);
        node = matcher.next(node, token);
      }
      kind.insert_into(nodes[at(node)].leads);
    }
    for (PhraseMatcher::State node = 0; node < matcher.states(); ++node) {
      auto& ends = nodes[at(node)].ends;
      for (auto n = node; n != PhraseMatcher::root; n = matcher.fallback(n))
        for (auto const p : matcher.phrases(n)) ends.push_back(owner[at(p)]);
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    }
  }
};

}  // namespace sluice::inline v0::detail
