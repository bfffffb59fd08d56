// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/constraints.hpp>
#include <sluice/search/detail/bank_choice.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

using namespace sluice;

namespace {

using Counts = std::vector<std::int32_t>;

Counts sizes(Counts const& counts, std::int32_t width) {
  Counts sizes(counts.size());
  detail::bank_sizes_paper(counts, width, sizes);
  return sizes;
}
Counts sizes_even(Counts const& counts, std::int32_t width) {
  Counts sizes(counts.size());
  detail::bank_sizes_even(counts, width, sizes);
  return sizes;
}
Counts sizes_sockeye(Counts const& counts, std::int32_t width) {
  Counts sizes(counts.size());
  detail::bank_sizes_sockeye(counts, width, sizes);
  return sizes;
}

std::int32_t sum(Counts const& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

/// Moves to the next list of numbers up to `most`; false after the last.
bool advance(Counts& counts, std::int32_t most) {
  for (auto& count : counts) {
    if (++count <= most) return true;
    count = 0;
  }
  return false;
}

/// Post and Vilar, one place at a time: it goes to the nearest bank that has a candidate for it.
Counts dealt_paper(Counts const& counts, std::int32_t width) {
  auto const banks = static_cast<std::int32_t>(counts.size());
  Counts sizes(counts.size(), width / banks);
  sizes.back() += width % banks;
  for (auto bank = banks - 1; bank >= 0; --bank) {
    auto const here = static_cast<std::size_t>(bank);
    while (sizes[here] > counts[here]) {
      auto to = -1;
      for (auto other = banks - 1; other >= 0; --other) {  // the upper one of two equally near
        auto const there = static_cast<std::size_t>(other);
        if (sizes[there] < counts[there] && (to < 0 || std::abs(other - bank) < std::abs(to - bank))) to = other;
      }
      --sizes[here];
      if (to >= 0) ++sizes[static_cast<std::size_t>(to)];
    }
  }
  return sizes;
}

/// Rounds, from the top down, until no place or no candidate is left.
Counts dealt_even(Counts const& counts, std::int32_t width) {
  Counts sizes(counts.size(), 0);
  auto const all = sum(counts);
  while (width > 0 && sum(sizes) < all)
    for (auto bank = counts.size(); bank-- > 0;)
      if (width > 0 && sizes[bank] < counts[bank]) ++sizes[bank], --width;
  return sizes;
}

/// A bank's surplus is passed down, and from the lowest bank to the top.
Counts dealt_sockeye(Counts const& counts, std::int32_t width) {
  auto const banks = static_cast<std::int32_t>(counts.size());
  Counts sizes;
  auto over = width % banks;
  for (auto bank = counts.size(); bank-- > 0;) {
    auto const has = width / banks + over, keeps = std::min(has, counts[bank]);
    over = has - keeps;
    sizes.insert(sizes.begin(), keeps);
  }
  sizes.back() += over;
  return sizes;
}

}  // namespace

TEST_CASE("sizes are what is dealt place by place", "[bank_sizes]") {
  std::size_t wrong = 0;
  for (std::int32_t width = 0; width <= 8; ++width)
    for (std::size_t banks = 1; banks <= 4; ++banks) {
      Counts counts(banks);
      do {
        wrong += sizes(counts, width) != dealt_paper(counts, width);
        wrong += sizes_even(counts, width) != dealt_even(counts, width);
        wrong += sizes_sockeye(counts, width) != dealt_sockeye(counts, width);
      } while (advance(counts, 6));
    }
  CHECK(wrong == 0);
}

TEST_CASE("what a bank cannot use goes to the others", "[bank_sizes]") {
  // Post and Vilar 2018, figure 3: five places, four constraints, all eight candidates in banks 0 and 1.
  CHECK(sizes({4, 4, 0, 0, 0}, 5) == Counts{1, 4, 0, 0, 0});
  CHECK(sizes({7, 1, 0, 0, 0}, 5) == Counts{4, 1, 0, 0, 0});
  CHECK(sizes({1, 7, 0, 0, 0}, 5) == Counts{1, 4, 0, 0, 0});
  // Enough candidates everywhere: equal shares, the remainder to the top.
  CHECK(sizes({9, 9, 9}, 8) == Counts{2, 2, 4});
  CHECK(sizes({9, 9, 9, 9, 9}, 3) == Counts{0, 0, 0, 0, 3});
  // To the nearest bank, the upper one first.
  CHECK(sizes({9, 0, 9}, 6) == Counts{2, 0, 4});
  CHECK(sizes({9, 0, 2}, 6) == Counts{4, 0, 2});
  CHECK(sizes({0, 9, 0, 9, 9}, 5) == Counts{0, 2, 0, 2, 1});
  // Sockeye's pass gives the top bank places that it cannot use.
  CHECK(sizes({0, 7, 1}, 8) == Counts{0, 7, 1});
  CHECK(sizes_sockeye({0, 7, 1}, 8) == Counts{0, 5, 3});
  CHECK(sizes({5}, 3) == Counts{3});
  CHECK(sizes({}, 3).empty());
}

TEST_CASE("by turns, no bank is more than one place ahead of one that has candidates left", "[bank_sizes]") {
  CHECK(sizes_even({9, 9, 9}, 8) == Counts{2, 3, 3});
  CHECK(sizes_even({9, 9, 9, 9, 9}, 3) == Counts{0, 0, 1, 1, 1});
  CHECK(sizes_even({4, 4, 0, 0, 0}, 5) == Counts{2, 3, 0, 0, 0});
  std::size_t wrong = 0;
  for (std::int32_t width = 0; width <= 8; ++width) {
    Counts counts(4);
    do {
      auto const s = sizes_even(counts, width);
      for (std::size_t i = 0; i < counts.size(); ++i)
        for (std::size_t j = 0; j < counts.size(); ++j)
          wrong += s[i] < counts[i] && (s[j] > s[i] + 1 || (j < i && s[j] > s[i]));
    } while (advance(counts, 9));
  }
  CHECK(wrong == 0);
}

TEST_CASE("no place is left unused while there are candidates", "[bank_sizes]") {
  std::size_t tried = 0, wrong = 0;
  for (std::int32_t width = 0; width <= 8; ++width)
    for (std::size_t banks = 1; banks <= 5; ++banks) {
      Counts counts(banks);
      do {
        for (auto const& s : {sizes(counts, width), sizes_even(counts, width)}) {
          auto within = true;
          for (std::size_t i = 0; i < banks; ++i) within &= s[i] >= 0 && s[i] <= counts[i];
          ++tried, wrong += !within || sum(s) != std::min(width, sum(counts));
        }
      } while (advance(counts, 9));
    }
  CHECK(wrong == 0);
  CHECK(tried == 2 * 9 * 111110);
}

TEST_CASE("a bank with enough candidates keeps its share", "[bank_sizes]") {
  std::size_t wrong = 0;
  for (std::int32_t width = 0; width <= 8; ++width)
    for (std::size_t banks = 1; banks <= 4; ++banks) {
      Counts counts(banks);
      do {
        auto const s = sizes(counts, width);
        auto const n = static_cast<std::int32_t>(banks);
        for (std::size_t i = 0; i < banks; ++i)
          wrong += s[i] < std::min(counts[i], width / n + (i + 1 == banks ? width % n : 0));
      } while (advance(counts, 9));
    }
  CHECK(wrong == 0);
}

TEST_CASE("a token exactly at the bar of its bank is dropped", "[bank_sizes]") {
  auto const threshold = std::exp(-1.0);
  REQUIRE(std::log(threshold) == -1);
  using Choice = detail::BankChoice;
  detail::Buffer<Choice::Pick> picks;
  for (auto const log_prob : {-1.0f, -1.5f, -2.0f, -2.5f})
    picks.push_back({0, 0, 0, static_cast<std::int32_t>(picks.size()), 3, log_prob, false, false});
  Choice choice;
  choice.reset(1), choice.clear(), choice.grow(picks.size());
  for (auto const& pick : picks) choice.bank(pick) = 0;
  choice.prune_locally(picks, threshold);
  CHECK(picks.size() == 2);
}
