// SPDX-License-Identifier: Apache-2.0
/// \file
/// Labels that stand for repetitions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// A spelling without equal neighbours, for models without a blank (AsgFrames): after a label, `first + i` says that it comes i + 1 times
/// more, at most `most` times (flashlight: replabels, packReplabels). "hello" is h e l 1 o.
/// \param first  the label for one repetition; the next ones are for more
/// \param most   how many such labels there are; 0: none, and equal neighbours stay
/// \throws std::invalid_argument  for `most` < 0
template <class = void>
std::vector<Token> pack_repetitions(std::span<Token const> labels, Token first, std::int32_t most = 1) {
  require(most >= 0, "most", most, "must not be negative");
  std::vector<Token> packed;
  for (std::size_t i = 0; i < labels.size();) {
    std::int32_t more = 0;
    while (more < most && i + static_cast<std::size_t>(more) + 1 < labels.size() &&
           labels[i + static_cast<std::size_t>(more) + 1] == labels[i])
      ++more;
    packed.push_back(labels[i]);
    if (more > 0) packed.push_back(first + more - 1);
    i += static_cast<std::size_t>(more) + 1;
  }
  return packed;
}

/// The labels that pack_repetitions() packed. A repetition without a label before it, as a model may write it, is dropped.
template <class = void>
std::vector<Token> unpack_repetitions(std::span<Token const> packed, Token first, std::int32_t most = 1) {
  std::vector<Token> labels;
  auto repeatable = false;
  for (auto const token : packed) {
    if (token < first || token - first >= most) {
      labels.push_back(token), repeatable = true;
      continue;
    }
    if (repeatable) {
      auto const label = labels.back();
      labels.insert(labels.end(), static_cast<std::size_t>(token - first) + 1, label);
    }
    repeatable = false;
  }
  return labels;
}

}  // namespace sluice::inline v0
