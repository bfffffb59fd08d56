// SPDX-License-Identifier: Apache-2.0
/// \file
/// From scores to log-probabilities, and what edits make of either.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace sluice::inline v0 {

/// What turns a score into a log-probability. Two subtractions: the sum would be lost in a large maximum.
struct LineNorm {
  double maximum = 0, log_sum = 0;
  double operator()(float x) const { return static_cast<double>(x) - maximum - log_sum; }
  /// Finite for a finite x.
  float rounded(float x) const {
    constexpr auto lowest = -std::numeric_limits<double>::infinity();
    constexpr auto least = static_cast<double>(std::numeric_limits<float>::lowest());
    auto const log_prob = (*this)(x);
    return static_cast<float>(log_prob < least && log_prob > lowest ? least : log_prob);
  }
};

/// A place in a line, a number, and the one by which it is chosen.
struct Ranked {
  Token place;
  float value;
  double rank;
  /// Higher ranks first, then earlier places.
  friend bool operator<(Ranked const& a, Ranked const& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place < b.place;
  }
};

inline float changed(float x, Edit const& edit) { return (x > 0 ? x / edit.penalty : x * edit.penalty) + edit.add; }

/// A score after all edits of its token.
inline float changed(float x, Token token, std::span<Edit const> edits) {
  for (auto const& edit : edits)
    if (edit.token == token) x = changed(x, edit);
  return x;
}

/// Tokens first .. first + line.size() - 1 that `only` lacks become -infinity.
inline void mask(std::span<float> line, std::size_t first, TokenSet const& only) {
  constexpr std::size_t bits = 64;
  auto const words = only.words();
  for (std::size_t i = 0; i < line.size();) {
    auto const word = (first + i) / bits, bit = (first + i) % bits;
    auto const held = (word < words.size() ? words[word] : 0) >> bit;
    auto const count = std::min(bits - bit, line.size() - i);
    for (std::size_t j = 0; j < count; ++j)
      if ((held >> j & 1) == 0) line[i + j] = -std::numeric_limits<float>::infinity();
    i += count;
  }
}

/// Edits the scores of tokens first .. first + line.size() - 1, then masks them with `only` unless it is nullptr.
inline void change(std::span<float> line, std::size_t first, std::span<Edit const> edits, TokenSet const* only) {
  for (auto const& edit : edits) {
    auto const place = static_cast<std::size_t>(edit.token) - first;  // far too large for a token before `first`
    if (place < line.size()) line[place] = changed(line[place], edit);
  }
  if (only != nullptr) mask(line, first, *only);
}

}  // namespace sluice::inline v0
