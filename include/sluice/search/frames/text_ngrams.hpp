// SPDX-License-Identifier: Apache-2.0
/// \file
/// n-grams of tokens, and of a lexicon's words, as language models inside a search over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/ngram/detail/word_scores.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/search/frames/detail/lexicon_trie.hpp>
#include <sluice/search/frames/lexicon.hpp>
#include <sluice/search/frames/text_score.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// An NGramTable of tokens as a TextScore: `<s>` before the text, `</s>` after it.
class TokenNGrams {
 public:
  using State = NGramState;

  /// \param words  [V]: the word that each token stands for, < 0: `<unk>`; that of the blank is not looked at
  /// \throws std::invalid_argument  for words that are not there, or weights that are no numbers
  template <class = void>
  TokenNGrams(NGramTable table, std::vector<Word> words, FusionWeights const& weights = {})
      : table_(std::move(table)), words_(std::move(words)), weights_(weights) {
    weights_.check();
    for (auto& word : words_) {
      require(word < table_.size(), "TokenNGrams: word", word, "the table has " + std::to_string(table_.size()));
      if (word < 0) word = table_.unknown();
    }
  }

  template <class = void>
  State initial(Sentence const& sentence) const {
    require(static_cast<std::int32_t>(words_.size()) == sentence.vocabulary->size, "TokenNGrams: words.size()",
            words_.size(), "must be that of the vocabulary, " + std::to_string(sentence.vocabulary->size));
    return table_.start();
  }
  State next(State state, Token token) const {
    table_.advance(state, word(token));
    return state;
  }
  /// \param token  in [0, V)
  float score(State state, Token token) const {
    auto const its = word(token);
    auto const log_prob =
        static_cast<double>(table_.advance(state, its)) + (its == table_.unknown() ? weights_.unknown : 0);
    return static_cast<float>(weights_.weight * log_prob + weights_.bonus);
  }
  /// What is added when the text ends.
  float end(State state) const {
    return static_cast<float>(weights_.weight * static_cast<double>(table_.advance(state, table_.end())));
  }
  float most(State) const {
    return static_cast<float>((std::max)(0.0, weights_.bonus + weights_.weight * (std::max)(0.0, weights_.unknown)));
  }

 private:
  Word word(Token token) const { return words_[static_cast<std::size_t>(token)]; }

  NGramTable table_;
  std::vector<Word> words_;
  FusionWeights weights_;
};

/// An NGramTable of words as a TextScore over tokens that are parts of words. A word is what stands between spaces. While it grows, what it
/// will cost at least is charged (look-ahead), and corrected when it is over; a word that the table has not counts as `<unk>`, plus
/// FusionWeights::unknown. As WordModel, which has the details.
class WordNGrams {
 public:
  using State = detail::WordScores::State;

  /// \param bytes  what each token of the vocabulary writes; spaces are spaces. Those of the blank are not looked at
  /// \throws std::invalid_argument  for weights that are no numbers
  template <class = void>
  WordNGrams(NGramTable table, TokenBytes bytes, FusionWeights const& weights = {})
      : words_(std::move(table), static_cast<float>(weights.unknown)), bytes_(std::move(bytes)), weights_(weights) {
    weights_.check();
  }

  template <class = void>
  State initial(Sentence const& sentence) const {
    require(bytes_.size() == sentence.vocabulary->size, "WordNGrams: bytes.size()", bytes_.size(),
            "must be that of the vocabulary, " + std::to_string(sentence.vocabulary->size));
    return words_.start();
  }
  State next(State state, Token token) const {
    std::int32_t closed = 0;
    words_.write(state, bytes_.bytes(token), closed);
    return state;
  }
  float score(State state, Token token) const {
    std::int32_t closed = 0;
    auto const log_prob = words_.write(state, bytes_.bytes(token), closed);
    return static_cast<float>(weights_.weight * static_cast<double>(log_prob) + weights_.bonus * closed);
  }
  float end(State state) const {
    return static_cast<float>(weights_.weight * static_cast<double>(words_.end(state)) +
                              (state.node != 0 ? weights_.bonus : 0));
  }
  float most(State) const { return std::numeric_limits<float>::infinity(); }

