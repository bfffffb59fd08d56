// SPDX-License-Identifier: Apache-2.0
// Measures of latency against values worked out by hand and the formulas of the papers.
#include <sluice/result/commitment.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Delays = std::vector<std::size_t>;

/// g(t) of wait-k.
Delays wait_k(std::size_t k, std::size_t source, std::size_t target) {
  Delays delays;
  for (std::size_t t = 1; t <= target; ++t) delays.push_back(std::min(k + t - 1, source));
  return delays;
}

}  // namespace

TEST_CASE("measures of latency are those worked out by hand", "[latency]") {
  Delays const delays{2, 2, 3, 4, 4, 4};                              // of 4 words; so 2/3 of a word a unit
  CHECK_THAT(average_lagging(delays, 4), WithinAbs(7.0 / 4, 1e-12));  // 2 + (2 - 2/3) + (3 - 4/3) + (4 - 2), over 4
  CHECK_THAT(average_lagging(delays, 4, 8), WithinAbs(2, 1e-12));     // 2 + (2 - 1/2) + (3 - 1) + (4 - 3/2)
  CHECK_THAT(average_lagging(delays, 4, 3), WithinAbs(0.75, 1e-12));  // 2 + (2 - 4/3) + (3 - 8/3) + (4 - 4)
  CHECK_THAT(length_adaptive_average_lagging(delays, 4, 8), WithinAbs(2, 1e-12));
  CHECK_THAT(length_adaptive_average_lagging(delays, 4, 3), WithinAbs(1.75, 1e-12));
  CHECK_THAT(average_proportion(delays, 4), WithinAbs(19.0 / 24, 1e-12));
  // 2, 8/3, 10/3, 4, 14/3, 16/3 when each takes its time: 2 behind an even pace everywhere.
  CHECK_THAT(differentiable_average_lagging(delays, 4), WithinAbs(2, 1e-12));

  CHECK_THAT(average_lagging(Delays{1}, 1), WithinAbs(1, 1e-12));
  CHECK_THAT(average_lagging(Delays{0, 0}, 2), WithinAbs(-0.5, 1e-12));  // written before anything was read
  CHECK_THAT(average_lagging(Delays{1, 2}, 5),
             WithinAbs(0.25, 1e-12));  // nothing written at the end: 1 + (2 - 5/2), over 2
}

TEST_CASE("wait-k lags by k, waiting for the end by the whole source", "[latency]") {
  for (std::size_t size = 1; size <= 12; ++size)
    for (std::size_t k = 1; k <= size; ++k) {
      auto const delays = wait_k(k, size, size);
      CHECK_THAT(average_lagging(delays, size), WithinAbs(static_cast<double>(k), 1e-9));
      CHECK_THAT(differentiable_average_lagging(delays, size), WithinAbs(static_cast<double>(k), 1e-9));
    }
  for (std::size_t size = 1; size <= 12; ++size)
    for (std::size_t target = 1; target <= 12; ++target) {
      Delays const delays(target, size);
      CHECK_THAT(average_lagging(delays, size), WithinAbs(static_cast<double>(size), 1e-9));
      CHECK_THAT(differentiable_average_lagging(delays, size), WithinAbs(static_cast<double>(size), 1e-9));
      CHECK_THAT(average_proportion(delays, size), WithinAbs(1, 1e-9));
    }
}

TEST_CASE("measures of latency are their definitions", "[latency]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    auto const x = 1 + random() % 12, y = 1 + random() % 12, reference = 1 + random() % 12;
    Delays g(y);
    for (auto& delay : g) delay = random() % (x + 1);
    std::sort(g.begin(), g.end());

    // Ma et al. (2019): 1/tau sum_{t <= tau} g(t) - (t - 1) / r, tau the first t with g(t) = |x|, r = |y| / |x|.
    auto const lag = [&](double length) {
      auto tau = y;
      for (auto t = y; t >= 1; --t)
        if (g[t - 1] == x) tau = t;
      double sum = 0;
      for (std::size_t t = 1; t <= tau; ++t)
        sum += static_cast<double>(g[t - 1]) - static_cast<double>(t - 1) / (length / static_cast<double>(x));
      return sum / static_cast<double>(tau);
    };
    CHECK_THAT(average_lagging(g, x), WithinAbs(lag(static_cast<double>(y)), 1e-9));
    CHECK_THAT(average_lagging(g, x, reference), WithinAbs(lag(static_cast<double>(reference)), 1e-9));
    CHECK_THAT(length_adaptive_average_lagging(g, x, reference),
               WithinAbs(lag(static_cast<double>(std::max(y, reference))), 1e-9));

    double proportion = 0;
    for (auto const delay : g) proportion += static_cast<double>(delay) / static_cast<double>(x * y);
    CHECK_THAT(average_proportion(g, x), WithinAbs(proportion, 1e-9));

    // Cherry and Foster (2019): g'(t) = max(g(t), g'(t - 1) + 1/r): the largest of g(s) + (t - s)/r, s <= t.
    auto const pace = static_cast<double>(x) / static_cast<double>(y);
    double differentiable = 0;
    for (std::size_t t = 1; t <= y; ++t) {
      double most = 0;
      for (std::size_t s = 1; s <= t; ++s)
        most = std::max(most, static_cast<double>(g[s - 1]) + static_cast<double>(t - s) * pace);
      differentiable += most - static_cast<double>(t - 1) * pace;
    }
    CHECK_THAT(differentiable_average_lagging(g, x), WithinAbs(differentiable / static_cast<double>(y), 1e-9));
  }
}

TEST_CASE("latency of nothing is refused, and so are delays that make no sense", "[latency]") {
  for (auto const measure : {+[](Delays const&g, std::size_t x) { return average_lagging(g, x); },
                             +[](Delays const&g, std::size_t x) { return length_adaptive_average_lagging(g, x, 3); },
                             +[](Delays const&g, std::size_t x) { return average_proportion(g, x); },
                             +[](Delays const&g, std::size_t x) { return differentiable_average_lagging(g, x); }}) {
    CHECK_THROWS_AS(measure({}, 3), std::invalid_argument);
    CHECK_THROWS_AS(measure({1}, 0), std::invalid_argument);
    CHECK_THROWS_AS(measure({1, 4}, 3), std::invalid_argument);
    CHECK_THROWS_AS(measure({2, 1}, 3), std::invalid_argument);
    CHECK_NOTHROW(measure({1, 1}, 3));
  }
}
