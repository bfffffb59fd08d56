// SPDX-License-Identifier: Apache-2.0
/// \file
/// Constraints drawn from reference translations, as in Post and Vilar (2018), section 5.
#pragma once

#include <sluice/core/noise.hpp>
#include <sluice/search/constraints.hpp>

#include <translate/tokenizer.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using sluice::Phrase;

/// A random permutation of 0 .. n - 1.
inline std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t key) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(sluice::derive(key, i) % static_cast<std::uint64_t>(i))]);
  return order;
}

/// A reference as words: each word's pieces, without trailing punctuation, and its position.
class Words {
 public:
  Words(translate::Tokenizer const& tokenizer, std::string const& reference) : pieces_(tokenizer.encode(reference)) {
    constexpr std::string_view mark = "\xE2\x96\x81";
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      auto const& piece = tokenizer.piece(pieces_[i]);
      auto const starts = piece.starts_with(mark);
      auto const text = starts ? std::string_view(piece).substr(mark.size()) : std::string_view(piece);
      auto const letters = std::ranges::any_of(text, [](char c) {
        return static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0;
      });
      if (starts || words_.empty()) words_.push_back({i, i});
      if (letters) words_.back().second = i + 1;
    }
    std::erase_if(words_, [](auto const& word) { return word.first == word.second; });
  }

  std::size_t size() const { return words_.size(); }
  Phrase const& pieces() const { return pieces_; }
  /// Words first .. first + count - 1, with everything between them.
  Phrase phrase(std::size_t first, std::size_t count = 1) const {
    return {pieces_.begin() + static_cast<std::ptrdiff_t>(words_[first].first),
            pieces_.begin() + static_cast<std::ptrdiff_t>(words_[first + count - 1].second)};
  }
  std::size_t begin(std::size_t word) const { return words_[word].first; }

 private:
  Phrase pieces_;
  std::vector<std::pair<std::size_t, std::size_t>> words_;
};

/// What one sentence must contain, and the piece of its reference at which each phrase begins.
struct Demand {
  std::vector<Phrase> phrases;
  std::vector<std::size_t> begins;
  std::size_t tokens() const {
    std::size_t sum = 0;
    for (auto const& phrase : phrases) sum += phrase.size();
    return sum;
  }
};

/// `count` random words, or all if there are fewer. rand1 to rand4.
inline Demand random_words(Words const& words, std::size_t count, std::uint64_t key) {
  Demand demand;
  for (auto const word : shuffled(words.size(), key)) {
    if (demand.phrases.size() == count) break;
    demand.phrases.push_back(words.phrase(word)), demand.begins.push_back(words.begin(word));
  }
  return demand;
}

/// `count` consecutive words, or all if there are fewer. phr3, phr4.
inline Demand random_phrase(Words const& words, std::size_t count, std::uint64_t key) {
  if (words.size() == 0) return {};
  auto const length = std::min(count, words.size());
  auto const first = static_cast<std::size_t>(sluice::derive(key, 0) % (words.size() - length + 1));
  return {{words.phrase(first, length)}, {words.begin(first)}};
}

/// Random words with exactly `tokens` tokens in total; the words for fewer tokens are a subset of those for more.
inline Demand random_tokens(Words const& words, std::size_t tokens, std::uint64_t key) {
  Demand demand;
  for (auto const word : shuffled(words.size(), key)) {
    auto phrase = words.phrase(word);
    auto const left = tokens - demand.tokens();
    if (left == 0) break;
    if (phrase.size() > left) continue;
    demand.phrases.push_back(std::move(phrase)), demand.begins.push_back(words.begin(word));
  }
  return demand;
}

}  // namespace bench
