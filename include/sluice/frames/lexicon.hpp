// SPDX-License-Identifier: Apache-2.0
/// \file
/// Texts of the words of a lexicon alone, and n-grams of these words as a language model.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/language_model.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/lexicon_trie.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A word, and one way to spell it. A word with several has several of these.
struct Spelling {
  std::string word;
  std::vector<Token> tokens;
};

/// A word in an output, see Lexicon::words().
struct LexiconWord {
  std::int32_t spelling =
      -1;  ///< of Lexicon::spellings(): the first that is spelt so; -1: the output ends within a word
  std::int32_t begin = 0, end = 0;  ///< its tokens
  FrameRange frames{};  ///< from the first of its first token to the last of its last; {}: the search has no frames
};

/// Texts consist of the words of a lexicon, with separators (spaces, punctuation) between them: a logits processor for
/// any search, and the rule of CtcBeamSearch. A text ends after a word, or after a separator. Separators may also stand first, last, and several together.
///
/// Without separators, words follow each other directly, and the first token of a word must tell that it begins one (as `_` of
/// SentencePiece): a token that may also go on where a word may end is refused.
///
/// A trie, shared by all copies: 20 bytes for each of its nodes. A prefix costs a set of the vocabulary's tokens.
class Lexicon {
 public:
  /// Where in a word a text ends. 0: between words; -1: it is none of words.
  struct State {
    std::int32_t node = 0;
    bool over = false;  // an eos was fed
    Vocabulary const* vocabulary = nullptr;
  };

  /// Allows everything.
  Lexicon() = default;
  /// \param separators  one of these, or several, stand between words; none: nothing does
  /// \throws std::invalid_argument  naming the word: without tokens, with a separator in it, or, without separators, where the words
  ///     cannot be told apart
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  SLUICE_LAZY explicit Lexicon(std::vector<Spelling> spellings, std::vector<Token> const& separators = {}) {
    for (auto const token : separators) require(token >= 0, "lexicon: separator", token, "must not be negative");
    for (auto const& one : spellings) {
      require(!one.tokens.empty(), "lexicon: word", one.word, "has a spelling without tokens");
      for (auto const token : one.tokens) {
        require(token >= 0 && std::find(separators.begin(), separators.end(), token) == separators.end(),
                "lexicon: word", one.word,
                "is spelt with token " + std::to_string(token) + ", which is no part of a word");
        largest_ = (std::max)(largest_, token);
      }
    }
    trie_ = std::make_shared<detail::LexiconTrie const>(spellings, separators);
    spellings_ = std::make_shared<std::vector<Spelling> const>(std::move(spellings));
    separators_ = separators;
    if (separators.empty()) check_starts();
  }

  bool trivial() const { return trie_ == nullptr; }
  /// As given; there are some unless trivial().
  std::vector<Spelling> const& spellings() const { return *spellings_; }

