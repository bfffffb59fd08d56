// SPDX-License-Identifier: Apache-2.0
// One token by adaptive weighted rejection sampling: expectations over all orders in which tokens may be drawn, exactly.
#include <sluice/search/detail/particle_rejection.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Some probabilities that add up to one, and which tokens are accepted.
struct Draws {
  std::vector<double> mass;
  std::vector<bool> accepted;
  double accepted_mass() const {
    double sum = 0;
    for (std::size_t i = 0; i < mass.size(); ++i) sum += accepted[i] ? mass[i] : 0;
    return sum;
  }
};

Draws some_draws(std::mt19937_64& random, std::size_t size) {
  Draws draws;
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    draws.mass.push_back(std::exp(6 * static_cast<double>(random() % 1000) / 1000));
    draws.accepted.push_back(random() % 3 == 0);
    sum += draws.mass.back();
  }
  for (auto& x : draws.mass) x = static_cast<double>(std::log(static_cast<float>(x / sum)));
  for (auto& x : draws.mass) x = std::exp(static_cast<double>(static_cast<float>(x)));  // as a candidate has it
  return draws;
}

/// Calls take(list, probability) for every list of `most` tokens (or all) that can be drawn without replacement.
void for_all_lists(Draws const& draws, std::size_t most,
                   std::function<void(std::vector<Candidate> const&, double)> const& take) {
  std::vector<Candidate> list;
  std::vector<bool> used(draws.mass.size());
  std::function<void(double, double)> extend = [&](double probability, double left) {
    if (list.size() == std::min(most, draws.mass.size())) return take(list, probability);
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      used[i] = true;
      list.push_back({static_cast<Token>(i), static_cast<float>(std::log(draws.mass[i]))});
      extend(probability * draws.mass[i] / left, left - draws.mass[i]);
      list.pop_back(), used[i] = false;
    }
  };
  double all = 0;
  for (auto const x : draws.mass) all += x;
  extend(1, all);
}

}  // namespace

TEST_CASE("reject: properly weighted, whatever the list's length and the number of looks") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    auto const size = 1 + random() % 6;
    auto const draws = some_draws(random, size);
    for (std::size_t most = 1; most <= size; ++most)
      for (std::int32_t looks = 1; looks <= 3; ++looks) {
        // E[mass * 1{token = a}]
        std::vector<double> expected(size);
        double reached = 0, conditional = 0;
        for_all_lists(draws, most, [&](std::vector<Candidate> const& list, double probability) {
          std::size_t calls = 0;
          auto const found = detail::reject(list, most == size, looks, [&](std::size_t place) {
            CHECK(place == calls++);
            return draws.accepted[static_cast<std::size_t>(list[place].token)];
          });
          if (!(found.mass > 0)) return;
          // the first that is accepted
          for (std::size_t i = 0; i < found.place; ++i)
            CHECK_FALSE(draws.accepted[static_cast<std::size_t>(list[i].token)]);
          auto const token = static_cast<std::size_t>(list[found.place].token);
          CHECK(draws.accepted[token]);
          CHECK(calls <= found.place + 1 + static_cast<std::size_t>(looks));
          CHECK(found.mass <= 1 + 1e-6);
          expected[token] += probability * found.mass;
          reached += probability, conditional += probability * found.mass;
        });
        INFO("size " << size << ", list of " << most << ", looks " << looks);
        for (std::size_t a = 0; a < size; ++a)
          if (std::abs(expected[a] - (draws.accepted[a] ? draws.mass[a] : 0)) > 2e-6)
            CHECK(expected[a] == (draws.accepted[a] ? draws.mass[a] : 0));
        if (most == size && draws.accepted_mass() > 0) {  // a list of all always has the token
          CHECK_THAT(reached, WithinAbs(1, 1e-6));
          CHECK_THAT(conditional, WithinAbs(draws.accepted_mass(), 2e-6));
        }
      }
  }
}

TEST_CASE("reject: more looks, less variance; all looks, none") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 20; ++round) {
    auto draws = some_draws(random, 6);
    draws.accepted[0] = draws.accepted[1] = true;
    std::vector<double> variances;
    for (auto const looks : {1, 2, 4, 6}) {
      double squares = 0;
      for_all_lists(draws, 6, [&](std::vector<Candidate> const& list, double probability) {
        auto const found = detail::reject(list, true, looks, [&](std::size_t place) {
          return draws.accepted[static_cast<std::size_t>(list[place].token)];
        });
        squares += probability * (found.mass - draws.accepted_mass()) * (found.mass - draws.accepted_mass());
      });
      variances.push_back(squares);
    }
    INFO("round " << round);
    for (std::size_t i = 1; i < variances.size(); ++i) CHECK(variances[i] <= variances[i - 1] + 1e-12);
    CHECK_THAT(variances.back(), WithinAbs(0, 1e-12));
  }
}

TEST_CASE("reject: what genlm-control's recursive_awrs returns") {
  // 1 - the mass rejected, if the token after the one drawn is accepted too; else the probability of the one drawn. These are the
  // weights of its code (genlm/control/sampler/token.py, November 2026) for the same orders; the sixth and seventh have max_rejects = 2.
  std::vector<Candidate> const list{{5, std::log(0.4f)}, {3, std::log(0.3f)}, {4, std::log(0.2f)}, {6, std::log(0.1f)}};
  auto const mass = [&](std::vector<Token> const& accepted, std::size_t count, bool whole) {
    return detail::reject(std::span(list).first(count), whole, 1,
                          [&](std::size_t place) {
                            return std::find(accepted.begin(), accepted.end(), list[place].token) != accepted.end();
                          })
        .mass;
  };
  CHECK_THAT(mass({5, 3}, 4, true), WithinAbs(1, 1e-6));
  CHECK_THAT(mass({5}, 4, true), WithinAbs(0.4, 1e-6));
  CHECK_THAT(mass({3, 4}, 4, true), WithinAbs(0.6, 1e-6));
  CHECK_THAT(mass({3, 6}, 4, true), WithinAbs(0.3, 1e-6));
  CHECK_THAT(mass({6}, 4, true), WithinAbs(0.1, 1e-6));
  CHECK_THAT(mass({3}, 2, false), WithinAbs(0.6, 1e-6));  // the last that may be tried
  CHECK(mass({4}, 2, false) == 0);
  CHECK(mass({}, 4, true) == 0);
  // Of a list of all, the last token has its own probability, which 1 - the others' would not be: they are rounded.
  std::vector<Candidate> const rare{{3, -0.1053606f}, {4, -2.3025856f}, {5, -30}};
  CHECK_THAT(detail::reject(rare, true, 1, [](std::size_t place) { return place == 2; }).mass,
             WithinAbs(std::exp(-30.0), 1e-20));
  CHECK(detail::reject({}, true, 1, [](std::size_t) { return true; }).mass == 0);
}
