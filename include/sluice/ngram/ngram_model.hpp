// SPDX-License-Identifier: Apache-2.0
/// \file
/// n-gram tables as language models, each a Model and a LanguageModel: NGramModel, of tokens; WordModel, of words that subwords write.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/language_model.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/ngram/detail/slot_states.hpp>
#include <sluice/ngram/detail/word_scores.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::inline v0 {

namespace detail {
/// That of a language model's data, or an empty one, which no search takes.
template <class Data>
Vocabulary const& vocabulary_of(Data const* data) {
  static Vocabulary const none{};
  return data == nullptr ? none : data->vocabulary;
}
}  // namespace detail

/// An NGramTable of words as a language model of tokens that are parts of words: to be fused with a model of such tokens (Fused), or the
/// LanguageModel of a search over frames. A word is what stands between spaces. It is scored when it is certain to be over, by a space or
/// the end; what it will cost at least is charged while it grows (look-ahead, smearing: the log-probability, as a unigram, of the most
/// frequent word that begins so), and corrected then. So the score of a finished output is that of its words, however it is cut into tokens:
///
/// > log p(first word | `<s>`) + ... + log p(`</s>` | last words)
///
/// A word that the table has not counts as `<unk>`, plus FusionWeights::unknown. A token without bytes changes nothing. Lines are no
/// distributions: a value may be above 0 where a word turns out likelier than charged, so ExactSearch and BestFirstBeam are refused.
///
/// A slot holds 8 bytes for each token. A line costs a search of the table, and a walk through a trie of spellings for each token that
/// does not begin with a space: O(its bytes * siblings). Copies that have no slots are cheap.
template <class SourceType = std::monostate>
class WordModel {
 public:
  using Source = SourceType;
  using State = detail::WordScores::State;  ///< of a text, see LanguageModel
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

  /// As a LanguageModel it adds nothing.
  WordModel() = default;
  /// For a search over frames, whose labels are the tokens.
  /// \param bytes    what each token writes; spaces are spaces. Those of the blank are not looked at
  /// \param weights  what the search adds
  /// \throws std::invalid_argument  for weights that are no numbers
  SLUICE_LAZY WordModel(NGramTable table, TokenBytes bytes, FusionWeights const& weights = {}) {
    weights.check();
    data_ = std::make_shared<Data const>(std::move(table), Vocabulary(), std::move(bytes), weights);
  }
  /// \param bytes    what each token of the vocabulary writes; spaces are spaces. Those of bos and eos are not looked at
  /// \param weights  `unknown` is added to the log-probability of each word that the table has not; the others are of searches over frames
  /// \throws std::invalid_argument  for bytes of another number of tokens, or weights that are no numbers
  SLUICE_LAZY WordModel(NGramTable table, Vocabulary vocabulary, TokenBytes bytes, FusionWeights const& weights = {}) {
    vocabulary.check();
    require(bytes.size() == vocabulary.size, "WordModel: bytes.size()", bytes.size(),
            "must be that of the vocabulary, " + std::to_string(vocabulary.size));
    weights.check();
    data_ = std::make_shared<Data const>(std::move(table), std::move(vocabulary), std::move(bytes), weights);
  }
  [[deprecated("write {.unknown = ...}")]] WordModel(NGramTable table, Vocabulary vocabulary, TokenBytes bytes,
                                                     double unknown)
      : WordModel(std::move(table), std::move(vocabulary), std::move(bytes), FusionWeights{.unknown = unknown}) {}

  Vocabulary const& vocabulary() const { return detail::vocabulary_of(data_.get()); }
  static Limits limits() { return {.log_prob = std::numeric_limits<double>::infinity()}; }

  void start(std::span<Source const* const>, std::span<Slot const> slot_numbers) {
    states_.start(slot_numbers, data_->words.start());
  }
  void release(std::span<Slot const> slot_numbers) { states_.release(slot_numbers); }

