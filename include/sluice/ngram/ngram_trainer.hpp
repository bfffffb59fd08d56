// SPDX-License-Identifier: Apache-2.0
/// \file
/// NGramTrainer: n-grams from text.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/arpa_reader.hpp>
#include <sluice/ngram/detail/kneser_ney.hpp>
#include <sluice/ngram/detail/ngram_lists.hpp>
#include <sluice/ngram/ngram_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How NGramTrainer trains.
struct NGramTraining {
  std::int32_t order = 3;  ///< words of the longest n-grams, 1 to 16
  /// Use discounts of 0.5, 1 and 1.5 for a length whose counts give none: text that is small, or of classes. Otherwise refused.
  bool fallback = false;
};

/// Trains an NGramTable by interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3), in memory, without
/// pruning. The numbers are those of KenLM's lmplz (Heafield et al. 2013): an n-gram that is not the longest counts as often as
/// there are different words before it, or, at the beginning of a sentence, as often as it occurs; unigrams are interpolated with the
/// uniform distribution over all words but `<s>`; a word that was not seen, `<unk>` among them, has its share of that alone.
///
/// Memory: 4 bytes per word of the text, and what one sort of its n-grams takes, 4 more; then the n-grams, about 4 n + 24 bytes each.
class NGramTrainer {
 public:
  /// \param words  they are the first, in this order (a tokeniser's pieces: then word = token). `<unk>`, `<s>` and `</s>` follow if they are
  ///     not among them, then what add() brings
  /// \throws std::invalid_argument  for an order that is not 1 to 16, or a word that is there twice
  SLUICE_LAZY explicit NGramTrainer(NGramTraining const& options = {}, std::span<std::string const> words = {})
      : options_(options) {
    require(options.order >= 1 && options.order <= static_cast<std::int32_t>(detail::ngram_longest), "order",
            options.order, "must be from 1 to 16");
    for (auto const& word : words)
      if (!numbers_.add(word).second) require(false, "words", word, "is there twice");
    unknown_ = numbers_.add("<unk>").first, begin_ = numbers_.add("<s>").first, end_ = numbers_.add("</s>").first;
  }

  /// Adds a sentence, words with white space between them. An empty one counts too.
  /// \throws std::invalid_argument  if it contains `<s>` or `</s>`, or the text has 2^32 - 1 words
  SLUICE_LAZY void add(std::string_view sentence) {
    std::vector<std::string_view> words;
    constexpr auto space = " \t\r\n\v\f";
    for (auto at = sentence.find_first_not_of(space); at != std::string_view::npos;
         at = sentence.find_first_not_of(space, at)) {
      auto const end = (std::min)(sentence.find_first_of(space, at), sentence.size());
      words.push_back(sentence.substr(at, end - at));
      at = end;
    }
    add(words);
  }
  /// The same, of words that are cut already.
  SLUICE_LAZY void add(std::span<std::string_view const> words) {
    for (auto const word : words)
      if (word == "<s>" || word == "</s>")
        require(false, "sentence", word, "stands at its ends only, and is added there");
    require(text_.size() + words.size() + 2 < (std::numeric_limits<std::uint32_t>::max)(), "sentence", "one more",
            "a text has at most 2^32 - 2 words");
    text_.push_back(begin_);
    for (auto const word : words) text_.push_back(numbers_.add(word).first);
    text_.push_back(end_);
  }
  SLUICE_LAZY void add(std::vector<std::string_view> const& words) { add(std::span<std::string_view const>(words)); }

  /// The table of all sentences added. O(order n log n) for n words of text.
  /// \throws std::invalid_argument  if there is no sentence, or, without fallback, if there is a length of whose n-grams none
  ///     occurs once, twice or three times, or whose discount is no number from 0 to that
  SLUICE_LAZY NGramTable build() const {
    require(!text_.empty(), "text", "empty", "has no sentence");
    auto const words = static_cast<std::uint32_t>(numbers_.spellings().size());
    detail::KneserNey model(text_, begin_, words, static_cast<std::uint32_t>(options_.order), options_.fallback);
    detail::NGramImageBuilder builder(numbers_.spellings(), model.lists(),
                                      {.begin = begin_, .end = end_, .unknown = unknown_});
    return detail::NGramMaker::make(builder.take());
  }

 private:
  NGramTraining options_;
  detail::WordNumbers numbers_;
  std::uint32_t begin_ = 0, end_ = 0, unknown_ = 0;
  std::vector<std::uint32_t> text_;  // sentences, with <s> and </s>
};

}  // namespace sluice::inline v0
