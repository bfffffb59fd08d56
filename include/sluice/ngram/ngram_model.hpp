// SPDX-License-Identifier: Apache-2.0
/// \file
/// NGramModel: an n-gram table as a model. WordModel: n-grams of words as a model of subwords.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/ngram/detail/slot_states.hpp>
#include <sluice/ngram/detail/word_scores.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/output/aligned_vector.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::inline v0 {

/// An NGramTable of words as a model of tokens that are parts of words, to be fused with a model of such tokens (Fused). A word is
/// what stands between spaces. It is scored when it is certain to be over, by a space or the end; what it will cost at least is charged
/// while it grows (look-ahead, smearing: the log-probability, as a unigram, of the most frequent word that begins so), and corrected
/// then. So the score of a finished output is that of its words, however it is cut into tokens:
///
/// > log p(first word | `<s>`) + ... + log p(`</s>` | last words)
///
/// A word that the table has not counts as `<unk>`, plus `unknown`. A token without bytes changes nothing. Lines are no distributions:
/// a value may be above 0 where a word turns out likelier than charged, so ExactSearch and BestFirstBeam are refused.
///
/// A slot holds 8 bytes for each token. A line costs a search of the table, and a walk through a trie of spellings for each token that
/// does not begin with a space: O(its bytes * siblings).
template <class SourceType = std::monostate>
class WordModel {
 public:
  using Source = SourceType;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

