// SPDX-License-Identifier: Apache-2.0
/// \file
/// How many places of a beam each bank of dynamic beam allocation gets.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// Sizes of the banks, numbered from 0 (nothing met) to the top (all met), as Post and Vilar (2018, section 3.2)
/// describe them. Each bank first gets an equal share, and the top one the remainder. Then, from the top down, every
/// bank with more places than candidates gives its surplus to the nearest bank with more candidates than places; of two
/// equally near, the upper one comes first.
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
    sizes[bank] = (std::min)(sizes[bank], counts[bank]);  // no bank can use the rest
  }
}

/// Sizes that differ by at most one, except for banks with fewer candidates: in rounds, from the top down, every bank
/// that has a candidate left gets one place. Fills min(width, candidates) places. O(banks log width).
inline void bank_sizes_even(std::span<std::int32_t const> counts, std::int32_t width, std::span<std::int32_t> sizes) {
  auto const places = [&](std::int32_t rounds) {
    std::int64_t sum = 0;
    for (auto const count : counts) sum += (std::min)(count, rounds);
    return sum;
  };
  std::int32_t whole = 0, too_many = width + 1;  // rounds in which every bank gets a place
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

/// As Sockeye does it (1.18, lexical_constraints.py: get_bank_sizes): equal shares, the remainder to the top. Then,
/// from the top down, the surplus of a bank goes to the one below; the surplus of bank 0 goes to the top. In the top
/// bank, the size may exceed the candidates while other banks have candidates left.
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

}  // namespace sluice::inline v0::detail
