// SPDX-License-Identifier: Apache-2.0
/// \file
/// n-grams of words, scored while the words are written token by token.
#pragma once

#include <sluice/language.hpp>

#include <sluice/ngram/detail/word_trie.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace sluice::inline v0::detail {

/// The words of a text are what stands between its spaces. See WordModel.
class WordScores {
 public:
  struct State {
    NGramState gram{};
    std::uint32_t node = 0;  // of the word that is open; 0: none is; WordTrie::none: one that the table has not
  };

  /// \param unknown  added to the log-probability of each word that the table has not
  SLUICE_LAZY WordScores(NGramTable table, float unknown)
      : table_(std::move(table)), unknown_(unknown), trie_(table_) {}

  NGramTable const& table() const { return table_; }
  WordTrie const& trie() const { return trie_; }
  State start() const { return {table_.start(), 0}; }
  /// What has been charged for a word that is open.
  float charged(std::uint32_t node) const {
    if (node == 0) return 0;
    return node == WordTrie::none ? table_.unigram(table_.unknown()) + unknown_ : trie_.best(node);
  }
  /// Ends the word that is open; returns its log-probability.
  float close(State& state) const {
    if (state.node == 0) return 0;
    auto const word = state.node == WordTrie::none ? -1 : trie_.word(state.node);
    state.node = 0;
    return table_.advance(state.gram, word) + (word < 0 ? unknown_ : 0);
  }
  /// What the end adds.
  float end(State state) const {
    auto const before = charged(state.node);
    auto const sum = close(state);
    return sum + table_.advance(state.gram, table_.end()) - before;
  }
  /// What more bytes add. \param closed  the words that they end are added to it
  SLUICE_LAZY float write(State& state, std::string_view text, std::int32_t& closed) const {
    auto const before = charged(state.node);
    float sum = 0;
    while (!text.empty()) {
      auto const space = text.find(' ');
      state.node = trie_.walk(state.node, text.substr(0, space));
      if (space == std::string_view::npos) break;
      closed += state.node != 0;
      sum += close(state);
      text.remove_prefix(space + 1);
    }
    return sum + (charged(state.node) - before);
  }

 private:
  NGramTable table_;
  float unknown_;
  WordTrie trie_;
};

}  // namespace sluice::inline v0::detail
