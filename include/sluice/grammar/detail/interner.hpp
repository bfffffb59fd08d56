// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers for sequences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Gives equal sequences of pairs the same number: 0, 1, 2, ... in order of first appearance.
class Interner {
 public:
  /// A sequence that represents a set must be sorted by the caller.
  struct Pair {
    std::int32_t first, second;
    friend auto operator<=>(Pair const&, Pair const&) = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 errs
  };

  template <class = void>
  Interner() : table_(64, -1) {
    begins_.push_back(0);
  }

  std::int32_t size() const { return static_cast<std::int32_t>(begins_.size()) - 1; }
  template <class = void>
  std::span<Pair const> operator[](std::int32_t id) const {
    auto const* const begin = begins_.data() + id;
    return std::span(pairs_).subspan(begin[0], begin[1] - begin[0]);
  }
  /// \param sequence  must not be stored in this interner
  template <class = void>
  std::int32_t intern(std::span<Pair const> sequence) {
    if (begins_.size() * 2 > table_.size()) grow();
    auto const slot = find(sequence);
    if (table_[slot] >= 0) return table_[slot];
    pairs_.insert(pairs_.end(), sequence.begin(), sequence.end());
    begins_.push_back(pairs_.size());
    return table_[slot] = size() - 1;
  }
  std::size_t bytes() const {
    return pairs_.size() * sizeof(Pair) + begins_.size() * sizeof(std::size_t) + table_.size() * sizeof(std::int32_t);
  }

 private:
  template <class = void>
  static std::size_t hash(std::span<Pair const> sequence) {
    std::uint64_t h = sequence.size();
    for (auto const [a, b] : sequence) {
      h ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
      h *= 0x9E3779B97F4A7C15u;
      h ^= h >> 29;
    }
    return cast<std::size_t>(h);
  }
  template <class = void>
  std::size_t find(std::span<Pair const> sequence) const {
    auto const mask = table_.size() - 1;
    auto slot = hash(sequence) & mask;
    while (table_[slot] >= 0 && !std::ranges::equal((*this)[table_[slot]], sequence)) slot = (slot + 1) & mask;
    return slot;
  }
  template <class = void>
  void grow() {
    table_.assign(table_.size() * 2, -1);
    for (std::int32_t id = 0; id < size(); ++id) table_[find((*this)[id])] = id;
  }

  std::vector<Pair> pairs_;
  std::vector<std::size_t> begins_;  // [size + 1]
  std::vector<std::int32_t> table_;  // open addressing; -1: free
};

}  // namespace sluice::inline v0::detail
