// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which frames the tokens of a beam's prefixes are on.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A token on its frames, and what is before it.
struct AlignedToken {
  std::int32_t before = -1;  // the token before it, in Alignments; -1: it is the first
  FrameRange frames{};
  float peak = -std::numeric_limits<float>::infinity();  // its log-probability at its best frame
};

/// The best alignment of a prefix among those that end alike.
struct BestAlignment {
  double log_prob = -std::numeric_limits<double>::infinity();
  AlignedToken last{};  // frames {0, 0}: no token yet
};

/// Alignments as lists that share their beginnings. Nothing is allocated once warm.
class Alignments {
 public:
  void clear() { tokens_.clear(), limit_ = least; }
  SLUICE_LAZY std::int32_t add(AlignedToken const& token) {
    tokens_.push_back(token);
    return static_cast<std::int32_t>(tokens_.size()) - 1;
  }
  AlignedToken const& operator[](std::int32_t i) const { return tokens_[static_cast<std::size_t>(i)]; }

  bool full() const { return tokens_.size() > limit_; }
  /// Drops all but those of `kept` and what is before them, and renumbers `kept`. O(all).
  SLUICE_LAZY void collect(std::span<std::int32_t> kept) {
    moved_.assign(tokens_.size(), -1);
    for (auto const i : kept)
      if (i >= 0) moved_[static_cast<std::size_t>(i)] = 0;
    for (auto i = tokens_.size(); i-- > 0;)  // what is before a token has a lower number
      if (moved_[i] >= 0 && tokens_[i].before >= 0) moved_[static_cast<std::size_t>(tokens_[i].before)] = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (moved_[i] < 0) continue;
      moved_[i] = static_cast<std::int32_t>(count);
      auto token = tokens_[i];
      if (token.before >= 0) token.before = moved_[static_cast<std::size_t>(token.before)];
      tokens_[count++] = token;
    }
    tokens_.resize(count);
    for (auto& i : kept)
      if (i >= 0) i = moved_[static_cast<std::size_t>(i)];
    limit_ = (std::max)(least, 2 * count);
  }

 private:
  static constexpr std::size_t least = 4096;
  std::vector<AlignedToken> tokens_;
  std::vector<std::int32_t> moved_;  // scratch
  std::size_t limit_ = least;
};

}  // namespace sluice::inline v0::detail
