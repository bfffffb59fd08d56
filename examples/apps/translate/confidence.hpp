// SPDX-License-Identifier: Apache-2.0
/// \file
/// How sure the model was of a translation, as text.
#pragma once

#include <sluice/core/result.hpp>

#include <translate/alignment.hpp>
#include <translate/tokenizer.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace translate {

/// "0.93".
inline std::string probability(double log_prob) {
  char number[32];
  std::snprintf(number, sizeof number, "%.2f", std::exp(log_prob));
  return number;
}

/// "I:0.99 come:0.42": each word, and the probability of all its pieces after what stands before them. Nothing of the end.
inline std::string confidence_of(sluice::Hypothesis const& hypothesis, Tokenizer const& tokenizer) {
  auto const words = words_of(hypothesis.tokens, tokenizer, true);
  std::string all;
  for (std::size_t i = 0; i < words.size();) {
    std::string word;
    double sum = 0;
    auto end = i;
    for (; end < words.size() && words[end] == words[i]; ++end) {
      for (auto const c : tokenizer.text(hypothesis.tokens[end]))
        if (c != ' ') word += c;
      sum += static_cast<double>(hypothesis.log_probs[end]);
    }
    if (words[i] >= 0) all.append(all.empty() ? "" : " ").append(word + ':' + probability(sum));
    i = end;
  }
  return all;
}

/// "_I:0.99|_We:0.01 _come:0.42|_go:0.31 ...": of each piece the best that the model itself had in its place.
inline std::string alternatives_of(sluice::Hypothesis const& hypothesis, Tokenizer const& tokenizer) {
  std::string all;
  for (auto const& choice : hypothesis.choices) {
    if (!all.empty()) all += ' ';
    for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
      auto const [token, log_prob] = choice.alternatives[i];
      all.append(i > 0 ? "|" : "").append(tokenizer.piece(token) + ':' + probability(static_cast<double>(log_prob)));
    }
    if (choice.alternatives.empty()) all += '-';
  }
  return all;
}

}  // namespace translate
