// SPDX-License-Identifier: Apache-2.0
/// \file
/// Token sets in the form that kernels read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// The sets that queries refer to, each stored once. Allocates nothing once it has seen the most sets.
class TokenMasks {
 public:
  /// \param size  V
  /// \throws std::invalid_argument  if there are too many to number
  void collect(std::span<Query const> queries, std::ptrdiff_t size) {
    sets_.clear();
    for (auto const& query : queries)
      for (auto const* const set : {query.shortlist, query.only})
        if (set != nullptr && (sets_.empty() || sets_.back() != set)) sets_.push_back(set);
    std::ranges::sort(sets_);
    sets_.erase(std::ranges::unique(sets_).begin(), sets_.end());
    words_of_one_ = static_cast<std::size_t>(size + 31) / 32;
    require(words() <= std::size_t{(std::numeric_limits<std::int32_t>::max)()}, "LogSoftmaxTopK: sets of tokens",
            sets_.size(), "are too many for so many tokens");
  }
  /// The 32-bit words of all sets together.
  std::size_t words() const { return sets_.size() * words_of_one_; }
  /// Where a set's words begin; -1 for no set.
  std::int32_t first(TokenSet const* set) const {
    if (set == nullptr) return -1;
    auto const at = std::ranges::lower_bound(sets_, set) - sets_.begin();
    return static_cast<std::int32_t>(static_cast<std::size_t>(at) * words_of_one_);
  }
  void write(std::uint32_t* to) const {
    for (auto const* const set : sets_)
      for (std::size_t i = 0; i < words_of_one_; ++i) {
        auto const pairs = set->words();
        auto const pair = i / 2 < pairs.size() ? pairs[i / 2] : 0;
        *to++ = static_cast<std::uint32_t>(i % 2 == 0 ? pair : pair >> 32);
      }
  }

 private:
  std::vector<TokenSet const*> sets_;  // ascending
  std::size_t words_of_one_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
