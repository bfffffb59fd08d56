// SPDX-License-Identifier: Apache-2.0
// Cuts of a list at exact thresholds and with equal candidates, against the definitions, restated.
#include <sluice/search/detail/cuts.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using List = std::vector<Candidate>;

double p(Candidate c) { return std::exp(static_cast<double>(c.log_prob)); }

/// Few distinct log-probabilities, best first, tokens in any order.
List random_list(std::mt19937_64& random) {
  List list;
  for (Token token = 0; token < static_cast<Token>(1 + random() % 9); ++token)
    list.push_back({token, -static_cast<float>(random() % 5) / 2});
  std::shuffle(list.begin(), list.end(), random);
  std::sort(list.begin(), list.end(), [](Candidate a, Candidate b) { return a.log_prob > b.log_prob; });
  return list;
}

List applied(detail::Truncation const& truncation, List const& list) {
  List scratch;
  auto const left = truncation.apply(list, scratch);
  return {left.begin(), left.end()};
}

/// What a chain leaves of a list that it requested, for a vocabulary of 9.
List left_by(Sample const& options, List const& list, std::uint64_t noise = 5) {
  auto const chain = options.chain();
  detail::SamplerScratch scratch;
  chain.apply(list, 9, chain.begin(), noise, scratch);
  CHECK((scratch.left.empty() || scratch.left.front().log_prob == 0));
  auto const candidates = chain.candidates(scratch);
  return {candidates.begin(), candidates.end()};
}

}  // namespace

TEST_CASE("lists are cut and sorted as defined, also where numbers are equal", "[sample]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    auto const list = random_list(random);
    std::vector<double> held{0};  // [n]: held by the first n
    for (auto const c : list) held.push_back(held.back() + p(c));
    for (std::size_t n = 0; n < held.size(); ++n) CHECK(detail::head(list, held[n]) == n);
    CHECK(detail::head(list, held.back() + 1) == list.size());
    for (auto const bar : {-3.0, -1.0, -0.5, 0.0, 0.5})
      CHECK(detail::above(list, bar) == static_cast<std::size_t>(std::ranges::count_if(list, [bar](Candidate c) {
              return static_cast<double>(c.log_prob) >= bar;
            })));
    auto shuffled = list;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    auto sorted = shuffled;
    detail::sort_by_score(sorted);
    REQUIRE(std::ranges::is_permutation(sorted, list));
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      CHECK(sorted[i - 1].log_prob >= sorted[i].log_prob);
      if (sorted[i - 1].log_prob == sorted[i].log_prob) CHECK(sorted[i - 1].token < sorted[i].token);
    }
    double entropy = 0;
    for (auto const c : list) entropy -= p(c) / held.back() * std::log(p(c) / held.back());
    auto typical = shuffled;
    auto const share = static_cast<double>(1 + random() % 9) / 10;
    auto const count = detail::sort_typical(typical, share);
    REQUIRE(std::ranges::is_permutation(typical, list));
    auto const distance = [&](Candidate c) { return std::abs(-std::log(p(c) / held.back()) - entropy); };
    double so_far = 0;
    for (std::size_t i = 0; i < typical.size(); ++i) {
      if (std::abs(so_far - share * held.back()) > 1e-9) CHECK((i < count) == (so_far < share * held.back()));
      so_far += p(typical[i]);
      if (i == 0) continue;
      CHECK(distance(typical[i - 1]) <= distance(typical[i]) + 1e-9);
      if (typical[i - 1].log_prob == typical[i].log_prob) CHECK(typical[i - 1].token < typical[i].token);
    }
  }
}

TEST_CASE("a truncation takes nothing where it is off, and no more of what the line has cut", "[sample]") {
  List const two{{3, 0}, {4, -50}};  // the second is lost in any sum
  CHECK(applied({.top_k = 2}, two) == two);
  CHECK(applied({.top_k = 2, .top_p = 0.5f}, two).size() == 1);
  CHECK(applied({.top_k = 2, .min_p = 0.5f}, two).size() == 1);
  CHECK(applied({.top_k = 2, .typical = 0.5f}, two).size() == 1);
  for (auto const& first :
       {detail::Truncation{.top_p = 0.5f}, detail::Truncation{.min_p = 0.5f}, detail::Truncation{.typical = 0.5f}})
    CHECK(applied(first, two) == two);  // that cut is made by the line
  CHECK(applied({.top_p = 0.999f, .min_p = 0.5f}, two).size() == 1);
  CHECK(applied({.min_p = 0.001f, .typical = 0.5f}, two).size() == 1);
  CHECK(applied({.top_k = 4, .top_p = 0.5f}, {{3, -1}, {4, -1}, {5, -1}, {6, -1}}) == List{{3, -1}, {4, -1}});
  CHECK(applied({.top_k = 2, .top_p = 0.5f, .min_p = 0.5f, .typical = 0.5f}, {}).empty());
}