  /// \param bytes    what each token of the vocabulary writes; spaces are spaces. Those of bos and eos are not looked at
  /// \param unknown  added to the log-probability of each word that the table has not
  /// \throws std::invalid_argument  for bytes of another number of tokens, or an `unknown` that is no number
  template <class = void>
  WordModel(NGramTable table, Vocabulary vocabulary, TokenBytes bytes, double unknown = 0)
      : words_(std::move(table), static_cast<float>(unknown)),
        vocabulary_(std::move(vocabulary)),
        bytes_(std::move(bytes)) {
    vocabulary_.check();
    require(bytes_.size() == vocabulary_.size, "WordModel: bytes.size()", bytes_.size(),
            "must be that of the vocabulary, " + std::to_string(vocabulary_.size));
    require(std::isfinite(unknown), "WordModel: unknown", unknown, "must be a number");
    for (Token token = 0; token < vocabulary_.size; ++token) {
      auto const text = bytes_.bytes(token);
      Beginning made;
      if (text.starts_with(' ') && text.find(' ', 1) == std::string_view::npos) {
        made.begins = true;
        made.charged = words_.charged(words_.trie().walk(0, text.substr(1)));
      }
      beginnings_.push_back(made);
    }
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  static Limits limits() { return {.log_prob = std::numeric_limits<double>::infinity()}; }

  void start(std::span<Source const* const>, std::span<Slot const> slot_numbers) {
    states_.start(slot_numbers, words_.start());
  }
  void release(std::span<Slot const> slot_numbers) { states_.release(slot_numbers); }

  Scores<float> step(std::span<Row const> rows) {
    std::size_t lines = 0;
    for (auto const& row : rows) lines += static_cast<std::size_t>(row.lines);
    auto const size = static_cast<std::size_t>(vocabulary_.size);
    lines_.resize(lines * size);
    auto* line = lines_.data();
    states_.advance(
        rows, [&](State const& state, Token token) { return after(state, token).first; },
        [&](State const& state) { fill(state, line), line += size; });
    return scores(lines_.data(), static_cast<std::ptrdiff_t>(lines), vocabulary_.size, Kind::log_probs);
  }

 private:
  using State = detail::WordScores::State;
  /// Of a token that is a space and the beginning of a word.
  struct Beginning {
    bool begins = false;
    float charged = 0;
  };

  /// The state after a token, and its score.
  std::pair<State, float> after(State state, Token token) const {
    if (token == vocabulary_.bos) return {words_.start(), 0.0f};
    if (vocabulary_.ends(token)) {
      auto const sum = words_.end(state);
      words_.close(state), words_.table().advance(state.gram, words_.table().end());
      return {state, sum};
    }
    std::int32_t closed = 0;
    auto const sum = words_.write(state, bytes_.bytes(token), closed);
    return {state, sum};
  }
  void fill(State const& state, float* line) const {
    auto closed = state;
    auto const end = words_.close(closed) - words_.charged(state.node);
    for (Token token = 0; token < vocabulary_.size; ++token) {
      auto const& made = beginnings_[static_cast<std::size_t>(token)];
      if (vocabulary_.ends(token)) {
        auto gram = closed.gram;
        line[token] = end + words_.table().advance(gram, words_.table().end());
      } else if (token == vocabulary_.bos) {
        line[token] = 0;
      } else {
        line[token] = made.begins ? end + made.charged : after(state, token).second;
      }
    }
  }

  detail::WordScores words_;
  Vocabulary vocabulary_;
  TokenBytes bytes_;
  std::vector<Beginning> beginnings_;  // [V]
  detail::SlotStates<State> states_;
  std::vector<float> lines_;  // [lines, V]
};

inline namespace SLUICE_ISA {

/// An NGramTable as a model of tokens, which can be decoded, fused (Fused), drafted from (DraftModel) and scored (ForcedScore). Needs
/// no source, and takes any: a draft has the source of its model. Feeding bos begins a sentence (`<s>`), each eos scores as `</s>`.
///
/// A slot holds one state for each of its tokens, 4 bytes. A line costs one pass over V, and O(listed continuations of the contexts
/// that end the slot's tokens). Its log-probabilities are the table's, so those of tokens that stand for no word of the table count
/// `<unk>` each, and a line need not add up to one.
template <class SourceType = std::monostate>
class NGramModel {
 public:
  using Source = SourceType;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

  /// Tokens are the table's words; `<s>` and `<unk>` are never generated.
  explicit NGramModel(NGramTable table)
      : NGramModel(table,
                   {.size = table.size(),
                    .bos = table.begin(),
                    .eos = {table.end()},
                    .never = {table.begin(), table.unknown()}},
                   all_words(table.size())) {}
  /// \param words    [vocabulary.size]: the word that each token stands for, < 0: `<unk>`; that of an eos is `</s>`, whatever stands there
  /// \param unknown  added to the log-probability of each token that stands for `<unk>`: -log(n) shares it among n of them
  /// \throws std::invalid_argument  for words of another size, or that are not there
  NGramModel(NGramTable table, Vocabulary vocabulary, std::vector<Word> words, double unknown = 0)
      : table_(std::move(table)),
        vocabulary_(std::move(vocabulary)),
        words_(std::move(words)),
        unknown_(float(unknown)) {
    vocabulary_.check();
    auto const size = static_cast<std::size_t>(vocabulary_.size);
    require(words_.size() == size, "NGramModel: words.size()", words_.size(),
            "must be that of the vocabulary, " + std::to_string(size));
    require(std::isfinite(unknown), "NGramModel: unknown", unknown, "must be a number");
    for (auto& word : words_) {
      require(word < table_.size(), "NGramModel: word", word, "the table has " + std::to_string(table_.size()));
      if (word < 0) word = table_.unknown();
    }
    for (auto const token : vocabulary_.eos) words_[static_cast<std::size_t>(token)] = table_.end();
    start_ = table_.start();
    arrange();
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  NGramTable const& table() const { return table_; }
  /// More than 0 only if something > 0 is added to `<unk>`.
  Limits limits() const { return {.log_prob = unknown_ > 0 ? static_cast<double>(unknown_) : 0}; }

  void start(std::span<Source const* const>, std::span<Slot const> slot_numbers) {
    states_.start(slot_numbers, NGramState());
  }
  void release(std::span<Slot const> slot_numbers) { states_.release(slot_numbers); }

  Scores<float> step(std::span<Row const> rows) {
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) lines += row.lines;
    auto const stride = std::ssize(unigrams_);
    if (std::ssize(lines_) < lines * stride) lines_.resize(static_cast<std::size_t>(lines * stride));
    auto* line = lines_.data();
    advance(rows, [&](NGramState state) { fill(state, line), line += stride; });
    return {{lines_.data(), lines, vocabulary_.size, stride}, Kind::log_probs};
  }
  /// The same as a step, but calls f(line) with each line, [V], instead of keeping them all: Fused does so, and a line stays in
  /// the cache.
  template <class F>
  void for_each_line(std::span<Row const> rows, F&& f) {
    if (lines_.size() < unigrams_.size()) lines_.resize(unigrams_.size());
    advance(rows, [&](NGramState state) {
      fill(state, lines_.data());
      f(std::span<float const>(lines_.data(), words_.size()));
    });
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
        rows, [&](NGramState state, Token token) { return after(state, token); }, f);
  }
  NGramState after(NGramState state, Token token) const {
    if (token == vocabulary_.bos) return start_;
    table_.advance(state, words_[static_cast<std::size_t>(token)]);
    return state;
  }

  /// Which cell of a line each word fills: its first token's, or one of two that follow them: of `<unk>`, and of words without a token.
  void arrange() {
    auto const size = words_.size();
    cells_.assign(static_cast<std::size_t>(table_.size()), static_cast<std::uint32_t>(size + 1));
    auto const unknown = static_cast<std::size_t>(table_.unknown());
    cells_[unknown] = static_cast<std::uint32_t>(size);
    unigrams_.assign((size + 2 + 15) / 16 * 16, 0);
    unigrams_[size] = table_.unigram(table_.unknown());
    for (std::size_t token = 0; token < size; ++token) {
      auto const word = static_cast<std::size_t>(words_[token]);
      unigrams_[token] = table_.unigram(words_[token]);
      if (word == unknown) {
        unknowns_.push_back(static_cast<Token>(token));
        continue;
      }
      if (cells_[word] == size + 1) cells_[word] = static_cast<std::uint32_t>(token);
      else copies_.emplace_back(static_cast<Token>(token), static_cast<Token>(cells_[word]));
    }
  }

  void fill(NGramState state, float* line) const {
    namespace simd = detail::simd;
    table_.line(
        state,
        [&](float back_off) {
          auto const x = simd::broadcast(back_off);
          for (std::size_t v = 0; v < unigrams_.size(); v += simd::lanes)
            simd::store(line + v, simd::load(unigrams_.data() + v) + x);
        },
        [&](Word word, float log_prob) { line[cells_[static_cast<std::size_t>(word)]] = log_prob; });
    auto const unknown = line[words_.size()] + unknown_;
    for (auto const token : unknowns_) line[token] = unknown;
    for (auto const& [token, first] : copies_) line[token] = line[first];
  }

  NGramTable table_;
  Vocabulary vocabulary_;
  std::vector<Word> words_;  // [V]
  float unknown_;
  NGramState start_;
  std::vector<std::uint32_t> cells_;             // [words of the table]
  AlignedVector<float> unigrams_, lines_;        // [stride]: of each cell; [lines, stride]
  std::vector<Token> unknowns_;                  // tokens that stand for <unk>
  std::vector<std::pair<Token, Token>> copies_;  // tokens whose word has another one, and that
  detail::SlotStates<NGramState> states_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
