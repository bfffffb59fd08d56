// SPDX-License-Identifier: Apache-2.0
/// \file
/// n-grams of tokens, and of words, as language models inside a search over frames.
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
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// An NGramTable of tokens as a TextScore: `<s>` before the text, `</s>` after it. Copies are cheap.
class TokenNGrams {
 public:
  using State = NGramState;

  /// Adds nothing.
  TokenNGrams() = default;
  /// \param words  [V]: the word that each token stands for, < 0: `<unk>`; that of the blank is not looked at
  /// \throws std::invalid_argument  for words that are not there, or weights that are no numbers
  template <class = void>
  TokenNGrams(NGramTable table, std::vector<Word> words, FusionWeights const& weights = {}) {
    weights.check();
    for (auto& word : words) {
      require(word < table.size(), "TokenNGrams: word", word, "the table has " + std::to_string(table.size()));
      if (word < 0) word = table.unknown();
    }
    data_ = std::make_shared<Data const>(Data{std::move(table), std::move(words), weights});
  }

  template <class = void>
  State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    auto const size = static_cast<std::int32_t>(data_->words.size());
    require(size == sentence.vocabulary->size, "TokenNGrams: words.size()", size,
            "must be that of the vocabulary, " + std::to_string(sentence.vocabulary->size));
    return data_->table.start();
  }
  State next(State state, Token token) const {
    if (data_ != nullptr) data_->table.advance(state, data_->word(token));
    return state;
  }
  float score(State state, Token token) const {
    if (data_ == nullptr) return 0;
    auto const& [table, words, weights] = *data_;
    auto const word = data_->word(token);
    auto const log_prob =
        static_cast<double>(table.advance(state, word)) + (word == table.unknown() ? weights.unknown : 0);
    return static_cast<float>(weights.weight * log_prob + weights.bonus);
  }
  float end(State state) const {
    if (data_ == nullptr) return 0;
    return static_cast<float>(data_->weights.weight *
                              static_cast<double>(data_->table.advance(state, data_->table.end())));
  }
  float most(State) const {
    if (data_ == nullptr) return 0;
    auto const& weights = data_->weights;
    return static_cast<float>((std::max)(0.0, weights.bonus + weights.weight * (std::max)(0.0, weights.unknown)));
  }

 private:
  struct Data {
    NGramTable table;
    std::vector<Word> words;
    FusionWeights weights;
    Word word(Token token) const { return words[static_cast<std::size_t>(token)]; }
  };
  std::shared_ptr<Data const> data_;
};

/// An NGramTable of words as a TextScore over tokens that are parts of words. A word is what stands between spaces. While it grows, what
/// it will cost at least is charged (look-ahead), and corrected when it is over; a word that the table has not counts as `<unk>`, plus
/// FusionWeights::unknown. As WordModel, which has the details. Copies are cheap.
class WordNGrams {
 public:
  using State = detail::WordScores::State;

  /// Adds nothing.
  WordNGrams() = default;
  /// \param bytes  what each token of the vocabulary writes; spaces are spaces. Those of the blank are not looked at
  /// \throws std::invalid_argument  for weights that are no numbers
  template <class = void>
  WordNGrams(NGramTable table, TokenBytes bytes, FusionWeights const& weights = {}) {
    weights.check();
    data_ = std::make_shared<Data const>(
        Data{detail::WordScores(std::move(table), static_cast<float>(weights.unknown)), std::move(bytes), weights});
  }

  template <class = void>
  State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    require(data_->bytes.size() == sentence.vocabulary->size, "WordNGrams: bytes.size()", data_->bytes.size(),
            "must be that of the vocabulary, " + std::to_string(sentence.vocabulary->size));
    return data_->words.start();
  }
  State next(State state, Token token) const {
    std::int32_t closed = 0;
    if (data_ != nullptr) data_->words.write(state, data_->bytes.bytes(token), closed);
    return state;
  }
  float score(State state, Token token) const {
    if (data_ == nullptr) return 0;
    std::int32_t closed = 0;
    auto const log_prob = data_->words.write(state, data_->bytes.bytes(token), closed);
    return static_cast<float>(data_->weights.weight * static_cast<double>(log_prob) + data_->weights.bonus * closed);
  }
  float end(State state) const {
    if (data_ == nullptr) return 0;
    return static_cast<float>(data_->weights.weight * static_cast<double>(data_->words.end(state)) +
                              (state.node != 0 ? data_->weights.bonus : 0));
  }
  float most(State) const { return data_ == nullptr ? 0 : std::numeric_limits<float>::infinity(); }

 private:
  struct Data {
    detail::WordScores words;
    TokenBytes bytes;
    FusionWeights weights;
  };
  std::shared_ptr<Data const> data_;
};

