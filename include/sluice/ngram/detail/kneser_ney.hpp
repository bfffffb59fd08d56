// SPDX-License-Identifier: Apache-2.0
/// \file
/// Interpolated modified Kneser-Ney smoothing.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/ngram/detail/ngram_lists.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The n-grams of a text with their smoothed probabilities (Chen and Goodman 1998).
class KneserNey {
 public:
  /// \param text   sentences, each of which begins with the word `begin`
  /// \param words  in the vocabulary
  SLUICE_LAZY KneserNey(std::span<std::uint32_t const> text, std::uint32_t begin, std::uint32_t words,
                        std::uint32_t order, bool fallback)
      : text_(text), begin_(begin) {
    depth_.resize(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) depth_[i] = text[i] == begin ? 0 : depth_[i - 1] + 1;
    for (std::uint32_t n = 1; n <= order; ++n) {
      count(n, n == order, words);
      discount(n, fallback);
      smooth(n, words);
    }
  }
  std::vector<NGramList>& lists() { return lists_; }

 private:
  using Counts = std::vector<std::uint64_t>;

  /// Calls f(where the group begins, where it ends) for equal neighbours.
  template <class Equal, class F>
  static void groups(std::vector<std::uint32_t> const& order, Equal const& equal, F const& f) {
    for (std::size_t first = 0, last; first < order.size(); first = last) {
      last = first + 1;
      while (last < order.size() && equal(order[first], order[last])) ++last;
      f(first, last);
    }
  }

  /// The n-grams of n words, sorted, and their adjusted counts.
  SLUICE_LAZY void count(std::uint32_t n, bool longest, std::uint32_t words) {
    NGramList list{.length = n};
    Counts counts;
    auto const less = [&](std::uint32_t a, std::uint32_t b) {
      return std::lexicographical_compare(&text_[a], &text_[a] + n, &text_[b], &text_[b] + n);
    };
    auto const equal = [&](std::uint32_t a, std::uint32_t b) {
      return std::equal(&text_[a], &text_[a] + n, &text_[b]);
    };
    // The positions of n-grams, as they occur; those before which there is something separately unless they are the longest.
    std::vector<std::uint32_t> all, inner;
    for (std::size_t i = 0; i + n <= text_.size(); ++i) {
      if (depth_[i + n - 1] < n - 1) continue;  // another sentence begins
      auto const at = static_cast<std::uint32_t>(i);
      if (longest || text_[i] == begin_) all.push_back(at);
      else inner.push_back(at);
    }
    std::vector<std::pair<std::uint32_t, std::uint64_t>> found;  // position, count
    std::sort(all.begin(), all.end(), less);
    groups(all, equal, [&](std::size_t first, std::size_t last) { found.emplace_back(all[first], last - first); });
    // Equal ones by the word before them.
    std::sort(inner.begin(), inner.end(), [&](std::uint32_t a, std::uint32_t b) {
      for (std::uint32_t k = 0; k < n; ++k)
        if (text_[a + k] != text_[b + k]) return text_[a + k] < text_[b + k];
      return text_[a - 1] < text_[b - 1];
    });
    groups(inner, equal, [&](std::size_t first, std::size_t last) {
      std::uint64_t different = 1;
      for (auto i = first + 1; i < last; ++i) different += text_[inner[i] - 1] != text_[inner[i - 1] - 1] ? 1 : 0;
      found.emplace_back(inner[first], different);
    });
    std::sort(found.begin(), found.end(), [&](auto const& a, auto const& b) { return less(a.first, b.first); });
    if (n == 1) {  // all words, also those that do not occur; <s> is none that follows another
      list.words.resize(words), counts.resize(words);
      std::iota(list.words.begin(), list.words.end(), 0u);
      for (auto const& [at, times] : found) counts[text_[at]] = text_[at] == begin_ ? 0 : times;
    } else {
      for (auto const& [at, times] : found) {
        list.words.insert(list.words.end(), &text_[at], &text_[at] + n);
        counts.push_back(times);
      }
    }
    list.values.resize(counts.size());
    if (!longest) list.back_offs.resize(counts.size());
    lists_.push_back(std::move(list));
    counts_ = std::move(counts);
  }

  /// The discounts of counts 1, 2, and 3 or more.
  SLUICE_LAZY void discount(std::uint32_t n, bool fallback) {
    std::array<double, 5> with{};
    for (auto const count : counts_)
      if (count < 5) ++with[count];
    auto const y = with[1] / (with[1] + 2 * with[2]);
    auto good = true;
    for (std::size_t k = 1; k < 4; ++k) {
      auto const times = static_cast<double>(k);
      discounts_[k] = times - (times + 1) * y * with[k + 1] / with[k];
      good = good && with[k] > 0 && discounts_[k] >= 0 && discounts_[k] <= times;
    }
    if (good) return;
    require(fallback, "text", std::to_string(text_.size()) + " words",
            "its " + std::to_string(n) +
                "-grams give no discounts: there are too few that occur once, twice, three or four times "
                "(NGramTraining::fallback)");
    discounts_ = {0, 0.5, 1, 1.5};
  }

  /// The position of an n-gram of the last list but one.
  SLUICE_LAZY std::size_t shorter(std::uint32_t const* words, std::uint32_t n) const {
    if (n == 1) return *words;
    auto const& list = lists_[n - 1];
    std::size_t first = 0, last = list.size();
    while (first < last) {
      auto const middle = first + (last - first) / 2;
      if (std::lexicographical_compare(list.at(middle), list.at(middle) + n, words, words + n)) first = middle + 1;
      else last = middle;
    }
    return first;
  }

  static float logarithm(double x) { return static_cast<float>((std::max)(std::log(x), -99 * std::numbers::ln10)); }

  SLUICE_LAZY void smooth(std::uint32_t n, std::uint32_t words) {
    auto& list = lists_.back();
    std::vector<double> probabilities(list.size());
    for (std::size_t first = 0, last; first < list.size(); first = last) {  // those of one context
      last = first + 1;
      while (last < list.size() && (n == 1 || std::equal(list.at(first), list.at(first) + n - 1, list.at(last))))
        ++last;
      double sum = 0, taken = 0;
      for (auto i = first; i < last; ++i)
        sum += static_cast<double>(counts_[i]), taken += discounts_[(std::min)(counts_[i], std::uint64_t{3})];
      auto const weight = taken / sum;
      if (n > 1) lists_[n - 2].back_offs[shorter(list.at(first), n - 1)] = logarithm(weight);
      for (auto i = first; i < last; ++i) {
        auto const lower = n == 1 ? 1.0 / (words - 1) : probabilities_[shorter(list.at(i) + 1, n - 1)];
        auto const count = static_cast<double>(counts_[i]);
        auto const rest = counts_[i] == 0 ? 0 : count - discounts_[(std::min)(counts_[i], std::uint64_t{3})];
        probabilities[i] = rest / sum + weight * lower;
        list.values[i] = (std::min)(0.0f, logarithm(probabilities[i]));  // never above 1 by rounding
      }
    }
    if (n == 1) list.values[begin_] = logarithm(0);  // as ARPA files have it
    probabilities_ = std::move(probabilities);
  }

  std::span<std::uint32_t const> text_;
  std::uint32_t begin_;
  std::vector<std::uint32_t> depth_;  // how many words of its sentence are before each word
  std::vector<NGramList> lists_;
  Counts counts_;                      // of the last list
  std::array<double, 4> discounts_{};  // the same
  std::vector<double> probabilities_;  // the same
};

}  // namespace sluice::inline v0::detail
