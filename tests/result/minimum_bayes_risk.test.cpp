// SPDX-License-Identifier: Apache-2.0
#include <sluice/result/minimum_bayes_risk.hpp>
#include <sluice/search/sample.hpp>

#include <bleu/bleu.hpp>
#include <bleu/chrf.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Weights = BayesRiskOptions::Weights;

Hypothesis hypothesis(std::vector<Token> tokens, double log_prob) {
  Hypothesis h;
  h.tokens = std::move(tokens), h.log_prob = h.score = log_prob;
  return h;
}

/// 1 if equal, else the part of positions that are.
double overlap(std::vector<Token> const& a, std::vector<Token> const& b) {
  double same = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) same += a[i] == b[i];
  return same / static_cast<double>(std::max(a.size(), b.size()));
}

}  // namespace

TEST_CASE("minimum_bayes_risk chooses what agrees most with the others, by hand", "[minimum_bayes_risk]") {
  // the most probable one stands alone; the other three share much
  std::vector<Hypothesis> const list{hypothesis({9, 9}, std::log(0.4)), hypothesis({3, 4}, std::log(0.1)),
                                     hypothesis({3, 5}, std::log(0.2)), hypothesis({6, 4}, std::log(0.3))};
  auto const uniform = minimum_bayes_risk(list, overlap);
  REQUIRE(uniform.expected_utility.size() == 4);
  CHECK_THAT(uniform.expected_utility[0], WithinAbs(0.25, 1e-12));
  CHECK_THAT(uniform.expected_utility[1], WithinAbs((1 + 0.5 + 0.5) / 4, 1e-12));
  CHECK_THAT(uniform.expected_utility[2], WithinAbs((1 + 0.5) / 4, 1e-12));
  CHECK_THAT(uniform.expected_utility[3], WithinAbs((1 + 0.5) / 4, 1e-12));
  CHECK(uniform.best == 1);

  auto const probable = minimum_bayes_risk(list, overlap, {.weights = Weights::probability});
  CHECK_THAT(probable.expected_utility[0], WithinAbs(0.4, 1e-12));
  CHECK_THAT(probable.expected_utility[1], WithinAbs(0.1 + 0.5 * 0.2 + 0.5 * 0.3, 1e-12));
  CHECK_THAT(probable.expected_utility[2], WithinAbs(0.2 + 0.5 * 0.1, 1e-12));
  CHECK_THAT(probable.expected_utility[3], WithinAbs(0.3 + 0.5 * 0.1, 1e-12));
  CHECK(probable.best == 0);

  auto const flat = minimum_bayes_risk(list, overlap, {.weights = Weights::probability, .scale = 0.5});
  auto const sum = std::sqrt(0.4) + std::sqrt(0.1) + std::sqrt(0.2) + std::sqrt(0.3);
  CHECK_THAT(flat.expected_utility[1],
             WithinAbs((std::sqrt(0.1) + 0.5 * std::sqrt(0.2) + 0.5 * std::sqrt(0.3)) / sum, 1e-12));
}

TEST_CASE("minimum_bayes_risk calls the utility with candidate and reference, n^2 times, ties to the first",
          "[minimum_bayes_risk]") {
  std::vector<Hypothesis> const list{hypothesis({3}, -1), hypothesis({3, 4}, -2), hypothesis({3, 4, 5}, -3)};
  std::vector<std::pair<std::size_t, std::size_t>> calls;
  auto const longer =
      minimum_bayes_risk(list, [&](std::vector<Token> const& candidate, std::vector<Token> const& reference) {
        calls.emplace_back(candidate.size(), reference.size());
        return candidate.size() > reference.size() ? 1 : 0;
      });
  CHECK(longer.best == 2);
  CHECK(calls.size() == 9);
  CHECK(calls[1] == std::pair{std::size_t{1}, std::size_t{2}});
  CHECK(minimum_bayes_risk(list, [](auto const&, auto const&) { return 7.0; }).best == 0);
  auto const one = minimum_bayes_risk(std::span(list).first(1), TokenNgramF{});
  CHECK(one.best == 0);
  CHECK(one.expected_utility == std::vector<double>{1});
}

TEST_CASE("minimum_bayes_risk weighs improbable hypotheses without underflow", "[minimum_bayes_risk]") {
  auto const impossible = -std::numeric_limits<double>::infinity();
  std::vector<Hypothesis> list{hypothesis({3}, -2000), hypothesis({4}, -2000 + std::log(3)),
                               hypothesis({5}, impossible)};
  auto const w = detail::reference_weights(list, {.weights = Weights::probability});
  CHECK_THAT(w[0], WithinAbs(0.25, 1e-12));
  CHECK_THAT(w[1], WithinAbs(0.75, 1e-12));
  CHECK(w[2] == 0);
  list[0].log_prob = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(detail::reference_weights(list, {.weights = Weights::probability}), std::invalid_argument);
  CHECK(detail::reference_weights(list, {}).size() == 3);  // looks at none
  list = {hypothesis({3}, impossible)};
  CHECK_THROWS_AS(detail::reference_weights(list, {.weights = Weights::probability}), std::invalid_argument);
}

