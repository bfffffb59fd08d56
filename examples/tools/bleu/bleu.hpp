// SPDX-License-Identifier: Apache-2.0
/// \file
/// BLEU (Papineni et al. 2002) as sacreBLEU counts it (Post 2018): tokenisation 13a, n-grams up to 4, exponential
/// smoothing; and its sampling error by bootstrap (Koehn 2004).
#pragma once

#include <sluice/core/noise.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bleu {

inline constexpr std::size_t orders = 4;

namespace detail {

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Bytes of the white space at `i`, 0 if there is none: what Python's str.split() splits at.
inline std::size_t space_at(std::string_view text, std::size_t i) {
  auto const byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  auto const a = byte(i), b = byte(i + 1), c = byte(i + 2);
  if (a == ' ' || (a >= 0x09 && a <= 0x0D) || (a >= 0x1C && a <= 0x1F)) return 1;
  if (a == 0xC2 && (b == 0x85 || b == 0xA0)) return 2;
  if (a == 0xE1 && b == 0x9A && c == 0x80) return 3;
  if (a == 0xE2 && b == 0x80 && (c <= 0x8A || c == 0xA8 || c == 0xA9 || c == 0xAF)) return c >= 0x80 ? 3 : 0;
  if (a == 0xE2 && b == 0x81 && c == 0x9F) return 3;
  if (a == 0xE3 && b == 0x80 && c == 0x80) return 3;
  return 0;
}

}  // namespace detail

/// The words of a line under mteval-v13a's rules. They work on bytes: everything they look for is ASCII.
inline std::vector<std::string> tokenize_13a(std::string_view line) {
  auto const digit = [](char c) { return c >= '0' && c <= '9'; };
  auto const stop = [](char c) { return c == '.' || c == ','; };
  auto const symbol = [](char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
           (c >= ':' && c <= '@') || c == '/';
  };

  std::string text(line);
  detail::replace_all(text, "<skipped>", "");
  detail::replace_all(text, "-\n", "");
  detail::replace_all(text, "\n", " ");
  detail::replace_all(text, "&quot;", "\"");
  detail::replace_all(text, "&amp;", "&");
  detail::replace_all(text, "&lt;", "<");
  detail::replace_all(text, "&gt;", ">");
  text = " " + text + " ";

  std::string out;
  for (char const c : text)
    if (symbol(c)) out.append({' ', c, ' '});
    else out += c;

  // Three substitutions of two neighbours each; like a regular expression's, matches do not overlap.
  auto const pairs = [&](auto const& matches, bool space_before_first, bool space_after_second) {
    text.swap(out);
    out.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
        out += text[i];
        continue;
      }
      if (space_before_first) out += ' ';
      out.append({text[i], ' ', text[i + 1]});
      if (space_after_second) out += ' ';
      ++i;
    }
  };
  pairs([&](char a, char b) { return !digit(a) && stop(b); }, false, true);
  pairs([&](char a, char b) { return stop(a) && !digit(b); }, true, false);
  pairs([&](char a, char b) { return digit(a) && b == '-'; }, false, true);

  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i <= out.size();) {
    auto const space = i < out.size() ? detail::space_at(out, i) : 1;
    if (space == 0) word += out[i];
    else if (!word.empty()) words.push_back(std::exchange(word, {}));
    i += std::max<std::size_t>(space, 1);
  }
  return words;
}

/// The n-grams of one line with their counts, made once to be compared often.
class Ngrams {
 public:
  explicit Ngrams(std::vector<std::string> const& words) : length_(words.size()) {
    for (std::size_t n = 1; n <= orders; ++n) {
      std::vector<std::string> all;
      for (std::size_t i = 0; i + n <= words.size(); ++i) {
        // Words hold no space, so joined ones are told apart.
        all.push_back(words[i]);
        for (std::size_t k = 1; k < n; ++k) all.back().append(" ").append(words[i + k]);
      }
      std::sort(all.begin(), all.end());
      for (auto& ngram : all) {
        auto& counts = counts_[n - 1];
        if (!counts.empty() && counts.back().first == ngram) ++counts.back().second;
        else counts.emplace_back(std::move(ngram), 1);
      }
    }
  }
  explicit Ngrams(std::string_view line) : Ngrams(tokenize_13a(line)) {}

  /// In words.
  std::int64_t length() const { return static_cast<std::int64_t>(length_); }
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
  std::size_t length_;
  std::array<std::vector<std::pair<std::string, std::int64_t>>, orders> counts_;
};

/// What BLEU needs to know of a sentence, or, added up, of a corpus.
struct Counts {
  std::array<std::int64_t, orders> correct{};  ///< n-grams of the hypothesis that the reference has too
  std::array<std::int64_t, orders> total{};    ///< n-grams of the hypothesis
  std::int64_t hypothesis_length = 0;          ///< in words
  std::int64_t reference_length = 0;

  Counts& operator+=(Counts const& other) {
    for (std::size_t n = 0; n < orders; ++n) correct[n] += other.correct[n], total[n] += other.total[n];
    hypothesis_length += other.hypothesis_length, reference_length += other.reference_length;
    return *this;
  }
};

