// SPDX-License-Identifier: Apache-2.0
/// \file
/// Alignments of words as text, as Marian writes them.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/result/alignment.hpp>

#include <translate/options.hpp>
#include <translate/tokenizer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace translate {

/// The word, of those between spaces, that each token belongs to; -1 for what writes nothing.
/// \param printed  whether it is text that comes out, where an unknown piece is a sign of its own, or text that went in, where it
///                 stood for some characters
inline std::vector<std::int32_t> words_of(std::span<sluice::Token const> tokens, Tokenizer const& tokenizer,
                                          bool printed) {
  std::vector<std::int32_t> words;
  std::int32_t word = 0;
  auto empty = true, apart = false;  // so far; behind a space
  for (auto const token : tokens) {
    auto const text = !printed && token == tokenizer.unk() ? "?" : tokenizer.text(token);
    if (!empty && (apart || text.starts_with(' '))) ++word, empty = true;
    if (text.find_first_not_of(' ') != text.npos) empty = false;
    if (!text.empty()) apart = text.ends_with(' ');
    words.push_back(text.empty() ? -1 : word);
  }
  if (empty) std::ranges::replace(words, word, -1);  // spaces at the end
  return words;
}

/// The alignment of a translation whose source consists of these words, and eos, which is no word.
inline std::string alignment_of(sluice::Hypothesis const& hypothesis, std::vector<std::int32_t> source_words,
                                Tokenizer const& tokenizer, AlignmentFormat const& format) {
  source_words.push_back(-1);
  auto target_words = words_of(hypothesis.tokens, tokenizer, true);
  for (std::size_t i = 0; i < target_words.size(); ++i)
    if (hypothesis.attached[i].empty()) target_words[i] = -1;  // of a prefix that is not scored nothing is known
  auto const alignment = sluice::align_words(hypothesis, source_words, target_words);
  if (format.threshold) return sluice::to_pharaoh(sluice::alignment_above(alignment, *format.threshold));
  if (!format.soft) return sluice::to_pharaoh(sluice::hard_alignment(alignment));
  std::string text;
  for (auto const& line : alignment) {
    if (!text.empty()) text += ' ';
    for (std::size_t i = 0; i < line.size(); ++i) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.4f", i > 0 ? "," : "", static_cast<double>(line[i]));
      text += number;
    }
  }
  return text;
}

}  // namespace translate
