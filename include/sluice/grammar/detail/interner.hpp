// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers for sequences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/stable_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Gives equal sequences of pairs the same number: 0, 1, 2, ... in order of first appearance. Sequences may be read
/// while others are added, see StableVector.
class Interner {
 public:
  /// A sequence that represents a set must be sorted by the caller.
  struct Pair {
    std::int32_t first, second;
    friend auto operator<=>(Pair const&, Pair const&) = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 errs
  };

  SLUICE_LAZY Interner() : table_(64) {}

  std::int32_t size() const { return static_cast<std::int32_t>(all_.size()); }
  SLUICE_LAZY std::span<Pair const> operator[](std::int32_t id) const { return all_[static_cast<std::size_t>(id)]; }
  SLUICE_LAZY std::int32_t intern(std::span<Pair const> sequence) {
    if (all_.size() * 2 >= table_.size()) grow();
    auto const h = hash(sequence);
    auto const mask = table_.size() - 1;
    auto slot = h & mask;
    for (; table_[slot].id >= 0; slot = (slot + 1) & mask)
      if (table_[slot].hash == h && std::ranges::equal((*this)[table_[slot].id], sequence)) return table_[slot].id;
    auto const first = pairs_.add(sequence.size());
    for (std::size_t i = 0; i < sequence.size(); ++i) pairs_[first + i] = sequence[i];
    all_.resize(all_.size() + 1);
    if (!sequence.empty()) all_[all_.size() - 1] = {&pairs_[first], sequence.size()};
    table_[slot] = {size() - 1, h};
    return size() - 1;
  }
  std::size_t bytes() const {
    return pairs_.size() * sizeof(Pair) + all_.size() * sizeof(std::span<Pair const>) + table_.size() * sizeof(Slot);
  }

 private:
  struct Slot {
    std::int32_t id = -1;  // -1: free
    std::uint32_t hash = 0;
  };
  SLUICE_LAZY static std::uint32_t hash(std::span<Pair const> sequence) {
    std::uint64_t h = sequence.size();
    for (auto const [a, b] : sequence) {
      h ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
      h *= 0x9E3779B97F4A7C15u;
      h ^= h >> 29;
    }
    return static_cast<std::uint32_t>(h);
  }
  /// Hashes are kept, so that this does not read the sequences: it may fall into the time of one mask.
  SLUICE_LAZY void grow() {
    auto larger = std::vector<Slot>(table_.size() * 2);
    auto const mask = larger.size() - 1;
    for (auto const one : table_) {
      if (one.id < 0) continue;
      auto slot = one.hash & mask;
      while (larger[slot].id >= 0) slot = (slot + 1) & mask;
      larger[slot] = one;
    }
    table_.swap(larger);
  }

  StableVector<Pair> pairs_;
  StableVector<std::span<Pair const>> all_;
  std::vector<Slot> table_;  // open addressing
};

}  // namespace sluice::inline v0::detail
