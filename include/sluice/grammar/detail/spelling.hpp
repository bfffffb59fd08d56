// SPDX-License-Identifier: Apache-2.0
/// \file
/// A subset of the tokens that can spell every text that the others can.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/token_nodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Tokens as an automaton that spells texts: its place is either a boundary between two tokens (place 0) or inside a
/// token. It has the whole vocabulary if the tokens have few prefixes. Otherwise it has all single-byte tokens and
/// then, if it may have several places, in order of length, the tokens that the chosen ones cannot spell, as long as places remain.
class Spelling {
 public:
  struct Step {
    std::int32_t to, cost;  // cost 1: a token ends
    // NOLINTNEXTLINE(modernize-use-nullptr): the linter misreads it
    friend auto operator<=>(Step const&, Step const&) = default;
  };

  /// \param places  maximum number
  /// \param needed  bytes; tokens with other bytes may be left out
  SLUICE_LAZY Spelling(TokenNodes const& trie, std::int32_t places, std::array<bool, 256> const& needed) : trie_(trie) {
    nodes_.push_back(0);
    all_ = trie.inner() <= places;
    if (!all_ && places == 1) return;
    place_of_.assign(at(trie.size()), -1), chosen_.assign(at(trie.size()), 0);
    place_of_[0] = 0;
    parents_.assign(at(trie.size()), 0);
    for (std::int32_t node = 0; node < trie.size(); ++node)
      for (auto child = node + 1; child < trie.end(node); child = trie.end(child)) parents_[at(child)] = node;
    for (auto node = 1; node < trie.size(); node = trie.end(node))
      if (!trie.tokens(node).empty()) chosen_[at(node)] = 1;
    for (auto const node : trie.by_length(all_)) {
      if (all_) {
        choose(node, places);
        continue;
      }
      auto const bytes = text(node);
      auto const wanted = [&](char c) { return needed[static_cast<unsigned char>(c)]; };
      if (std::all_of(bytes.begin(), bytes.end(), wanted) && !spells(bytes)) choose(node, places);
    }
  }

  /// Whether it has the whole vocabulary.
  bool all() const { return all_; }
  std::int32_t places() const { return static_cast<std::int32_t>(nodes_.size()); }

  /// The steps from a place with one of these bytes.
  SLUICE_LAZY std::vector<Step> steps(std::int32_t place, std::uint8_t first, std::uint8_t last) const {
    std::vector<Step> out;
    auto const node = nodes_[at(place)];
    for (auto child = node + 1; child < trie_.end(node) && trie_.byte(child) <= last; child = trie_.end(child)) {
      if (trie_.byte(child) < first) continue;
      if (open(child)) out.push_back({place_of_[at(child)], 0});
      if (chosen(child)) out.push_back({0, 1});
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  SLUICE_LAZY bool chosen(std::int32_t node) const {
    return chosen_.empty() ? trie_.depth(node) == 1 && !trie_.tokens(node).empty() : chosen_[at(node)] != 0;
  }
  /// Whether a chosen token extends beyond this node.
  bool open(std::int32_t node) const { return place_of_.empty() ? node == 0 : place_of_[at(node)] >= 0; }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  SLUICE_LAZY std::string text(std::int32_t node) const {
    std::string bytes;
    for (; node > 0; node = parents_[at(node)]) bytes.push_back(static_cast<char>(trie_.byte(node)));
    std::reverse(bytes.begin(), bytes.end());
    return bytes;
  }

  SLUICE_LAZY void choose(std::int32_t node, std::int32_t places) {
    std::vector<std::int32_t> way;  // prefixes that have no place yet
    for (auto above = parents_[at(node)]; above > 0; above = parents_[at(above)])
      if (place_of_[at(above)] < 0) way.push_back(above);
    if (nodes_.size() + way.size() > at(places)) return;
    for (auto const one : way) place_of_[at(one)] = this->places(), nodes_.push_back(one);
    chosen_[at(node)] = 1;
  }

  SLUICE_LAZY bool spells(std::string const& bytes) const {
    std::vector<std::uint8_t> reached(bytes.size() + 1);
    reached[0] = 1;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (reached[i] == 0) continue;
      std::int32_t node = 0;
      for (auto j = i; j < bytes.size() && node >= 0; ++j) {
        node = trie_.child(node, static_cast<std::uint8_t>(bytes[j]));
        if (node >= 0 && chosen_[at(node)] != 0) reached[j + 1] = 1;
        if (node >= 0 && place_of_[at(node)] < 0) break;
      }
    }
    return reached.back() != 0;
  }

  TokenNodes trie_;
  bool all_ = false;
  std::vector<std::int32_t> nodes_;     // [place]
  std::vector<std::int32_t> place_of_;  // [node]: -1: none; empty: only the root has one
  std::vector<std::uint8_t> chosen_;    // [node]; empty: single bytes
  std::vector<std::int32_t> parents_;   // [node]
};

}  // namespace sluice::inline v0::detail