TEST_CASE("minimum_bayes_risk refuses what makes no sense", "[minimum_bayes_risk]") {
  std::vector<Hypothesis> const list{hypothesis({3}, -1)};
  CHECK_THROWS_AS(minimum_bayes_risk({}, TokenNgramF{}), std::invalid_argument);
  CHECK_THROWS_AS(minimum_bayes_risk(list, TokenNgramF{}, {.scale = 0}), std::invalid_argument);
}

TEST_CASE("minimum_bayes_risk compares texts, with BLEU or chrF", "[minimum_bayes_risk]") {
  std::vector<std::string> const words{"", "", "", "the", "cat", "dog", "sat", "on", "mat", "."};
  auto const text = [&](Hypothesis const& h) {
    std::string line;
    for (auto token : h.tokens) line.append(line.empty() ? "" : " ").append(words[static_cast<std::size_t>(token)]);
    return line;
  };
  std::vector<Hypothesis> const list{hypothesis({3, 5, 6, 7, 3, 4, 9}, -1), hypothesis({3, 4, 6, 7, 3, 8, 9}, -2),
                                     hypothesis({3, 4, 6, 7, 3, 8}, -2)};
  auto const bleu =
      minimum_bayes_risk(list, bleu::sentence_bleu, {}, [&](Hypothesis const& h) { return bleu::Ngrams(text(h)); });
  for (std::size_t i = 0; i < list.size(); ++i) {
    double expected = 0;
    for (auto const& h : list)
      expected += bleu::score(bleu::count(text(list[i]), text(h)), bleu::Orders::effective).bleu / 3;
    CHECK_THAT(bleu.expected_utility[i], WithinAbs(expected, 1e-9));
    CHECK(bleu.expected_utility[bleu.best] >= bleu.expected_utility[i]);
  }
  auto const by_line = minimum_bayes_risk(
      list, [](std::string const& a, std::string const& b) { return chrf::sentence_chrf(a, b); }, {}, text);
  auto const chrf = minimum_bayes_risk(
      list, [](chrf::Ngrams const& a, chrf::Ngrams const& b) { return chrf::sentence_chrf(a, b); }, {},
      [&](Hypothesis const& h) { return chrf::Ngrams(text(h)); });
  CHECK(chrf.best == 1);
  CHECK(chrf.expected_utility == by_line.expected_utility);
  double expected = 0;
  for (auto const& h : list) expected += chrf::sentence_chrf(text(list[2]), text(h)) / 3;
  CHECK_THAT(chrf.expected_utility[2], WithinAbs(expected, 1e-9));
}

TEST_CASE("token n-gram F-scores, by hand", "[minimum_bayes_risk]") {
  auto const f = [](std::vector<Token> const& a, std::vector<Token> const& b, TokenNgramF const& utility = {}) {
    return utility(a, b);
  };
  CHECK(f({3, 4, 5}, {3, 4, 5}) == 1);
  CHECK(f({}, {}) == 1);
  CHECK(f({}, {3}) == 0);
  CHECK(f({3}, {4}) == 0);
  CHECK_THAT(f({3, 4, 5}, {3, 4, 6}), WithinAbs((2.0 / 3 + 1.0 / 2 + 0) / 3, 1e-12));
  double const precision = (2.0 / 4 + 1.0 / 3) / 2, recall = 1;  // repetitions count once for each of the reference
  CHECK_THAT(f({3, 3, 3, 3}, {3, 3}), WithinAbs(2 * precision * recall / (precision + recall), 1e-12));
  CHECK_THAT(f({3, 3, 3, 3}, {3, 3}, {.beta = 2}), WithinAbs(5 * precision * recall / (4 * precision + recall), 1e-12));
  CHECK_THAT(f({3, 4, 5}, {5, 4, 3}, {.order = 1}), WithinAbs(1, 1e-12));
  CHECK_THAT(f({3, 4, 5, 6, 7}, {3, 4, 5, 6, 8}), WithinAbs((4.0 / 5 + 3.0 / 4 + 2.0 / 3 + 1.0 / 2) / 4, 1e-12));
}

TEST_CASE("minimum_bayes_risk over samples chooses the mode of a peaked model", "[minimum_bayes_risk]") {
  Table const table{.size = 8, .scale = 15, .eos_bias = 3};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const samples = run_one(table, seed, Sample{.samples = 40, .length = {.max = 6}}).hypotheses;
    std::vector<std::size_t> count(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (auto const& h : samples) count[i] += h.tokens == samples[i].tokens;
    auto const exact = minimum_bayes_risk(samples, [](auto const& a, auto const& b) { return a == b ? 1 : 0; });
    CHECK(count[exact.best] == *std::max_element(count.begin(), count.end()));
  }
}