inline Counts count(Ngrams const& hypothesis, Ngrams const& reference) {
  Counts counts{.hypothesis_length = hypothesis.length(), .reference_length = reference.length()};
  for (std::size_t n = 1; n <= orders; ++n) {
    counts.correct[n - 1] = hypothesis.shared(reference, n);
    counts.total[n - 1] = std::max<std::int64_t>(hypothesis.length() - static_cast<std::int64_t>(n) + 1, 0);
  }
  return counts;
}
inline Counts count(std::string_view hypothesis, std::string_view reference) {
  return count(Ngrams(hypothesis), Ngrams(reference));
}

inline Counts sum(std::span<Counts const> sentences) {
  return std::accumulate(sentences.begin(), sentences.end(), Counts{},
                         [](Counts a, Counts const& b) { return a += b; });
}

/// Which orders make the geometric mean.
enum class Orders : std::uint8_t {
  all,        ///< 1 to 4: for a corpus. No 4-gram at all: 0
  effective,  ///< those of which the hypothesis has any: for single sentences
};

/// In per cent, like its precisions.
struct Score {
  double bleu = 0;
  std::array<double, orders> precisions{};  ///< after smoothing
  double brevity_penalty = 1;
  double ratio = 0;  ///< hypothesis length / reference length
};

/// An order without a match counts as 1/2, the next one as 1/4, and so on, of an n-gram (smoothing `exp`).
inline Score score(Counts const& counts, Orders which = Orders::all) {
  Score result;
  auto const hypothesis = static_cast<double>(counts.hypothesis_length);
  auto const reference = static_cast<double>(counts.reference_length);
  if (reference > 0) result.ratio = hypothesis / reference;
  if (hypothesis < reference) result.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  if (std::all_of(counts.correct.begin(), counts.correct.end(), [](auto c) { return c == 0; })) return result;

  double smooth = 1, logs = 0;
  std::size_t used = 0;
  for (; used < orders && counts.total[used] > 0; ++used) {
    auto const total = static_cast<double>(counts.total[used]);
    auto const correct = static_cast<double>(counts.correct[used]);
    result.precisions[used] = correct > 0 ? 100 * correct / total : 100 / ((smooth *= 2) * total);
    logs += std::log(result.precisions[used]);
  }
  if (used == orders || which == Orders::effective)
    result.bleu = result.brevity_penalty * std::exp(logs / static_cast<double>(used));
  return result;
}

/// Of one sentence.
inline double sentence_bleu(Ngrams const& hypothesis, Ngrams const& reference) {
  return score(count(hypothesis, reference), Orders::effective).bleu;
}

/// The sentences that make up a resample: as many as there are, drawn with replacement. The same on every machine.
inline std::vector<std::size_t> resample(std::size_t sentences, std::uint64_t seed, std::uint64_t number) {
  std::vector<std::size_t> drawn(sentences);
  auto const key = sluice::derive(seed, number);
  for (std::size_t i = 0; i < sentences; ++i)
    drawn[i] = static_cast<std::size_t>((sluice::derive(key, i) >> 32) * static_cast<std::uint64_t>(sentences) >> 32);
  return drawn;
}

/// The BLEU of each resample; two systems with one seed are drawn the same sentences.
inline std::vector<double> bootstrap(std::span<Counts const> sentences, std::size_t resamples, std::uint64_t seed) {
  std::vector<double> scores(resamples);
  for (std::size_t r = 0; r < resamples; ++r) {
    Counts counts;
    for (auto const i : resample(sentences.size(), seed, r)) counts += sentences[i];
    scores[r] = score(counts).bleu;
  }
  return scores;
}

struct Interval {
  double low, high;
};

/// What the middle 95 % of the values span. At least one value.
inline Interval interval_95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto const outside = values.size() / 40;
  return {values[outside], values[values.size() - 1 - outside]};
}

/// A system against another one over the same references.
struct Comparison {
  double difference;  ///< of the corpus scores: the first less the second
  Interval interval;  ///< of the difference, 95 %
  double p;           ///< of a difference at least so large between systems that are equally good
};

/// Paired bootstrap; the p-value after shifting the differences to mean 0 (Riezler and Maxwell 2005).
inline Comparison compare(std::span<Counts const> system, std::span<Counts const> other, std::size_t resamples,
                          std::uint64_t seed) {
  auto const difference = score(sum(system)).bleu - score(sum(other)).bleu;
  auto differences = bootstrap(system, resamples, seed);
  auto const theirs = bootstrap(other, resamples, seed);
  for (std::size_t r = 0; r < resamples; ++r) differences[r] -= theirs[r];
  auto const count = static_cast<double>(resamples);
  auto const mean = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  auto const extreme = std::count_if(differences.begin(), differences.end(),
                                     [&](double d) { return std::abs(d - mean) >= std::abs(difference); });
  return {difference, interval_95(differences), (static_cast<double>(extreme) + 1) / (count + 1)};
}

}  // namespace bleu
