// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which words of an output come from which words of its source.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// [words of the output][words of the source]: how much of an output word comes from each source word. Lines add up to
/// 1, or are all zero for a word that attends to no source word.
using Alignment = std::vector<std::vector<float>>;

/// A word of the source and a word of the output, counted from 0.
struct AlignedPair {
  std::size_t source = 0, target = 0;
  friend bool operator==(AlignedPair const&, AlignedPair const&) = default;
};

/// Turns the attention that a model attached to an output's lines (see Attachments) into word alignments: attention
/// weights are summed over the tokens of a source word and averaged over the tokens of an output word.
///
/// \param source_words  for each attached number, the word that its position belongs to; -1: none (an end of sentence)
/// \param target_words  the same for each token of the output
/// \throws std::invalid_argument  if a length does not fit the hypothesis, or nothing was attached to a token of a word
SLUICE_LAZY Alignment align_words(Hypothesis const& hypothesis, std::span<std::int32_t const> source_words,
                                  std::span<std::int32_t const> target_words) {
  auto const size = hypothesis.tokens.size();
  require(target_words.size() == size, "target_words", target_words.size(), "is not the number of tokens");
  require(hypothesis.attached.size() == size, "attached", hypothesis.attached.size(), "is not the number of tokens");
  auto const words = [](std::span<std::int32_t const> of) {
    std::size_t count = 0;
    for (auto const word : of)
      if (word >= 0) count = (std::max)(count, static_cast<std::size_t>(word) + 1);
    return count;
  };
  Alignment alignment(words(target_words), std::vector<float>(words(source_words)));
  for (std::size_t i = 0; i < size; ++i) {
    if (target_words[i] < 0) continue;
    auto const& attention = hypothesis.attached[i];
    require(attention.size() == source_words.size(), "source_words", source_words.size(),
            "is not the number of positions that were attached");
    auto& line = alignment[static_cast<std::size_t>(target_words[i])];
    for (std::size_t p = 0; p < attention.size(); ++p)
      if (source_words[p] >= 0) line[static_cast<std::size_t>(source_words[p])] += attention[p];
  }
  for (auto& line : alignment)
    if (auto const sum = std::accumulate(line.begin(), line.end(), 0.0f); sum > 0)
      for (auto& share : line) share /= sum;
  return alignment;
}

/// For each output word, the source word that contributes most to it (the first among equals).
SLUICE_LAZY std::vector<AlignedPair> hard_alignment(Alignment const& alignment) {
  std::vector<AlignedPair> pairs;
  for (std::size_t i = 0; i < alignment.size(); ++i)
    if (auto const best = std::max_element(alignment[i].begin(), alignment[i].end());
        best != alignment[i].end() && *best > 0)
      pairs.push_back({static_cast<std::size_t>(best - alignment[i].begin()), i});
  return pairs;
}

/// All pairs in which at least `threshold` of the output word comes from the source word.
/// \throws std::invalid_argument  for a threshold that is not in (0, 1]
SLUICE_LAZY std::vector<AlignedPair> alignment_above(Alignment const& alignment, float threshold) {
  require(threshold > 0 && threshold <= 1, "threshold", threshold, "must be in (0, 1]");
  std::vector<AlignedPair> pairs;
  for (std::size_t i = 0; i < alignment.size(); ++i)
    for (std::size_t j = 0; j < alignment[i].size(); ++j)
      if (alignment[i][j] >= threshold) pairs.push_back({j, i});
  return pairs;
}

/// Pharaoh's format, `source-target` with a space between pairs, in the order of the source: 0-0 1-2 2-1.
SLUICE_LAZY std::string to_pharaoh(std::vector<AlignedPair> pairs) {
  std::sort(pairs.begin(), pairs.end(), [](AlignedPair const& a, AlignedPair const& b) {
    return a.source != b.source ? a.source < b.source : a.target < b.target;
  });
  std::string text;
  for (auto const& [source, target] : pairs)
    text.append(text.empty() ? "" : " ").append(std::to_string(source)).append("-").append(std::to_string(target));
  return text;
}

}  // namespace sluice::inline v0
