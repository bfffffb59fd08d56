// SPDX-License-Identifier: Apache-2.0
/// \file
/// N-grams as lists, and the image that is made of them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/detail/mapped_bytes.hpp>
#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/ngram_format.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// N-grams of one length, in any order.
struct NGramList {
  std::uint32_t length = 1;
  std::vector<std::uint32_t> words{};   // [n-grams, length]
  std::vector<float> values{};          // [n-grams]: natural logarithms
  std::vector<float> back_offs{};       // the same; empty for the longest
  std::vector<std::uint8_t> implied{};  // [n-grams]: only there because longer ones begin with it; empty: none

  std::size_t size() const { return values.size(); }
  std::uint32_t const* at(std::size_t i) const { return words.data() + i * length; }
};

/// The numbers of a list's n-grams, sorted by their words.
SLUICE_LAZY std::vector<std::uint32_t> sorted_ngrams(NGramList const& list) {
  std::vector<std::uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::lexicographical_compare(list.at(a), list.at(a) + list.length, list.at(b), list.at(b) + list.length);
  });
  return order;
}

/// Makes the image of a table. The first list holds all words, in their order.
class NGramImageBuilder {
 public:
  SLUICE_LAZY NGramImageBuilder(std::vector<std::string> const& spellings, std::vector<NGramList>& lists,
                                NGramHead head)
      : lists_(lists), head_(head) {
    complete();
    count();
    NGramSections const at(head_);
    head_.spelling = 0;
    for (auto const& spelling : spellings) head_.spelling += static_cast<std::uint32_t>(spelling.size());
    link();
    infer();
    write(spellings);
  }
  KeptBytes take() { return std::move(made_); }

 private:
  /// Sorts the lists, and adds n-grams with which longer ones begin.
  SLUICE_LAZY void complete() {
    for (auto n = lists_.size(); n-- > 1;) {
      auto const& list = lists_[n];
      auto& shorter = lists_[n - 1];
      sort(lists_[n]);
      if (n == 1) break;  // all words are there
      sort(shorter);
      NGramList missing{.length = shorter.length};
      std::size_t k = 0;
      auto const size = shorter.length;
      for (std::size_t i = 0; i < list.size(); ++i) {
        auto const* const words = list.at(i);
        if (i > 0 && std::equal(words, words + size, list.at(i - 1))) continue;
        while (k < shorter.size() &&
               std::lexicographical_compare(shorter.at(k), shorter.at(k) + size, words, words + size))
          ++k;
        if (k < shorter.size() && std::equal(words, words + size, shorter.at(k))) continue;
        missing.words.insert(missing.words.end(), words, words + size);
        missing.values.push_back(0);
      }
      if (missing.size() == 0) continue;
      if (shorter.implied.empty()) shorter.implied.resize(shorter.size());
      shorter.words.insert(shorter.words.end(), missing.words.begin(), missing.words.end());
      shorter.values.resize(shorter.values.size() + missing.size());
      shorter.back_offs.resize(shorter.values.size());
      shorter.implied.resize(shorter.values.size(), 1);
    }
  }
  SLUICE_LAZY static void sort(NGramList& list) {
    auto const order = sorted_ngrams(list);
    if (std::is_sorted(order.begin(), order.end())) return;
    NGramList sorted{.length = list.length};
    sorted.words.reserve(list.words.size()), sorted.values.reserve(list.size());
    for (auto const i : order) {
      sorted.words.insert(sorted.words.end(), list.at(i), list.at(i) + list.length);
      sorted.values.push_back(list.values[i]);
      if (!list.back_offs.empty()) sorted.back_offs.push_back(list.back_offs[i]);
      if (!list.implied.empty()) sorted.implied.push_back(list.implied[i]);
    }
    list = std::move(sorted);
  }

  SLUICE_LAZY void count() {
    std::uint64_t sum = 0;
    levels_.assign(1, 0);
    for (auto const& list : lists_) {
      sum += list.size();
      require(sum < 0xFFFFFFFEu, "n-grams", sum, "a table has at most 2^32 - 3");
      levels_.push_back(static_cast<std::uint32_t>(sum));
    }
    head_.order = static_cast<std::uint32_t>(lists_.size());
    head_.words = levels_[1], head_.entries = levels_.back();
    head_.contexts = 1 + (head_.order > 1 ? levels_[head_.order - 1] : 0);
  }

  std::uint32_t last_word(std::uint32_t entry, std::size_t n) const {
    auto const& list = lists_[n];
    return list.at(entry - levels_[n])[list.length - 1];
  }
  /// The entry that follows a context of n words; entries() if there is none.
  SLUICE_LAZY std::uint32_t follow(std::uint32_t context, std::size_t n, std::uint32_t word) const {
    if (n == 0) return word;
    auto first = first_[context], last = first_[context + 1];
    while (first < last) {
      auto const middle = first + (last - first) / 2;
      if (last_word(middle, n) < word) first = middle + 1;
      else last = middle;
    }
    return first < first_[context + 1] && last_word(first, n) == word ? first : head_.entries;
  }