  Scores<float> step(std::span<Row const> rows) {
    std::size_t lines = 0;
    for (auto const& row : rows) lines += static_cast<std::size_t>(row.lines);
    auto const& data = *data_;
    auto const size = static_cast<std::size_t>(data.vocabulary.size);
    lines_.resize(lines * size);
    auto* line = lines_.data();
    states_.advance(
        rows, [&](State const& state, Token token) { return data.after(state, token).first; },
        [&](State const& state) { data.fill(state, line), line += size; });
    return scores(lines_.data(), static_cast<std::ptrdiff_t>(lines), data.vocabulary.size, Kind::log_probs);
  }

  SLUICE_LAZY State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    require(data_->bytes.size() == sentence.vocabulary->size, "WordModel: bytes.size()", data_->bytes.size(),
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
  /// Of a token that is a space and the beginning of a word.
  struct Beginning {
    bool begins = false;
    float charged = 0;
  };
  struct Data {
    detail::WordScores words;
    Vocabulary vocabulary;  // of a model; empty: of frames alone
    TokenBytes bytes;
    FusionWeights weights;
    std::vector<Beginning> beginnings{};  // [V]

    Data(NGramTable table, Vocabulary its_vocabulary, TokenBytes its_bytes, FusionWeights const& its_weights)
        : words(std::move(table), static_cast<float>(its_weights.unknown)),
          vocabulary(std::move(its_vocabulary)),
          bytes(std::move(its_bytes)),
          weights(its_weights) {
      for (Token token = 0; token < vocabulary.size; ++token) {
        auto const text = bytes.bytes(token);
        Beginning made;
        if (text.starts_with(' ') && text.find(' ', 1) == std::string_view::npos) {
          made.begins = true;
          made.charged = words.charged(words.trie().walk(0, text.substr(1)));
        }
        beginnings.push_back(made);
      }
    }
    /// The state after a token, and its score.
    std::pair<State, float> after(State state, Token token) const {
      if (token == vocabulary.bos) return {words.start(), 0.0f};
      if (vocabulary.ends(token)) {
        auto const sum = words.end(state);
        words.close(state), words.table().advance(state.gram, words.table().end());
        return {state, sum};
      }
      std::int32_t closed = 0;
      auto const sum = words.write(state, bytes.bytes(token), closed);
      return {state, sum};
    }
    void fill(State const& state, float* line) const {
      auto closed = state;
      auto const end = words.close(closed) - words.charged(state.node);
      for (Token token = 0; token < vocabulary.size; ++token) {
        auto const& made = beginnings[static_cast<std::size_t>(token)];
        if (vocabulary.ends(token)) {
          auto gram = closed.gram;
          line[token] = end + words.table().advance(gram, words.table().end());
        } else if (token == vocabulary.bos) {
          line[token] = 0;
        } else {
          line[token] = made.begins ? end + made.charged : after(state, token).second;
        }
      }
    }
  };

  std::shared_ptr<Data const> data_;
  detail::SlotStates<State> states_;
  std::vector<float> lines_;  // [lines, V]
};

inline namespace SLUICE_ISA {

/// An NGramTable as a language model of tokens, which can be decoded, fused (Fused), drafted from (DraftModel), scored (ForcedScore), and be
/// the LanguageModel of a search over frames. Needs no source, and takes any: a draft has the source of its model. A sentence and a text
/// begin with `<s>`, which feeding bos does; each eos, and the end of a text, scores as `</s>`.
///
/// A slot holds one state for each of its tokens, 4 bytes. A line costs one pass over V, and O(listed continuations of the contexts
/// that end the slot's tokens). Its log-probabilities are the table's, so those of tokens that stand for no word of the table count
/// `<unk>` each, and a line need not add up to one. Copies that have no slots are cheap.
template <class SourceType = std::monostate>
class NGramModel {
 public:
  using Source = SourceType;
  using State = NGramState;  ///< of a text, see LanguageModel
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

  /// As a LanguageModel it adds nothing.
  NGramModel() = default;
  /// Tokens are the table's words; `<s>` and `<unk>` are never generated.
  explicit NGramModel(NGramTable table)
      : NGramModel(table,
                   {.size = table.size(),
                    .bos = table.begin(),
                    .eos = {table.end()},
                    .never = {table.begin(), table.unknown()}},
                   all_words(table.size())) {}
  /// For a search over frames, whose labels are the tokens.
  /// \param words    [labels]: the word that each token stands for, < 0: `<unk>`; that of the blank is not looked at
  /// \param weights  what the search adds
  /// \throws std::invalid_argument  for words that are not there, or weights that are no numbers
  SLUICE_LAZY NGramModel(NGramTable table, std::vector<Word> words, FusionWeights const& weights = {})
      : data_(std::make_shared<Data const>(std::move(table), Vocabulary(), std::move(words), weights)) {}
  /// \param words    [vocabulary.size]: the word that each token stands for, < 0: `<unk>`; that of an eos is `</s>`, whatever stands there
  /// \param weights  `unknown` is added to the log-probability of each token that stands for `<unk>`: -log(n) shares it among n of them; the
  ///     others are of searches over frames
  /// \throws std::invalid_argument  for words of another size, or that are not there
  NGramModel(NGramTable table, Vocabulary vocabulary, std::vector<Word> words, FusionWeights const& weights = {}) {
    vocabulary.check();
    require(words.size() == static_cast<std::size_t>(vocabulary.size), "NGramModel: words.size()", words.size(),
            "must be that of the vocabulary, " + std::to_string(vocabulary.size));
    data_ = std::make_shared<Data const>(std::move(table), std::move(vocabulary), std::move(words), weights);
  }
  [[deprecated("write {.unknown = ...}")]] NGramModel(NGramTable table, Vocabulary vocabulary, std::vector<Word> words,
                                                      double unknown)
      : NGramModel(std::move(table), std::move(vocabulary), std::move(words), FusionWeights{.unknown = unknown}) {}

  Vocabulary const& vocabulary() const { return detail::vocabulary_of(data_.get()); }
  NGramTable const& table() const { return data_->table; }
  /// More than 0 only if something > 0 is added to `<unk>`.
  Limits limits() const {
    auto const unknown = data_ == nullptr ? 0 : data_->unknown();
    return {.log_prob = unknown > 0 ? static_cast<double>(unknown) : 0};
  }

  void start(std::span<Source const* const>, std::span<Slot const> slot_numbers) {
    states_.start(slot_numbers, NGramState());
  }
  void release(std::span<Slot const> slot_numbers) { states_.release(slot_numbers); }

  Scores<float> step(std::span<Row const> rows) {
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) lines += row.lines;
    auto const stride = std::ssize(data_->unigrams);
    if (std::ssize(lines_) < lines * stride) lines_.resize(static_cast<std::size_t>(lines * stride));
    auto* line = lines_.data();
    advance(rows, [&](NGramState state) { data_->fill(state, line), line += stride; });
    return {{lines_.data(), lines, data_->vocabulary.size, stride}, Kind::log_probs};
  }
  /// The same as a step, but calls f(line) with each line, [V], instead of keeping them all: Fused does so, and a line stays in
  /// the cache.
  template <class F>
  void for_each_line(std::span<Row const> rows, F&& f) {
    if (lines_.size() < data_->unigrams.size()) lines_.resize(data_->unigrams.size());
    advance(rows, [&](NGramState state) {
      data_->fill(state, lines_.data());
      f(std::span<float const>(lines_.data(), data_->words.size()));
    });
  }

  SLUICE_LAZY State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    auto const size = static_cast<std::int32_t>(data_->words.size());
    require(size == sentence.vocabulary->size, "NGramModel: words.size()", size,
            "must be that of the vocabulary, " + std::to_string(sentence.vocabulary->size));
    return data_->start;
  }
  State next(State state, Token token) const {
    if (data_ != nullptr) data_->table.advance(state, data_->word(token));
    return state;
  }
  float score(State state, Token token) const {
    if (data_ == nullptr) return 0;
    auto const& [weight, bonus, unknown] = data_->weights;
    auto const& table = data_->table;
    auto const word = data_->word(token);
    auto const log_prob = static_cast<double>(table.advance(state, word)) + (word == table.unknown() ? unknown : 0);
    return static_cast<float>(weight * log_prob + bonus);
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
  static std::vector<Word> all_words(std::int32_t size) {
    std::vector<Word> words(static_cast<std::size_t>(size));
    std::iota(words.begin(), words.end(), 0);
    return words;
  }
  /// Moves the slots, and calls f(state) for every line asked for.
  template <class F>
  void advance(std::span<Row const> rows, F&& f) {
    states_.advance(
        rows, [&](NGramState state, Token token) { return data_->after(state, token); }, f);
  }

  struct Data {
    NGramTable table;
    Vocabulary vocabulary;    // of a model; empty: of frames alone
    std::vector<Word> words;  // [V]
    FusionWeights weights;
    NGramState start{};
    std::vector<std::uint32_t> cells{};             // [words of the table]
    AlignedVector<float> unigrams{};                // [stride]: of each cell
    std::vector<Token> unknowns{};                  // tokens that stand for <unk>
    std::vector<std::pair<Token, Token>> copies{};  // tokens whose word has another one, and that

    Data(NGramTable its_table, Vocabulary its_vocabulary, std::vector<Word> its_words, FusionWeights const& its_weights)
        : table(std::move(its_table)),
          vocabulary(std::move(its_vocabulary)),
          words(std::move(its_words)),
          weights(its_weights) {
      weights.check();
      for (auto& word : words) {
        require(word < table.size(), "NGramModel: word", word, "the table has " + std::to_string(table.size()));
        if (word < 0) word = table.unknown();
      }
      for (auto const token : vocabulary.eos) words[static_cast<std::size_t>(token)] = table.end();
      start = table.start();
      if (vocabulary.size > 0) arrange();
    }

    float unknown() const { return static_cast<float>(weights.unknown); }
    Word word(Token token) const { return words[static_cast<std::size_t>(token)]; }
    NGramState after(NGramState state, Token token) const {
      if (token == vocabulary.bos) return start;
      table.advance(state, word(token));
      return state;
    }
    /// Which cell of a line each word fills: its first token's, or one of two that follow them: of `<unk>`, and of words without a token.
    void arrange() {
      auto const size = words.size();
      cells.assign(static_cast<std::size_t>(table.size()), static_cast<std::uint32_t>(size + 1));
      auto const unknown_word = static_cast<std::size_t>(table.unknown());
      cells[unknown_word] = static_cast<std::uint32_t>(size);
      unigrams.assign((size + 2 + 15) / 16 * 16, 0);
      unigrams[size] = table.unigram(table.unknown());
      for (std::size_t token = 0; token < size; ++token) {
        auto const number = static_cast<std::size_t>(words[token]);
        unigrams[token] = table.unigram(words[token]);
        if (number == unknown_word) {
          unknowns.push_back(static_cast<Token>(token));
          continue;
        }
        if (cells[number] == size + 1) cells[number] = static_cast<std::uint32_t>(token);
        else copies.emplace_back(static_cast<Token>(token), static_cast<Token>(cells[number]));
      }
    }
    void fill(NGramState state, float* line) const {
      namespace simd = detail::simd;
      table.line(
          state,
          [&](float back_off) {
            auto const x = simd::broadcast(back_off);
            for (std::size_t v = 0; v < unigrams.size(); v += simd::lanes)
              simd::store(line + v, simd::load(unigrams.data() + v) + x);
          },
          [&](Word word, float log_prob) { line[cells[static_cast<std::size_t>(word)]] = log_prob; });
      auto const unknown_log_prob = line[words.size()] + unknown();
      for (auto const token : unknowns) line[token] = unknown_log_prob;
      for (auto const& [token, first] : copies) line[token] = line[first];
    }
  };

  std::shared_ptr<Data const> data_;
  AlignedVector<float> lines_;  // [lines, stride]
  detail::SlotStates<NGramState> states_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
