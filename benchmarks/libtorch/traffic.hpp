// SPDX-License-Identifier: Apache-2.0
/// \file
/// Synthetic sentences with realistic lengths.
#pragma once

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::bench {

struct Sentence {
  std::vector<Token> source;
  std::int32_t length = 1;  ///< of its translation, eos included
};

/// Log-normal source lengths with a median of 23 tokens and a mean of 27, as in news text in subwords; translations
/// 1.05 times as long, plus or minus a fifth; at most 120 and 150. The same for the same vocabulary, on the same
/// machine.
inline std::vector<Sentence> traffic(std::size_t count, Token vocabulary) {
  std::mt19937_64 random(8);
  std::lognormal_distribution<double> source(std::log(23.0), 0.57);
  std::normal_distribution<double> ratio(1.05, 0.2);
  std::uniform_int_distribution<Token> word(3, vocabulary - 1);
  std::vector<Sentence> sentences(count);
  for (auto& sentence : sentences) {
    auto const size = std::clamp(std::round(source(random)), 2.0, 120.0);
    sentence.source.resize(static_cast<std::size_t>(size));
    for (auto& token : sentence.source) token = word(random);
    sentence.length = static_cast<std::int32_t>(std::clamp(std::round(size * ratio(random)), 2.0, 150.0));
  }
  return sentences;
}

}  // namespace sluice::bench