TEST_CASE("of equal values the lower token is drawn, and of one token itself", "[sample]") {
  auto const low = -1e30f;  // adding noise does not change it
  for (std::uint64_t noise = 1; noise < 50; ++noise) {
    CHECK(draw(List{{5, low}, {3, low}, {4, low}}, noise).token == 3);
    CHECK(draw(List{{3, low}, {5, low}, {4, low}}, noise).token == 3);
    CHECK(draw(List{{7, -2}}, noise) == Candidate{7, -2});
  }
}

TEST_CASE("samplers at the edges of what they cut", "[sample][chain]") {
  // Both are at the threshold: the less probable one, here the later one, stays.
  CHECK(left_by({.xtc = {.probability = 1, .threshold = 0.5f}}, {{3, 0}, {4, 0}}) == List{{4, 0}});
  CHECK(left_by({.xtc = {.probability = 1, .threshold = 0.51f}}, {{3, 0}, {4, 0}}).size() == 2);
  CHECK(left_by({.xtc = {.probability = 1, .threshold = 0}}, {{3, 0}, {4, -2000}}) == List{{4, 0}});
  CHECK(left_by({.xtc = {.probability = 1, .threshold = 0.3f}}, {{3, 0}, {4, -9}}).size() == 2);
  for (auto const range : {0.5f, 1.0f}) {  // no entropy and no temperature: only the best
    Sample const heat{.temperature = 0.5f, .dynamic_temperature = {.range = range}};
    CHECK(left_by(heat, {{3, -1}, {4, -2000}, {5, -2000}}) == List{{3, 0}});
    CHECK(left_by(heat, {{3, -1}}) == List{{3, 0}});
  }
  // However low the temperature, and however little probability the best has, only the distance of the others from it
  // counts.
  Sample const cold{
      .temperature = 0.001f, .xtc = {.probability = 1, .threshold = 0.3f}, .dynamic_temperature = {.range = 0.0001f}};
  CHECK(left_by(cold, {{3, -12}, {4, -12.001f}}).size() == 2);
  // adaptive-p: 5 - 10 d^2 / (1 + d), d = |p - t| / 0.3.
  CHECK(left_by({.adaptive_p = {.target = 1}}, {{3, -4}}) == List{{3, 5}});
  auto const far = left_by({.adaptive_p = {.target = 0}}, {{3, -4}});
  REQUIRE(far.size() == 1);
  CHECK_THAT(static_cast<double>(far[0].log_prob), WithinAbs(5 - 10 * (1 / 0.09) / (1 + 1 / 0.3), 1e-4));
}

TEST_CASE("adaptive-p at 0, and what both remember", "[sample][chain]") {
  List const list{{3, -1}, {4, -1}, {5, -2}};
  double const all = 2 * std::exp(-1.0) + std::exp(-2.0);
  auto const adaptive = Sample{.adaptive_p = {.target = 0, .decay = 0.5f}}.chain();
  auto state = adaptive.begin();
  detail::SamplerScratch scratch;
  adaptive.apply(list, 9, state, 5, scratch);
  CHECK(adaptive.took(5, list, state, scratch) == list[2]);
  CHECK_THAT(static_cast<double>(state.weighted_sum), WithinAbs(std::exp(-2.0) / all, 1e-6));
  CHECK(state.weight == 2);
  auto const mirostat = Sample{.mirostat = {.tau = 0.75f, .eta = 0.5f}}.chain();
  state = mirostat.begin();
  CHECK(state.surprise == 1.5f);
  mirostat.apply(list, 9, state, 5, scratch);
  CHECK(mirostat.took(4, list, state, scratch) == list[1]);
  CHECK_THAT(static_cast<double>(state.surprise),
             WithinAbs(1.5 - 0.5 * (-std::log2(std::exp(-1.0) / all) - 0.75), 1e-5));
}

TEST_CASE("weights of as many hypotheses as were asked for are their probabilities", "[stochastic_beam]") {
  std::vector<Hypothesis> all(3);
  for (std::size_t i = 0; i < 3; ++i) all[i].log_prob = -static_cast<double>(i), all[i].score = 2;
  CHECK(importance_log_weights(all, 3) == std::vector<double>{0, -1, -2});
  CHECK(importance_log_weights(all, 2).size() == 2);
  CHECK(importance_log_weights(all, 2)[0] > 0);
}
