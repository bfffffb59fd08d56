// SPDX-License-Identifier: Apache-2.0
// The number of guesses per round, against sums over all rounds.
#include <sluice/speculative/detail/adaptive_block.hpp>

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

TEST_CASE("by measured costs and rates as many are asked for as bring most tokens for the time", "[adaptive_block]") {
  std::mt19937_64 random(4);
  auto const uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  std::map<std::int32_t, int> seen;
  for (int sentence = 0; sentence < 400; ++sentence) {
    detail::AdaptiveBlock adaptive;
    std::vector<std::vector<int>> right(20);  // [depth]: of each guess, in order
    double spread = 1;
    for (int round = 0; round < 30; ++round) {
      std::vector<double> costs(16), rates(16);
      auto const each = uniform(0, 0.3);
      for (std::size_t g = 0; g < 16; ++g)
        costs[g] = random() % 8 == 0 ? -1 : each * static_cast<double>(g + 1) * uniform(0.8, 1.2);
      for (auto& one : rates) one = uniform(0, 1);
      auto const most = static_cast<std::int32_t>(random() % 20);

      double best = 1, tokens = 1, chance = 1;
      std::int32_t expected = 0;
      for (std::int32_t g = 1; g <= most; ++g) {
        auto const depth = std::min<std::size_t>(static_cast<std::size_t>(g) - 1, 15);
        auto sum = 4 * rates[depth], count = 4.0;  // as if four of others had been tried
        for (std::size_t i = 0; i < right[depth].size(); ++i) {
          auto const weight = std::pow(0.9, static_cast<double>(right[depth].size() - 1 - i));
          sum += weight * right[depth][i], count += weight;
        }
        chance *= sum / count, tokens += chance;
        auto const guesses = spread * g;  // between what so many whole ones cost; in proportion, beyond the last
        auto const low = static_cast<std::size_t>(guesses);
        auto const part = guesses - static_cast<double>(low);
        auto const of = [&](std::size_t n) { return n == 0 ? 0 : costs[n - 1]; };
        double cost = 0;
        if (guesses > 16) cost = costs[15] < 0 ? -1 : costs[15] * guesses / 16;
        else if (of(low) < 0 || (part > 0 && of(low + 1) < 0)) cost = -1;
        else cost = of(low) * (1 - part) + (part > 0 ? of(low + 1) * part : 0);
        if (cost < 0) continue;
        if (auto const rate = tokens / (1 + cost); rate > std::max(best, 1.01)) best = rate, expected = g;
      }
      CHECK(adaptive.best(most, costs, rates) == expected);
      ++seen[expected];

      if (round % 5 == 4) {
        auto const wanted = 1 + static_cast<std::int32_t>(random() % 6);
        auto const guesses = 1 + random() % 12;
        adaptive.count_guesses(guesses, wanted);
        spread = 0.8 * spread + 0.2 * static_cast<double>(guesses) / wanted;
      }
      auto const length = random() % 19;
      for (std::size_t g = 0; g < length; ++g) {
        auto const is = random() % 5 != 0;
        adaptive.count(is, g == 0);
        right[std::min<std::size_t>(g, 15)].push_back(is);
      }
    }
  }
  for (std::int32_t g = 0; g <= 6; ++g) CHECK(seen[g] > 10);
}
