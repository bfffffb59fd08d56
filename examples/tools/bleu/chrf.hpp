// SPDX-License-Identifier: Apache-2.0
/// \file
/// chrF (Popovic 2015), as sacreBLEU counts it by default (chrF2: characters only, n-grams up to 6, beta = 2).
#pragma once

#include <bleu/bleu.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chrf {

inline constexpr std::size_t orders = 6;
inline constexpr double beta = 2;

/// The character n-grams of one line with their counts, made once to be compared often. White space does not count. A
/// character is a code point of UTF-8.
class Ngrams {
 public:
  explicit Ngrams(std::string_view line) {
    std::string text;
    std::vector<std::size_t> starts;  // of characters, and the end
    for (std::size_t i = 0; i < line.size();) {
      if (auto const space = bleu::detail::space_at(line, i); space > 0) {
        i += space;
        continue;
      }
      if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80) starts.push_back(text.size());
      text += line[i++];
    }
    starts.push_back(text.size());
    for (std::size_t n = 1; n <= orders; ++n) {
      std::vector<std::string> all;
      for (std::size_t i = 0; i + n < starts.size(); ++i)
        all.push_back(text.substr(starts[i], starts[i + n] - starts[i]));
      totals_[n - 1] = static_cast<std::int64_t>(all.size());
      std::sort(all.begin(), all.end());
      for (auto& ngram : all) {
        auto& counts = counts_[n - 1];
        if (!counts.empty() && counts.back().first == ngram) ++counts.back().second;
        else counts.emplace_back(std::move(ngram), 1);
      }
    }
  }

  std::int64_t total(std::size_t n) const { return totals_[n - 1]; }
  /// How many n-grams of order n the lines share, each counted as often as in the line that has it less often.
  std::int64_t shared(Ngrams const& other, std::size_t n) const {
    auto const &a = counts_[n - 1], &b = other.counts_[n - 1];
    std::int64_t sum = 0;
    for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
      auto const order = i->first.compare(j->first);
      if (order == 0) sum += std::min(i->second, j->second);
      if (order <= 0) ++i;
      if (order >= 0) ++j;
    }
    return sum;
  }

 private:
  std::array<std::vector<std::pair<std::string, std::int64_t>>, orders> counts_;
  std::array<std::int64_t, orders> totals_{};
};

/// What chrF needs to know of a sentence, or, added up, of a corpus.
struct Counts {
  std::array<std::int64_t, orders> hypothesis{}, reference{}, shared{};

  Counts& operator+=(Counts const& other) {
    for (std::size_t n = 0; n < orders; ++n)
      hypothesis[n] += other.hypothesis[n], reference[n] += other.reference[n], shared[n] += other.shared[n];
    return *this;
  }
};

inline Counts count(Ngrams const& hypothesis, Ngrams const& reference) {
  Counts counts;
  for (std::size_t n = 1; n <= orders; ++n) {
    // An order that the reference does not have is not held against a hypothesis.
    counts.hypothesis[n - 1] = reference.total(n) > 0 ? hypothesis.total(n) : 0;
    counts.reference[n - 1] = reference.total(n);
    counts.shared[n - 1] = hypothesis.shared(reference, n);
  }
  return counts;
}

/// In per cent: the F-score of the mean precision and the mean recall, over the orders that both sides have.
inline double score(Counts const& counts) {
  double precision = 0, recall = 0;
  std::size_t used = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    if (counts.hypothesis[n] == 0 || counts.reference[n] == 0) continue;
    precision += static_cast<double>(counts.shared[n]) / static_cast<double>(counts.hypothesis[n]);
    recall += static_cast<double>(counts.shared[n]) / static_cast<double>(counts.reference[n]);
    ++used;
  }
  if (precision + recall <= 0) return 0;
  auto const factor = beta * beta;
  return 100 * (1 + factor) * precision * recall / ((factor * precision + recall) * static_cast<double>(used));
}

/// Of one sentence.
inline double sentence_chrf(Ngrams const& hypothesis, Ngrams const& reference) {
  return score(count(hypothesis, reference));
}
inline double sentence_chrf(std::string_view hypothesis, std::string_view reference) {
  return sentence_chrf(Ngrams(hypothesis), Ngrams(reference));
}

}  // namespace chrf