/// An NGramTable of words as a TextScore over the words of a Lexicon, however these are spelt. Texts consist of its words alone, so the
/// rule need not be given too. Of several words that are spelt alike the one that is most probable here counts. While a word grows, the
/// log-probability, as a unigram, of the most frequent word that begins so is charged. Copies are cheap.
class LexiconNGrams {
 public:
  /// Where in a word a prefix ends, and the words before it.
  struct State {
    std::int32_t node = 0;  // of the lexicon
    NGramState gram{};
  };

  /// Adds nothing.
  LexiconNGrams() = default;
  /// \throws std::invalid_argument  for an empty lexicon, or weights that are no numbers
  template <class = void>
  LexiconNGrams(Lexicon lexicon, NGramTable table, FusionWeights const& weights = {}) {
    weights.check();
    require(!lexicon.trivial(), "LexiconNGrams: lexicon", "empty", "must have words");
    data_ = std::make_shared<Data const>(std::move(lexicon), std::move(table), weights);
  }

  /// \throws std::invalid_argument  as Lexicon::initial() does
  template <class = void>
  State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    data_->lexicon.initial(sentence);
    return {0, data_->table.start()};
  }
  State next(State state, Token token) const {
    if (data_ == nullptr) return state;
    auto const step = data_->trie().step(state.node, token);
    if (step.closes) data_->close(state);
    state.node = step.node;
    return state;
  }
  float score(State state, Token token) const {
    if (data_ == nullptr) return 0;
    auto const step = data_->trie().step(state.node, token);
    if (step.node < 0) return -std::numeric_limits<float>::infinity();
    auto const before = data_->charged(state.node);
    return (step.closes ? data_->close(state) : 0) + data_->charged(step.node) - before;
  }
  float end(State state) const {
    if (data_ == nullptr) return 0;
    if (!data_->trie().may_end(state.node)) return -std::numeric_limits<float>::infinity();
    auto const before = data_->charged(state.node);
    auto const sum = state.node == 0 ? 0 : data_->close(state);
    auto const weight = static_cast<float>(data_->weights.weight);
    return sum + weight * data_->table.advance(state.gram, data_->table.end()) - before;
  }
  float most(State state) const {
    if (data_ == nullptr) return 0;
    auto const rise = (std::max)(0.0f, data_->weighted(0, data_->table.unknown()));
    if (state.node <= 0 || !data_->trie().may_end(state.node)) return rise;
    auto const before = data_->charged(state.node);
    return rise + (std::max)(0.0f, data_->close(state) - before);
  }

 private:
  struct Data {
    Lexicon lexicon;
    NGramTable table;
    FusionWeights weights;
    std::vector<Word> words{};             // [spelling]
    std::vector<float> charged_of_node{};  // [node]

    template <class = void>
    Data(Lexicon its_lexicon, NGramTable its_table, FusionWeights const& its_weights)
        : lexicon(std::move(its_lexicon)), table(std::move(its_table)), weights(its_weights) {
      for (auto const& one : lexicon.spellings()) words.push_back(table.word(one.word));
      charged_of_node.assign(static_cast<std::size_t>(trie().size()), -std::numeric_limits<float>::infinity());
      for (auto node = trie().size(); node-- > 0;) {
        auto& best = charged_of_node[static_cast<std::size_t>(node)];
        for (auto const i : trie().words(node)) {
          auto const word = words[static_cast<std::size_t>(i)];
          best = (std::max)(best, weighted(table.unigram(word), word));
        }
        auto const [first, count] = trie().children(node);
        for (auto child = first; child < first + count; ++child) best = (std::max)(best, charged(child));
      }
      charged_of_node[0] = 0;
    }

    detail::LexiconTrie const& trie() const { return *lexicon.trie(); }
    float charged(std::int32_t node) const { return charged_of_node[static_cast<std::size_t>(node)]; }
    float weighted(float log_prob, Word word) const {
      auto const more = word == table.unknown() ? weights.unknown : 0;
      return static_cast<float>(weights.weight * (static_cast<double>(log_prob) + more));
    }
    /// Ends the word that a state ends in; returns what it adds.
    float close(State& state) const {
      auto best = -std::numeric_limits<float>::infinity();
      auto after = state.gram;
      for (auto const i : trie().words(state.node)) {
        auto gram = state.gram;
        auto const word = words[static_cast<std::size_t>(i)];
        auto const its = weighted(table.advance(gram, word), word);
        if (its > best) best = its, after = gram;
      }
      state = {0, after};
      return best + static_cast<float>(weights.bonus);
    }
  };
  std::shared_ptr<Data const> data_;
};

}  // namespace sluice::inline v0
