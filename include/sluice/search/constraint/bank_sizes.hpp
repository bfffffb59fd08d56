// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a beam is divided among hypotheses that have met more and less of their constraints.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0 {

/// How many of its `width` places a beam gives to each bank.
enum class Banks : std::uint8_t {
  even,  ///< by turns, from the top bank down, one place to every bank that has a candidate left
  paper,  ///< Post and Vilar 2018, section 3.2: equal shares, the rest to the top bank; what a bank cannot use goes to the
          ///< nearest that can
  sockeye,  ///< Sockeye's way of that: one pass from the top, which may leave places unused
  fairseq,  ///< no sizes: the best of every bank, from the top bank down, then the second best of every bank, and so on
  equal,    ///< width / banks each, none redistributed (grid beam search)
};

/// Sizes of the banks, which are numbered from 0 (nothing met) to the top (all met), as Post and Vilar (2018, section 3.2)
/// describe them. Each first gets an equal share, the top the remainder. Then every bank with more places than candidates,
/// from the top down, gives what it has too much to the nearest bank with more candidates than places, the upper one first
/// where two are as near.
///
/// Fills min(width, candidates) places. O(banks^2).
/// \param counts  [banks] candidates
/// \param sizes   [banks] written; never more than counts
inline void bank_sizes_paper(std::span<std::int32_t const> counts, std::int32_t width, std::span<std::int32_t> sizes) {
  if (sizes.empty()) return;
  auto const banks = static_cast<std::int32_t>(sizes.size());
  std::fill(sizes.begin(), sizes.end(), width / banks);
  sizes.back() += width % banks;
  auto const move = [&](std::size_t from, std::ptrdiff_t to) {
    if (to < 0 || to >= std::ssize(sizes)) return;
    auto const other = static_cast<std::size_t>(to);
    auto const moved = std::clamp(counts[other] - sizes[other], 0, sizes[from] - counts[from]);
    sizes[from] -= moved, sizes[other] += moved;
  };
  for (auto bank = sizes.size(); bank-- > 0;) {
    for (std::ptrdiff_t away = 1; away < std::ssize(sizes) && sizes[bank] > counts[bank]; ++away) {
      move(bank, static_cast<std::ptrdiff_t>(bank) + away);
      move(bank, static_cast<std::ptrdiff_t>(bank) - away);
    }
    sizes[bank] = (std::min)(sizes[bank], counts[bank]);  // nobody can use the rest
  }
}

/// Sizes that differ by one at most, but for banks with fewer candidates: place by place to every bank that has a candidate
/// left, from the top down. Fills min(width, candidates) places. O(banks log width).
inline void bank_sizes_even(std::span<std::int32_t const> counts, std::int32_t width, std::span<std::int32_t> sizes) {
  auto const places = [&](std::int32_t rounds) {
    std::int64_t sum = 0;
    for (auto const count : counts) sum += (std::min)(count, rounds);
    return sum;
  };
  std::int32_t whole = 0, too_many = width + 1;  // rounds in which everybody gets a place
  while (too_many - whole > 1) {
    auto const rounds = whole + (too_many - whole) / 2;
    (places(rounds) <= width ? whole : too_many) = rounds;
  }
  auto left = width - static_cast<std::int32_t>(places(whole));
  for (auto bank = sizes.size(); bank-- > 0;) {
    sizes[bank] = (std::min)(counts[bank], whole);
    if (left > 0 && counts[bank] > whole) ++sizes[bank], --left;
  }
}

/// As Sockeye does it (1.18, lexical_constraints.py: get_bank_sizes): equal shares, the remainder to the top; then from the
/// top down what a bank has too much goes to the one below, that of bank 0 to the top. Sizes may exceed counts, in the top
/// bank, while others have candidates left.
inline void bank_sizes_sockeye(std::span<std::int32_t const> counts, std::int32_t width,
                               std::span<std::int32_t> sizes) {
  if (sizes.empty()) return;
  auto const banks = static_cast<std::int32_t>(sizes.size());
  std::fill(sizes.begin(), sizes.end(), width / banks);
  sizes.back() += width % banks;
  for (auto bank = sizes.size(); bank-- > 0;) {
    auto const surplus = sizes[bank] - counts[bank];
    if (surplus <= 0) continue;
    sizes[bank] -= surplus;
    sizes[bank == 0 ? sizes.size() - 1 : bank - 1] += surplus;
  }
}

}  // namespace sluice::inline v0
