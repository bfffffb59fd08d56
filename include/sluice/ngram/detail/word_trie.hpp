// SPDX-License-Identifier: Apache-2.0
/// \file
/// The spellings of an n-gram table's words as a trie of bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/ngram/ngram_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// Node 0 is the empty beginning. The children of a node are consecutive, sorted by their byte.
class WordTrie {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;

  /// Without `<s>`, `</s>` and `<unk>`.
  SLUICE_LAZY explicit WordTrie(NGramTable const& table) {
    std::vector<Word> words;
    for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(table.size()); ++k) {
      auto const word = static_cast<Word>(table.image().sorted(k));
      if (word != table.begin() && word != table.end() && word != table.unknown()) words.push_back(word);
    }
    nodes_.push_back({});
    std::vector<std::size_t> lasts{words.size()}, firsts{0},
        depths{0};  // of each node: its words, and their common bytes
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      auto first = firsts[n];
      auto const last = lasts[n], depth = depths[n];
      auto best = -std::numeric_limits<float>::infinity();
      for (auto i = first; i < last; ++i) best = (std::max)(best, table.unigram(words[i]));
      nodes_[n].best = best;
      if (first < last && table.spelling(words[first]).size() == depth) nodes_[n].word = words[first++];
      nodes_[n].child = static_cast<std::uint32_t>(nodes_.size());
      while (first < last) {
        auto const byte = table.spelling(words[first])[depth];
        auto end = first + 1;
        while (end < last && table.spelling(words[end])[depth] == byte) ++end;
        nodes_.push_back({.byte = byte});
        ++nodes_[n].children;
        firsts.push_back(first), lasts.push_back(end), depths.push_back(depth + 1);
        first = end;
      }
    }
  }

  /// The node after more bytes; none if no word begins so.
  SLUICE_LAZY std::uint32_t walk(std::uint32_t node, std::string_view bytes) const {
    for (auto const byte : bytes) {
      if (node == none) return none;
      auto const& from = nodes_[node];
      auto next = none;
      for (auto child = from.child; child < from.child + from.children; ++child)
        if (nodes_[child].byte == byte) next = child;
      node = next;
    }
    return node;
  }
  /// The word that is spelt so; -1: none.
  Word word(std::uint32_t node) const { return nodes_[node].word; }
  /// log p of the most frequent word that begins so.
  float best(std::uint32_t node) const { return nodes_[node].best; }

 private:
  struct Node {
    char byte = 0;
    Word word = -1;
    std::uint32_t child = 0, children = 0;
    float best = 0;
  };
  std::vector<Node> nodes_;
};

}  // namespace sluice::inline v0::detail
