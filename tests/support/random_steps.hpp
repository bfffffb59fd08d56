// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random steps of a model: rows as decoders and searches may plan them, and harder ones.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/model/detail/slot_tokens.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

/// Forks, cuts, blocks of tokens and releases in groups of `width` slots; tokens count up, so they are all different.
class RandomSteps {
 public:
  RandomSteps(std::uint64_t seed, std::int32_t slots, std::int32_t width, std::int32_t positions)
      : random_(seed), slots_(slots), width_(width), positions_(positions) {}

  /// Draws the next step. `rows` and `released` (before the rows) are its contents; `tokens` is what slots hold
  /// afterwards.
  void next() {
    rows.clear(), released.clear(), fed_.clear();
    for (Slot first = 0; first < slots_; first += width_) {
      if (below(4) == 0) continue;
      auto const end = std::min(first + width_, slots_);
      if (below(40) == 0) {  // the sentence is over
        for (Slot slot = first; slot < end; ++slot) released.push_back(slot), tokens.clear(slot);
      } else if (below(3) == 0) {
        any(first, end);
      } else {
        beam(first, end);
      }
    }
    std::ranges::sort(rows, {}, &Row::to);
    tokens.apply(rows);
  }

  std::vector<Row> rows;
  std::vector<Slot> released;
  detail::SlotTokens tokens;

 private:
  std::int32_t below(std::int32_t n) { return static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(n)); }

  void row(Slot from, Slot to, std::int32_t length, std::int32_t count) {
    length = std::min(length, positions_ - 1);
    count = std::min(count, positions_ - length);
    auto& list = fed_.emplace_back();
    for (; count > 0; --count) list.push_back(++token_);
    rows.push_back({from, to, length, list});
  }

  /// A beam's step: all live slots continue at one length, some fork others, some are abandoned or released.
  void beam(Slot first, Slot end) {
    std::int32_t length = 0;
    for (Slot slot = first; slot < end; ++slot) length = std::max(length, tokens.length(slot));
    if (length >= positions_) length = positions_ - 1 - below(3);
    std::vector<Slot> live, other;
    for (Slot slot = first; slot < end; ++slot)
      (tokens.length(slot) >= length && below(5) != 0 ? live : other).push_back(slot);
    if (live.empty()) return any(first, end);
    for (auto const slot : live) row(slot, slot, length, 1);
    for (auto const slot : other) {
      if (below(6) == 0) released.push_back(slot), tokens.clear(slot);
      else if (below(4) != 0) row(live[static_cast<std::size_t>(below(std::ssize(live)))], slot, length, 1);
    }
  }

  /// Any rows that are allowed: every slot by itself, cuts of shared tokens, blocks.
  void any(Slot first, Slot end) {
    std::vector<Slot> read, other;
    for (Slot slot = first; slot < end; ++slot) (below(2) == 0 ? read : other).push_back(slot);
    for (auto const slot : read) {
      if (below(4) == 0) continue;
      auto const length = tokens.length(slot);
      row(slot, slot, below(2) == 0 ? length : below(length + 1), 1 + (below(3) == 0 ? below(40) : below(3)));
    }
    for (auto const slot : other) {
      if (read.empty() || below(4) == 0) continue;
      auto const from = read[static_cast<std::size_t>(below(std::ssize(read)))];
      auto const length = tokens.length(from);
      row(from, slot, below(2) == 0 ? length : below(length + 1), 1 + below(3));
    }
  }

  std::int32_t below(std::ptrdiff_t n) { return below(static_cast<std::int32_t>(n)); }

  std::mt19937_64 random_;
  std::int32_t slots_, width_, positions_;
  std::deque<std::vector<Token>> fed_;
  Token token_ = 0;
};

}  // namespace sluice::test