  /// The ranges, and the suffix of each entry: the longest context that properly ends it.
  SLUICE_LAZY void link() {
    first_.assign(std::size_t{head_.contexts} + 1, head_.entries);
    first_[0] = 0;
    for (std::size_t n = 1; n < lists_.size(); ++n) {  // contexts of n words
      std::size_t i = 0;
      for (auto c = levels_[n - 1] + 1; c <= levels_[n]; ++c) {
        first_[c] = levels_[n] + static_cast<std::uint32_t>(i);
        auto const* const words = lists_[n - 1].at(c - 1 - levels_[n - 1]);
        while (i < lists_[n].size() && std::equal(words, words + n, lists_[n].at(i))) ++i;
      }
    }
    suffix_.assign(head_.entries, 0), length_.assign(head_.contexts, 0);
    for (std::size_t n = 1; n < lists_.size(); ++n)
      std::fill(length_.begin() + levels_[n - 1] + 1, length_.begin() + levels_[n] + 1, static_cast<std::uint8_t>(n));
    for (std::size_t n = 1; n < lists_.size(); ++n)
      for (auto c = levels_[n - 1] + 1; c <= levels_[n]; ++c)
        for (auto e = first_[c]; e < first_[c + 1]; ++e) {
          auto const word = last_word(e, n);
          auto s = suffix_[c - 1];
          auto next = follow(s, length_[s], word);
          for (; next == head_.entries; next = follow(s, length_[s], word)) s = suffix_[s - 1];
          suffix_[e] = next + 1;
        }
    // Contexts of no use lead to shorter ones.
    useful_.assign(head_.contexts, 0);
    for (std::uint32_t c = 1; c < head_.contexts; ++c)
      useful_[c] = first_[c] < first_[c + 1] || back_off(c) != 0 ? c : useful_[suffix_[c - 1]];
  }
  float back_off(std::uint32_t context) const {
    if (context == 0) return 0;
    auto const& list = lists_[length_[context] - std::size_t{1}];
    return list.back_offs[context - 1 - levels_[length_[context] - std::size_t{1}]];
  }
  float value(std::uint32_t entry, std::size_t n) const { return lists_[n].values[entry - levels_[n]]; }

  /// The probabilities of n-grams that are only implied.
  SLUICE_LAZY void infer() {
    for (std::size_t n = 1; n < lists_.size(); ++n) {
      auto& list = lists_[n];
      if (list.implied.empty()) continue;
      for (auto c = levels_[n - 1] + 1; c <= levels_[n]; ++c)
        for (auto e = first_[c]; e < first_[c + 1]; ++e) {
          if (list.implied[e - levels_[n]] == 0) continue;
          auto sum = static_cast<double>(back_off(c));
          for (auto s = suffix_[c - 1];; s = suffix_[s - 1]) {
            auto const found = follow(s, length_[s], last_word(e, n));
            if (found != head_.entries) {
              sum += static_cast<double>(value(found, length_[s]));
              break;
            }
            sum += static_cast<double>(back_off(s));
          }
          list.values[e - levels_[n]] = static_cast<float>(sum);
        }
    }
  }

  SLUICE_LAZY void write(std::vector<std::string> const& spellings) {
    NGramSections const at(head_);
    head_.bytes = at.bytes;
    auto [keeper, to] = zeroed_bytes(static_cast<std::size_t>(at.bytes));
    auto* const data = to;
    auto const put = [](std::byte* where, float x) { store_little(where, std::bit_cast<std::uint32_t>(x)); };
    write_ngram_head(data, head_);
    for (std::size_t n = 0; n < levels_.size(); ++n) store_little(data + at.levels + 4 * n, levels_[n]);
    std::uint32_t spelt = 0;
    for (std::size_t w = 0; w < spellings.size(); ++w) {
      store_little(data + at.spellings + 4 * w, spelt);
      if (!spellings[w].empty()) std::memcpy(data + at.spelling + spelt, spellings[w].data(), spellings[w].size());
      spelt += static_cast<std::uint32_t>(spellings[w].size());
    }
    store_little(data + at.spellings + 4 * spellings.size(), spelt);
    std::vector<std::uint32_t> sorted(spellings.size());
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::sort(sorted.begin(), sorted.end(),
              [&](std::uint32_t a, std::uint32_t b) { return spellings[a] < spellings[b]; });
    for (std::size_t k = 0; k < sorted.size(); ++k) store_little(data + at.sorted + 4 * k, sorted[k]);
    for (std::uint32_t w = 0; w < head_.words; ++w) put(data + at.words + 4 * std::size_t{w}, value(w, 0));
    for (std::size_t n = 1; n < lists_.size(); ++n)
      for (auto e = levels_[n]; e < levels_[n + 1]; ++e) {
        std::size_t const i = e - head_.words;
        auto const word = last_word(e, n);
        if (head_.word_width() == 2) store_little(data + at.last + 2 * i, static_cast<std::uint16_t>(word));
        else store_little(data + at.last + 4 * i, word);
        if (n + 1 < lists_.size()) put(data + at.values + 4 * i, value(e, n));
      }
    for (auto e = head_.contexts - 1; e < head_.entries; ++e) {
      auto* const where = data + at.ends + 8 * std::size_t{e - (head_.contexts - 1)};
      put(where, value(e, lists_.size() - 1));
      store_little(where + 4, useful_[suffix_[e]]);
    }
    for (std::uint32_t c = 0; c <= head_.contexts; ++c) {
      auto* const where = data + at.contexts + 12 * std::size_t{c};
      store_little(where, first_[c]);
      if (c == head_.contexts) break;
      store_little(where + 4, c == 0 ? 0 : useful_[suffix_[c - 1]]);
      put(where + 8, back_off(c));
    }
    std::span<std::byte> const all(data, static_cast<std::size_t>(at.bytes));
    seal_ngrams(all);
    made_ = {std::move(keeper), all};
  }

  std::vector<NGramList>& lists_;
  NGramHead head_;
  std::vector<std::uint32_t> levels_;                   // [order + 1]
  std::vector<std::uint32_t> first_, suffix_, useful_;  // of contexts, of entries, of contexts
  std::vector<std::uint8_t> length_;                    // of contexts
  KeptBytes made_;
};

}  // namespace sluice::inline v0::detail