  /// \throws std::invalid_argument  naming a word with a token that the vocabulary lacks, or never generates
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    auto const& vocabulary = *sentence.vocabulary;
    if (trivial()) return {.vocabulary = &vocabulary};
    for (auto const separator : separators_) {
      require(separator < vocabulary.size, "separator", separator, outside(vocabulary));
      require(!vocabulary.ends(separator), "separator", separator, "ends a text (the blank, or eos)");
    }
    if (largest_ < vocabulary.size && !any_used(vocabulary.eos) && !any_used(vocabulary.never))
      return {.vocabulary = &vocabulary};
    for (auto const& one : spellings())
      for (auto const token : one.tokens) {
        auto const what = "cannot be spelt: token " + std::to_string(token) + " ";
        require(token < vocabulary.size, "lexicon: word", one.word, what + outside(vocabulary));
        require(!vocabulary.ends(token), "lexicon: word", one.word, what + "ends a text (the blank, or eos)");
        require(std::find(vocabulary.never.begin(), vocabulary.never.end(), token) == vocabulary.never.end(),
                "lexicon: word", one.word, what + "is never generated");
      }
    return {.vocabulary = &vocabulary};
  }
  SLUICE_LAZY State next(State state, Token token) const {
    if (trivial()) return state;
    if (state.over || state.node < 0) state.node = -1;
    else if (state.vocabulary->ends(token)) state.over = true;
    else state.node = trie_->step(state.node, token).node;
    return state;
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  SLUICE_LAZY std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t) const {
    if (trivial()) return nullptr;
    auto set = std::make_shared<TokenSet>(state.vocabulary->size);
    if (state.node < 0 || state.over) return set;
    auto const ends = trie_->may_end(state.node);
    trie_->insert_children(state.node, *set);
    if (ends && trie_->separated()) set->insert(trie_->separators());
    if (ends && !trie_->separated()) trie_->insert_children(0, *set);
    if (ends) set->insert(state.vocabulary->eos);
    return set;
  }
  SLUICE_LAZY void require_possible(State const& state, Output const& output, std::int32_t) const {
    require(state.node >= 0 && !state.over, "prefix", std::to_string(output.prefix) + " tokens",
            "is not a beginning of words of the lexicon");
  }

  /// The words of an output, in their order, and, of a search over frames, where they are heard or written. Separators belong to none.
  /// \throws std::invalid_argument  naming the token that no word allows; eos may only be the last
  SLUICE_LAZY std::vector<LexiconWord> words(Hypothesis const& output) const {
    require(!trivial(), "lexicon", "empty", "must have words");
    std::vector<LexiconWord> found;
    auto const size = static_cast<std::int32_t>(output.tokens.size());
    std::int32_t node = 0, begin = 0;
    auto const close = [&](std::int32_t end) {
      if (end == begin) return;
      auto const its = trie_->words(node);
      LexiconWord one{its.empty() ? -1 : its.front(), begin, end, {}};
      if (!output.frames.empty())
        one.frames = {output.frames[static_cast<std::size_t>(begin)].begin,
                      output.frames[static_cast<std::size_t>(end) - 1].end};
      found.push_back(one);
    };
    for (std::int32_t i = 0; i < size; ++i) {
      auto const token = output.tokens[static_cast<std::size_t>(i)];
      auto const step = trie_->step(node, token);
      if (step.node < 0) {
        require(i + 1 == size && output.finished && trie_->may_end(node), "token " + std::to_string(i), token,
                "goes on to no word of the lexicon");
        return close(i), found;  // eos
      }
      auto const separates = trie_->separators().contains(token);
      if (step.closes) close(i);
      if (step.closes || separates) begin = separates ? i + 1 : i;
      node = step.node;
    }
    return close(size), found;
  }

  /// The words as a trie; empty if everything is allowed.
  std::shared_ptr<detail::LexiconTrie const> const& trie() const { return trie_; }

 private:
  static std::string outside(Vocabulary const& vocabulary) {
    return "is outside the vocabulary of " + std::to_string(vocabulary.size);
  }
  SLUICE_LAZY bool any_used(std::vector<Token> const& tokens) const {
    for (std::int32_t node = 1; node < trie_->size(); ++node)
      if (std::find(tokens.begin(), tokens.end(), trie_->token(node)) != tokens.end()) return true;
    return false;
  }
  SLUICE_LAZY void check_starts() const {
    for (std::int32_t node = 1; node < trie_->size(); ++node) {
      if (!trie_->may_end(node)) continue;
      auto const [first, count] = trie_->children(node);
      for (auto i = first; i < first + count; ++i)
        require(trie_->child(0, trie_->token(i)) < 0, "lexicon: word",
                spellings()[static_cast<std::size_t>(trie_->words(node)[0])].word,
                "token " + std::to_string(trie_->token(i)) +
                    " goes on from it to a longer word, and begins words: give separators");
    }
  }

  std::shared_ptr<std::vector<Spelling> const> spellings_;
  std::shared_ptr<detail::LexiconTrie const> trie_;
  std::vector<Token> separators_;
  Token largest_ = -1;
};

/// An NGramTable of words as a LanguageModel over the words of a Lexicon, however these are spelt. Texts consist of its words alone, so the
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
  SLUICE_LAZY LexiconNGrams(Lexicon lexicon, NGramTable table, FusionWeights const& weights = {}) {
    weights.check();
    require(!lexicon.trivial(), "LexiconNGrams: lexicon", "empty", "must have words");
    data_ = std::make_shared<Data const>(std::move(lexicon), std::move(table), weights);
  }

  /// \throws std::invalid_argument  as Lexicon::initial() does
  SLUICE_LAZY State initial(Sentence const& sentence) const {
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

    SLUICE_LAZY Data(Lexicon its_lexicon, NGramTable its_table, FusionWeights const& its_weights)
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
