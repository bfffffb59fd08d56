// SPDX-License-Identifier: Apache-2.0
/// \file
/// A test of whether counts come from a distribution.
#pragma once

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::test {

/// Pearson's statistic transformed to a normal variate (Wilson and Hilferty 1931): above 4 once in 30,000 times.
struct ChiSquared {
  double z = 0;
  std::size_t cells = 0;
};

/// \param counts         [n]
/// \param probabilities  [n], adding up to one; cells with an expected count below 10 are merged
inline ChiSquared chi_squared(std::span<std::int64_t const> counts, std::span<double const> probabilities) {
  double total = 0;
  for (auto const c : counts) total += static_cast<double>(c);
  double statistic = 0, rare_count = 0, rare = 0;
  std::size_t cells = 0;
  auto const add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected, ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto const expected = total * probabilities[i];
    if (expected >= 10) add(static_cast<double>(counts[i]), expected);
    else rare_count += static_cast<double>(counts[i]), rare += expected;
  }
  if (rare >= 10) add(rare_count, rare);
  auto const freedom = static_cast<double>(cells) - 1;
  if (freedom < 1) return {0, cells};
  auto const spread = 2 / (9 * freedom);
  return {(std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread), cells};
}

/// Checks that `counts` were drawn from `probabilities`, and that nothing impossible was drawn.
inline void check_distribution(std::span<std::int64_t const> counts, std::span<double const> probabilities,
                               std::size_t at_least_cells = 2) {
  REQUIRE(counts.size() == probabilities.size());
  double total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += probabilities[i];
    if (probabilities[i] <= 0 && counts[i] != 0) CHECK(counts[i] == 0);
  }
  CHECK_THAT(total, WithinAbs(1, 1e-9));
  auto const result = chi_squared(counts, probabilities);
  CHECK(result.cells >= at_least_cells);
  CHECK(result.z < 4);
}

}  // namespace sluice::test
