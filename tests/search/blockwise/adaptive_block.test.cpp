// SPDX-License-Identifier: Apache-2.0
// The number of guesses per round, against sums over all rounds.
#include <sluice/search/blockwise/detail/adaptive_block.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

using namespace sluice;

TEST_CASE("so many guesses are asked for as bring most tokens for the time", "[adaptive_block]") {
  std::mt19937_64 random(3);
  detail::AdaptiveBlock adaptive;
  std::map<std::int32_t, int> seen;
  for (int sentence = 0; sentence < 60; ++sentence) {
    adaptive.reset();
    CHECK(adaptive.cost() == 0);
    std::vector<double> tried, right;  // of each round
    double spread = 1;
    int resting = 0;
    auto const quality = random() % 100;
    auto const bursts = sentence % 3 == 0;
    for (int round = 0; round < 160; ++round) {
      auto const cost = static_cast<double>(random() % 30) / 50;
      adaptive.set_cost(cost);
      CHECK(adaptive.cost() == cost);
      auto const most = static_cast<std::int32_t>(random() % 9);
      // Each round weighs nine tenths of the one after it.
      double p_tried = 2 * std::pow(0.9, static_cast<double>(tried.size()));
      double p_right = p_tried / 2;
      for (std::size_t i = 0; i < tried.size(); ++i) {
        auto const weight = std::pow(0.9, static_cast<double>(tried.size() - 1 - i));
        p_tried += weight * tried[i], p_right += weight * right[i];
      }
      CHECK_THAT(adaptive.tried(), Catch::Matchers::WithinRel(p_tried, 1e-9));
      CHECK_THAT(adaptive.right(), Catch::Matchers::WithinRel(p_right, 1e-9));
      auto const rate = [&](std::int32_t guesses) {
        double tokens = 0;
        for (std::int32_t g = 0; g <= guesses; ++g) tokens += std::pow(p_right / p_tried, g);
        return tokens / (1 + cost * spread * guesses);
      };
      double best = 1;
      for (std::int32_t g = 1; g <= most; ++g) best = std::max(best, rate(g));
      auto const found = adaptive.best(most);
      REQUIRE((found >= 0 && found <= most));
      auto const rested = resting >= 64 && most > 0 && best <= 1;
      if (rested) CHECK(found == 1);
      else CHECK_THAT(rate(found), Catch::Matchers::WithinRel(best, 1e-9));
      ++seen[rested ? -1 : found];
      auto const ask = bursts && round % 80 > 5 ? 0 : found;
      adaptive.ask(ask);
      resting = ask == 0 ? resting + 1 : 0;
      if (ask == 0) continue;
      auto const guesses = static_cast<std::size_t>(ask) + random() % 6;
      adaptive.count_guesses(guesses, ask);
      spread = 0.8 * spread + 0.2 * static_cast<double>(guesses) / ask;
      tried.push_back(0), right.push_back(0);
      for (std::int32_t g = 0; g < ask; ++g) {
        auto const is = random() % 100 < quality;
        adaptive.count(is, g == 0);
        tried.back() += 1, right.back() += is;
        if (!is) break;
      }
    }
  }
  for (std::int32_t g = -1; g <= 8; ++g) CHECK(seen[g] > 10);
}

TEST_CASE("guesses that do not pay are tried now and then, and none that bring nothing", "[adaptive_block]") {
  detail::AdaptiveBlock adaptive;
  adaptive.set_cost(10);
  for (int round = 0; round < 64; ++round) {
    CHECK(adaptive.best(4) == 0);
    adaptive.ask(0);
  }
  CHECK((adaptive.best(4) == 1 && adaptive.best(0) == 0));
  adaptive.ask(1);
  CHECK(adaptive.best(4) == 0);
  adaptive.reset();
  for (int wrong = 0; wrong < 100; ++wrong) adaptive.count(false, true);
  auto const most = adaptive.best(100);  // they cost nothing, but beyond some position they are hardly ever right
  CHECK((most > 0 && most < 20));
}
