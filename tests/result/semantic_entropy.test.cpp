// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/result/minimum_bayes_risk.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Hypothesis said(std::vector<Token> tokens, double probability) {
  return {.tokens = std::move(tokens), .log_prob = std::log(probability)};
}

}  // namespace

TEST_CASE("outputs join the first group whose first member means the same", "[semantic_entropy]") {
  std::vector<int> const outputs{10, 21, 13, 20, 32, 11};
  std::size_t asked = 0;
  auto const groups = semantic_groups(outputs, [&](int a, int b) { return ++asked, a / 10 == b / 10; });
  CHECK(groups == std::vector<std::int32_t>{0, 1, 0, 1, 2, 0});
  CHECK(asked == 0 + 1 + 1 + 2 + 2 + 1);
  CHECK(semantic_groups(std::vector<int>{}, [](int, int) { return true; }).empty());
}

TEST_CASE("semantic entropy, written out", "[semantic_entropy]") {
  // Paris 0.3, "It is Paris" 0.1, Rome 0.1; Paris was drawn twice.
  std::vector<Hypothesis> const samples{said({3}, 0.3), said({4, 5, 3}, 0.1), said({6}, 0.1), said({3}, 0.3)};
  auto const found = semantic_entropy(samples, std::vector<std::int32_t>{0, 0, 1, 0});
  CHECK_THAT(found.weighted, WithinAbs(-0.8 * std::log(0.8) - 0.2 * std::log(0.2), 1e-12));
  CHECK_THAT(found.discrete, WithinAbs(-0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-12));
  auto const mean = semantic_entropy(samples, std::vector<std::int32_t>{0, 0, 1, 0}, true);
  auto const paris = 0.3 + std::cbrt(0.1), rome = 0.1, all = paris + rome;
  CHECK_THAT(mean.weighted, WithinAbs(-paris / all * std::log(paris / all) - rome / all * std::log(rome / all), 1e-12));
  auto const one = semantic_entropy(samples, std::vector<std::int32_t>{0, 0, 0, 0});
  CHECK((std::abs(one.weighted) < 1e-15 && std::abs(one.discrete) < 1e-15));
  CHECK(semantic_entropy({}, {}).weighted == 0);
  // Outputs so long that no probability is a double.
  std::vector<Hypothesis> long_ones(2);
  long_ones[0] = {.tokens = {3}, .log_prob = -2000}, long_ones[1] = {.tokens = {4}, .log_prob = -2000 + std::log(3)};
  CHECK_THAT(semantic_entropy(long_ones, std::vector<std::int32_t>{0, 1}).weighted,
             WithinAbs(-0.25 * std::log(0.25) - 0.75 * std::log(0.75), 1e-9));
}

TEST_CASE("both estimators come to the entropy of the meanings of all outputs", "[semantic_entropy]") {
  // Outputs mean the same that have the same first token.
  Table const table{.size = 7, .scale = 3, .eos_bias = 1};
  std::map<Token, double> meanings;
  double total = 0;
  for (auto const& one : all_sequences(table, 5, {.maximum = 4, .must_finish = false}))
    meanings[one.tokens.front()] += std::exp(one.log_prob), total += std::exp(one.log_prob);
  CHECK_THAT(total, WithinAbs(1, 1e-9));
  double expected = 0;
  for (auto const& [token, probability] : meanings) expected -= probability * std::log(probability);
  auto const result = run_one<everything>(table, 5, Sample{.samples = 6000, .length = {.max = 4}});
  auto const groups = semantic_groups(
      result.hypotheses, [](Hypothesis const& a, Hypothesis const& b) { return a.tokens.front() == b.tokens.front(); });
  auto const found = semantic_entropy(result.hypotheses, groups);
  CHECK_THAT(found.weighted, WithinAbs(expected, 0.03));
  CHECK_THAT(found.discrete, WithinAbs(expected, 0.03));
}

TEST_CASE("semantic entropy refuses what it cannot use", "[semantic_entropy]") {
  std::vector<Hypothesis> samples{said({3}, 0.5)};
  CHECK_THROWS_MATCHES(semantic_entropy(samples, {}), std::invalid_argument,
                       Message("sluice: groups = 0: is not the number of samples"));
  CHECK_THROWS_AS(semantic_entropy(samples, std::vector<std::int32_t>{-1}), std::invalid_argument);
  samples[0].log_prob = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(semantic_entropy(samples, std::vector<std::int32_t>{0}), std::invalid_argument);
}