 private:
  detail::WordScores words_;
  TokenBytes bytes_;
  FusionWeights weights_;
};

/// An NGramTable of words as a TextScore over the words of a Lexicon, however these are spelt. Texts consist of its words alone, so the rule
/// need not be given too. Of several words that are spelt alike the one that is most probable here counts. While a word grows, the
/// log-probability, as a unigram, of the most frequent word that begins so is charged.
class LexiconNGrams {
 public:
  /// Where in a word a prefix ends, and the words before it.
  struct State {
    std::int32_t node = 0;  // of the lexicon
    NGramState gram{};
  };

  /// \throws std::invalid_argument  for an empty lexicon, or weights that are no numbers
  template <class = void>
  LexiconNGrams(Lexicon lexicon, NGramTable table, FusionWeights const& weights = {})
      : lexicon_(std::move(lexicon)), table_(std::move(table)), weights_(weights) {
    weights_.check();
    require(!lexicon_.trivial(), "LexiconNGrams: lexicon", "empty", "must have words");
    for (auto const& one : lexicon_.spellings()) words_.push_back(table_.word(one.word));
    charged_.assign(static_cast<std::size_t>(trie().size()), -std::numeric_limits<float>::infinity());
    for (auto node = trie().size(); node-- > 0;) {
      auto& best = charged_[static_cast<std::size_t>(node)];
      for (auto const i : trie().words(node)) {
        auto const word = words_[static_cast<std::size_t>(i)];
        best = (std::max)(best, weighted(table_.unigram(word), word));
      }
      auto const [first, count] = trie().children(node);
      for (auto child = first; child < first + count; ++child)
        best = (std::max)(best, charged_[static_cast<std::size_t>(child)]);
    }
    charged_[0] = 0;
  }

  Lexicon const& lexicon() const { return lexicon_; }

  template <class = void>
  State initial(Sentence const& sentence) const {
    lexicon_.initial(sentence);
    return {0, table_.start()};
  }
  State next(State state, Token token) const {
    auto const step = trie().step(state.node, token);
    if (step.closes) close(state);
    state.node = step.node;
    return state;
  }
  float score(State state, Token token) const {
    auto const step = trie().step(state.node, token);
    if (step.node < 0) return -std::numeric_limits<float>::infinity();
    auto const before = charged(state.node);
    return (step.closes ? close(state) : 0) + charged(step.node) - before;
  }
  float end(State state) const {
    if (!trie().may_end(state.node)) return -std::numeric_limits<float>::infinity();
    auto const before = charged(state.node);
    auto const sum = state.node == 0 ? 0 : close(state);
    return sum + static_cast<float>(weights_.weight) * table_.advance(state.gram, table_.end()) - before;
  }
  float most(State state) const {
    auto const rise = (std::max)(0.0f, weighted(0, table_.unknown()));
    if (state.node <= 0 || !trie().may_end(state.node)) return rise;
    auto const before = charged(state.node);
    return rise + (std::max)(0.0f, close(state) - before);
  }

 private:
  detail::LexiconTrie const& trie() const { return *lexicon_.trie(); }
  float charged(std::int32_t node) const { return charged_[static_cast<std::size_t>(node)]; }
  float weighted(float log_prob, Word word) const {
    auto const more = word == table_.unknown() ? weights_.unknown : 0;
    return static_cast<float>(weights_.weight * (static_cast<double>(log_prob) + more));
  }
  /// Ends the word that a state ends in; returns what it adds.
  float close(State& state) const {
    auto best = -std::numeric_limits<float>::infinity();
    auto after = state.gram;
    for (auto const i : trie().words(state.node)) {
      auto gram = state.gram;
      auto const word = words_[static_cast<std::size_t>(i)];
      auto const its = weighted(table_.advance(gram, word), word);
      if (its > best) best = its, after = gram;
    }
    state = {0, after};
    return best + static_cast<float>(weights_.bonus);
  }

  Lexicon lexicon_;
  NGramTable table_;
  FusionWeights weights_;
  std::vector<Word> words_;     // [spelling]
  std::vector<float> charged_;  // [node]
};

}  // namespace sluice::inline v0
