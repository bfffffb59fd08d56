// SPDX-License-Identifier: Apache-2.0
/// \file
/// NGramLabels: an n-gram table inside a search over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// An NGramTable as a LabelScorer of TransducerBeam and TransducerGreedy: a hypothesis has its state, 4 bytes, and only
/// labels that are candidates are looked up, O(order) searches each. Copies are cheap.
class NGramLabels {
 public:
  using State = NGramState;

  /// \param words    [labels]: the word that each label stands for; < 0: `<unk>`. Blanks are never looked up
  /// \param unknown  added to the log-probability of each label that stands for `<unk>`
  /// \throws std::invalid_argument  for a word that the table has not, or an `unknown` that is no number
  template <class = void>
  NGramLabels(NGramTable table, std::vector<Word> words, double unknown = 0)
      : table_(std::move(table)), words_(std::move(words)), unknown_(unknown) {
    require(std::isfinite(unknown), "NGramLabels: unknown", unknown, "must be a number");
    for (auto& word : words_) {
      require(word < table_->size(), "NGramLabels: word", word, "the table has " + std::to_string(table_->size()));
      if (word < 0) word = table_->unknown();
    }
  }
  /// No table: every label counts 0, so that a search can be made without one.
  NGramLabels() = default;

  State start() const { return table_ ? table_->start() : State{}; }
  template <class = void>
  double advance(State& state, Token label) const {
    if (!table_) return 0;
    require(static_cast<std::size_t>(label) < words_.size(), "NGramLabels: label", label,
            "words has " + std::to_string(words_.size()) + " entries");
    auto const word = words_[static_cast<std::size_t>(label)];
    return static_cast<double>(table_->advance(state, word)) + (word == table_->unknown() ? unknown_ : 0);
  }
  double end(State state) const { return table_ ? static_cast<double>(table_->advance(state, table_->end())) : 0; }

 private:
  std::optional<NGramTable> table_;
  std::vector<Word> words_;
  double unknown_ = 0;
};

}  // namespace sluice::inline v0
