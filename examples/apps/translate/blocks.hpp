// SPDX-License-Identifier: Apache-2.0
/// \file
/// Statistics of the blocks and guesses of blockwise decoding.
#pragma once

#include <sluice/core/result.hpp>

#include <translate/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace translate {

/// Counts of the blocks of all sentences.
class BlockCounts {
 public:
  /// \param block  the most tokens that a round can settle
  explicit BlockCounts(std::int32_t block) : block_(static_cast<std::size_t>(block)) {}

  /// Counts of the guesses at one position of a block. A missing guess counts as one that was not kept.
  struct Guesses {
    std::uint64_t judged = 0;  ///< all before them in their block were kept
    std::uint64_t kept = 0;
  };

  void add(sluice::Hypothesis const& hypothesis) {
    auto const& blocks = hypothesis.blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto const size = static_cast<std::size_t>(blocks[i]);
      ++rounds_, tokens_ += size;
      if (sizes_.size() <= size) sizes_.resize(size + 1);
      ++sizes_[size];
      // The round went no further because of the next guess, or because the block or the sentence was over.
      auto const judged = size < block_ && i + 1 < blocks.size() ? size : size - 1;
      if (guesses_.size() < judged) guesses_.resize(judged);
      for (std::size_t guess = 0; guess < judged; ++guess) ++guesses_[guess].judged;
      for (std::size_t guess = 0; guess + 1 < size; ++guess) ++guesses_[guess].kept;
    }
  }

  std::uint64_t rounds() const { return rounds_; }
  std::uint64_t tokens() const { return tokens_; }  ///< that rounds settled: forced ones are not among them
  double mean() const { return static_cast<double>(tokens_) / static_cast<double>(rounds_); }
  std::vector<std::uint64_t> const& sizes() const { return sizes_; }  ///< [n]: rounds that settled n tokens
  std::vector<Guesses> const& guesses() const { return guesses_; }    ///< [i]: those after i others

 private:
  std::size_t block_;
  std::uint64_t rounds_ = 0, tokens_ = 0;
  std::vector<std::uint64_t> sizes_;
  std::vector<Guesses> guesses_;
};

/// The pieces, with a bar between what different rounds settled; those that were forced in brackets.
inline std::string explain(sluice::Hypothesis const& hypothesis, Tokenizer const& tokenizer) {
  auto token = hypothesis.tokens.begin();
  auto const next = [&](std::ptrdiff_t count) {
    std::string pieces;
    for (auto const end = token + count; token != end; ++token)
      pieces.append(pieces.empty() ? "" : " ").append(tokenizer.piece(*token));
    return pieces;
  };
  auto forced = std::ssize(hypothesis.tokens);
  for (auto const block : hypothesis.blocks) forced -= block;
  std::string text;
  if (forced > 0) text.append("[").append(next(forced)).append("] ");
  for (std::size_t i = 0; i < hypothesis.blocks.size(); ++i)
    text.append(i == 0 ? "" : " | ").append(next(hypothesis.blocks[i]));
  return text;
}

}  // namespace translate
