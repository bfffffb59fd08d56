// SPDX-License-Identifier: Apache-2.0
/// \file
/// The model of the small programs beside it: which word follows which in a text. Yours is a network.
#pragma once

#include <sluice/sluice.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// A language model of words. Token 0 is the full stop, which begins and ends sentences.
class Bigrams {
 public:
  using Source = std::monostate;  // nothing is encoded: the prompt says it all
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  /// \param text   words with blanks between them
  /// \param words  the vocabulary, if it is to be more than the words of the text
  explicit Bigrams(std::string const& text, std::vector<std::string> words = {"."}) : words_(std::move(words)) {
    auto last = sluice::Token{0};
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
      if (std::ranges::find(words_, word) == words_.end()) words_.push_back(word);
      ++counts_[{last, token(word)}];
      last = token(word);
    }
  }

  sluice::Vocabulary vocabulary() const { return {.size = int(words_.size()), .bos = 0, .eos = {0}}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}  // a network clears its KV cache here

  /// A line of V scores for the last `lines` tokens of each row: how much the model wants each word behind that token.
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    scores_.clear();
    for (auto const& row : rows)
      for (auto const last : row.tokens.last(std::size_t(row.lines)))
        for (sluice::Token next = 0; next < int(words_.size()); ++next) {
          auto const seen = counts_.find({last, next});
          scores_.push_back(std::log(seen == counts_.end() ? 0.01f : float(seen->second)));
        }
    return sluice::scores(scores_.data(), std::ssize(scores_) / std::ssize(words_), std::ssize(words_));
  }

  std::vector<std::string> const& words() const { return words_; }
  sluice::Token token(std::string const& word) const {
    return sluice::Token(std::ranges::find(words_, word) - words_.begin());
  }
  std::vector<sluice::Token> tokens(std::string const& text) const {
    std::vector<sluice::Token> out;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) out.push_back(token(word));
    return out;
  }
  std::string text(std::span<sluice::Token const> tokens) const {
    std::string out;
    for (auto const token : tokens) out += (out.empty() ? "" : " ") + words_.at(std::size_t(token));
    return out;
  }

 private:
  std::vector<std::string> words_;
  std::map<std::pair<sluice::Token, sluice::Token>, int> counts_;  // of a word behind another
  std::vector<float> scores_;
};
