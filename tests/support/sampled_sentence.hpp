// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sentences for searches that draw, without a decoder.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::test {

/// Nine tokens: 0 is bos, 0 and 8 are never generated, and 1 is usually eos; a prompt, and sometimes a prefix.
struct SampledSentence {
  explicit SampledSentence(std::mt19937_64& random) {
    if (random() % 4 != 0) vocabulary.eos = {1};
    while (random() % 2 == 0) prompt.push_back(static_cast<Token>(2 + random() % 6));
    while (random() % 2 == 0) prefix.push_back(static_cast<Token>(2 + random() % 6));
    text = prompt;
    text.insert(text.end(), prefix.begin(), prefix.end());
    before = -static_cast<double>(random() % 16) / 4;
    max = forced() + static_cast<std::int32_t>(prefix.empty() ? random() % 5 : 1 + random() % 5);
  }

  /// The sentence, which refers to this object.
  Sentence sentence(std::uint64_t seed) const {
    return {.vocabulary = &vocabulary,
            .prompt = prompt,
            .prefix = prefix,
            .last = text.back(),
            .held = static_cast<std::int32_t>(text.size()) - 1,
            .prefix_log_prob = &before,
            .seed = seed};
  }
  std::int32_t forced() const { return static_cast<std::int32_t>(prefix.size()); }

  Vocabulary vocabulary{.size = 9, .bos = 0, .never = {0, 8}};
  std::vector<Token> prompt{0}, prefix, text;  // text: both
  double before = 0;                           // log-probability of the prefix
  std::int32_t max = 0;                        // a length limit that leaves room
};

}  // namespace sluice::test
