// SPDX-License-Identifier: Apache-2.0
/// \file
/// N-grams as maps of texts, in double precision: what the library's tables must agree with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::test {

using Words = std::vector<std::string>;

/// Log-probabilities and back-off weights, of base 10.
struct NaiveNGrams {
  struct Entry {
    double value = 0, back_off = 0;
  };
  std::map<Words, Entry> entries{};
  std::size_t order = 1;

  /// log10 p(word | the last words of the context)
  double log_prob(Words context, std::string word) const {
    if (!entries.contains({word})) word = "<unk>";
    for (auto& one : context)
      if (!entries.contains({one})) one = "<unk>";
    if (context.size() >= order) context.erase(context.begin(), context.end() - static_cast<std::ptrdiff_t>(order - 1));
    auto whole = context;
    whole.push_back(word);
    if (auto const found = entries.find(whole); found != entries.end()) return found->second.value;
    auto const found = entries.find(context);
    auto const weight = found == entries.end() ? 0 : found->second.back_off;
    return weight + log_prob(Words(context.begin() + 1, context.end()), word);
  }

  /// All of it in ARPA format.
  std::string arpa() const {
    std::ostringstream out;
    out.precision(9);
    out << "\\data\\\n";
    for (std::size_t n = 1; n <= order; ++n) {
      std::size_t count = 0;
      for (auto const& [words, entry] : entries) count += words.size() == n;
      out << "ngram " << n << "=" << count << "\n";
    }
    for (std::size_t n = 1; n <= order; ++n) {
      out << "\n\\" << n << "-grams:\n";
      for (auto const& [words, entry] : entries) {
        if (words.size() != n) continue;
        out << entry.value;
        for (std::size_t i = 0; i < n; ++i) out << (i == 0 ? '\t' : ' ') << words[i];
        if (n < order && entry.back_off != 0) out << '\t' << entry.back_off;
        out << "\n";
      }
    }
    out << "\n\\end\\\n";
    return out.str();
  }
};

/// Random n-grams over words w0, w1, ..., some of which lack their beginnings or ends.
inline NaiveNGrams random_ngrams(std::mt19937_64& random, std::size_t order, std::size_t words, std::size_t each) {
  NaiveNGrams made{.order = order};
  std::vector<std::string> all{"<s>", "</s>", "<unk>"};
  for (std::size_t i = 0; i < words; ++i) all.push_back("w" + std::to_string(i));
  auto const number = [&](double most) { return most * static_cast<double>(random() % 100000) / 100000; };
  for (auto const& word : all) made.entries[{word}] = {-number(4), 0};
  for (std::size_t n = 2; n <= order; ++n)
    for (std::size_t i = 0; i < each; ++i) {
      Words gram;
      for (std::size_t k = 0; k < n; ++k) gram.push_back(all[random() % all.size()]);
      made.entries[gram] = {-number(4), 0};
    }
  for (auto& [gram, entry] : made.entries)
    if (gram.size() < order && random() % 2 == 0) entry.back_off = -number(1.5);
  return made;
}

}  // namespace sluice::test
