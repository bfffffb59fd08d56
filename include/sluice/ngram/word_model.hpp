// SPDX-License-Identifier: Apache-2.0
/// \file
/// WordModel: n-grams of words as a model of subwords.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/ngram/detail/slot_states.hpp>
#include <sluice/ngram/detail/word_scores.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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

}  // namespace sluice::inline v0
