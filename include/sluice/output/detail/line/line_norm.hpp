// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns scores into log-probabilities, and applies edits to either.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Turns a score into a log-probability. Uses two subtractions, since adding the sum to a large maximum would lose it.
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
  /// The score for a changed log-probability: the nearest float, or the next lower one if the nearest would be more
  /// probable. Finite for a finite one.
  float score(float log_prob) const {
    constexpr auto most = (std::numeric_limits<float>::max)();
    if (!(log_prob > -std::numeric_limits<float>::infinity())) return log_prob;
    auto const exact = static_cast<double>(log_prob) + log_sum + maximum;
    auto const x = static_cast<float>(std::clamp(exact, static_cast<double>(-most), static_cast<double>(most)));
    if (!((*this)(x) > static_cast<double>(log_prob))) return x;
    return (std::max)(std::nextafter(x, -std::numeric_limits<float>::infinity()), -most);
  }
};

/// Copies the scores of a line for editing; a block of 64 tokens without any in `only` (unless nullptr) becomes
/// -infinity.
inline void copy_scores(std::span<float const> line, TokenSet const* only, std::vector<float>& to) {
  constexpr std::size_t bits = 64;
  to.assign(line.begin(), line.end());
  if (only == nullptr) return;
  auto const words = only->words();
  for (std::size_t first = 0; first < line.size(); first += bits) {
    auto const word = first / bits;
    if (word < words.size() && words[word] != 0) continue;
    auto const count = (std::min)(bits, line.size() - first);
    std::fill_n(to.begin() + static_cast<std::ptrdiff_t>(first), count, -std::numeric_limits<float>::infinity());
  }
}

/// An index in a line, its number, and the number by which it is ranked.
struct Ranked {
  Token place;
  float value;
  double rank;
  /// Higher ranks first, then lower indices.
  friend bool operator<(Ranked const& a, Ranked const& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place < b.place;
  }
};

inline float changed(float x, Edit const& edit) { return (x > 0 ? x / edit.penalty : x * edit.penalty) + edit.add; }

/// A score after an edit of its log-probability. An addition is made to the score, since scores are compared; a penalty
/// needs the log-probability, so the score is converted there and back. A sum of finite numbers is finite.
inline float changed(float x, Edit const& edit, LineNorm norm) {
  if (edit.penalty != 1) return norm.score(changed(norm.rounded(x), edit));
  constexpr auto most = (std::numeric_limits<float>::max)();
  auto const sum = x + edit.add;
  return std::abs(x) <= most && std::abs(edit.add) <= most ? std::clamp(sum, -most, most) : sum;
}

/// The same after all edits of its token.
inline float changed(float x, Token token, std::span<Edit const> edits, LineNorm norm) {
  for (auto const& edit : edits)
    if (edit.token == token) x = changed(x, edit, norm);
  return x;
}

/// Sets those of 32 scores whose bit is 0 to -infinity. A fixed count without branches, so that compilers vectorise.
inline void mask_32(float* line, std::uint32_t held) {
  if (held == ~std::uint32_t{0}) return;
  for (std::uint32_t j = 0; j < 32; ++j)
    line[j] = (held >> j & 1u) != 0 ? line[j] : -std::numeric_limits<float>::infinity();
}

/// Sets tokens first .. first + line.size() - 1 that are not in `only` to -infinity.
inline void mask(std::span<float> line, std::size_t first, TokenSet const& only) {
  constexpr std::size_t bits = 64;
  auto const words = only.words();
  for (std::size_t i = 0; i < line.size();) {
    auto const word = (first + i) / bits, bit = (first + i) % bits;
    auto const held = (word < words.size() ? words[word] : 0) >> bit;
    auto const count = (std::min)(bits - bit, line.size() - i);
    if (count == bits) {
      mask_32(line.data() + i, static_cast<std::uint32_t>(held));
      mask_32(line.data() + i + 32, static_cast<std::uint32_t>(held >> 32));
    } else {
      for (std::size_t j = 0; j < count; ++j)
        if ((held >> j & 1) == 0) line[i + j] = -std::numeric_limits<float>::infinity();
    }
    i += count;
  }
}

/// Edits the scores of tokens first .. first + line.size() - 1, then masks them with `only` unless it is nullptr.
inline void change(std::span<float> line, std::size_t first, std::span<Edit const> edits, TokenSet const* only) {
  for (auto const& edit : edits) {
    // wraps to a huge number for a token before `first`
    auto const place = static_cast<std::size_t>(edit.token) - first;
    if (place < line.size()) line[place] = changed(line[place], edit);
  }
  if (only != nullptr) mask(line, first, *only);
}

/// Edits the log-probabilities of a whole line of scores, then masks it with `only` unless it is nullptr.
inline void change(std::span<float> line, LineNorm norm, std::span<Edit const> edits, TokenSet const* only) {
  for (auto const& edit : edits) {
    auto const place = static_cast<std::size_t>(edit.token);  // wraps to a huge number for a negative token
    if (place < line.size()) line[place] = changed(line[place], edit, norm);
  }
  if (only != nullptr) mask(line, 0, *only);
}

}  // namespace sluice::inline v0::detail
