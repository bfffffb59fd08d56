// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/forced_score.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Search<StochasticBeam>);
using BeamRequest = TableRequest<StochasticBeam>;

/// A small model: 15 outputs, of 1 to 3 tokens.
Table const small{.size = 5, .scale = 2.5, .eos_bias = 0.5, .eos_slope = 0};
constexpr std::int32_t longest = 3;

struct Truth {
  std::vector<Sequence> sequences;
  std::map<std::vector<Token>, std::size_t> number;
  std::vector<double> p;
};
Truth truth(Table const& table, std::uint64_t seed, Universe const& universe) {
  Truth t{.sequences = all_sequences(table, seed, universe), .number = {}, .p = {}};
  for (auto const& s : t.sequences) t.number[s.tokens] = t.p.size(), t.p.push_back(std::exp(s.log_prob));
  return t;
}
Universe const outcomes{.maximum = longest, .must_finish = false, .masked_before_softmax = true};

/// The samples for many seeds, as indices of sequences in the order drawn.
template <class F>
void simulate(Truth const& t, StochasticBeam const& search, std::uint64_t seeds, F&& each) {
  std::vector<BeamRequest> requests;
  for (std::uint64_t i = 0; i < seeds; ++i) requests.push_back({.source = 5, .seed = i});
  TableModel<plain> model(small);
  for (auto const& result : decode(model, requests, search)) {
    std::vector<std::size_t> drawn;
    for (auto const& h : result.hypotheses) {
      auto const found = t.number.find(h.tokens);
      REQUIRE(found != t.number.end());
      drawn.push_back(found->second);
    }
    each(drawn, result.hypotheses);
  }
}

/// Calls each(indices, probability) for every ordered sample of k without replacement.
void enumerate(std::vector<double> const& p, std::size_t k, std::vector<std::size_t>& drawn, double probability,
               double left, std::function<void(std::vector<std::size_t> const&, double)> const& each) {
  if (drawn.size() == k) return each(drawn, probability);
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (std::find(drawn.begin(), drawn.end(), i) != drawn.end()) continue;
    drawn.push_back(i);
    enumerate(p, k, drawn, probability * p[i] / left, left - p[i], each);
    drawn.pop_back();
  }
}

}  // namespace

TEST_CASE("conditioned Gumbel numbers equal their definition, and stay finite where that overflows",
          "[stochastic_beam]") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> numbers(-6, 6);
  for (int i = 0; i < 20000; ++i) {
    auto const largest = numbers(random), top = numbers(random), value = largest - std::abs(numbers(random));
    auto const definition = -std::log(std::exp(-top) - std::exp(-largest) + std::exp(-value));
    auto const got = detail::conditioned(value, largest, top);
    if (!(std::abs(got - definition) <= 1e-9 * (1 + std::abs(definition)))) CHECK(got == definition);
  }
  CHECK(detail::conditioned(-3, -3, -7) == -7);
  CHECK(detail::conditioned(-3, -3, 900) == 900);
  CHECK_THAT(detail::conditioned(-2000, -1000, -1500), WithinAbs(-2000, 1e-9));
  CHECK_THAT(detail::conditioned(-1000.5, -1000, -2000), WithinAbs(-2000, 1e-9));
  CHECK_THAT(detail::conditioned(-1000, -1, 500), WithinAbs(-1000, 1e-9));
  CHECK(std::isfinite(detail::conditioned(std::nextafter(-1.0, -2.0), -1, 0)));
  // Monotone, so a list that was ordered stays ordered.
  for (auto top : {-900.0, -1.0, 3.0}) {
    auto before = detail::conditioned(-60, 1, top);
    for (double value = -59.9; value <= 1; value += 0.1) {
      auto const after = detail::conditioned(value, 1, top);
      CHECK(after >= before);
      before = after;
    }
  }
  CHECK_THAT(detail::log1mexp(-1e-20), WithinAbs(std::log(1e-20), 1e-12));
  CHECK_THAT(detail::log1mexp(-50), WithinRel(-std::exp(-50.0), 1e-12));
  CHECK(detail::log1mexp(0) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("stochastic_beam draws in the order of sampling without replacement", "[stochastic_beam]") {
  auto const t = truth(small, 5, outcomes);
  REQUIRE(t.p.size() == 15);
  std::vector<std::int64_t> first(t.p.size()), pair(t.p.size() * t.p.size());
  simulate(t, {.width = 2, .length = {.max = longest}}, 100000, [&](auto const& drawn, auto const&) {
    REQUIRE(drawn.size() == 2);
    ++first[drawn[0]], ++pair[drawn[0] * t.p.size() + drawn[1]];
  });
  std::vector<double> pairs(pair.size());
  std::vector<std::size_t> scratch;
  enumerate(t.p, 2, scratch, 1, 1, [&](auto const& drawn, double p) { pairs[drawn[0] * t.p.size() + drawn[1]] = p; });
  check_distribution(first, t.p, 10);
  check_distribution(pair, pairs, 100);
}

TEST_CASE("stochastic_beam includes every output as often as theory says", "[stochastic_beam]") {
  auto const t = truth(small, 5, outcomes);
  for (std::int32_t const k : {1, 3, 4}) {
    std::vector<double> expected(t.p.size());
    std::vector<std::size_t> scratch;
    enumerate(t.p, static_cast<std::size_t>(k), scratch, 1, 1, [&](auto const& drawn, double p) {
      for (auto i : drawn) expected[i] += p;
    });
    constexpr std::uint64_t seeds = 40000;
    std::vector<double> counts(t.p.size());
    simulate(t, {.width = k, .length = {.max = longest}}, seeds, [&](auto const& drawn, auto const&) {
      REQUIRE(drawn.size() == static_cast<std::size_t>(k));
      for (auto i : drawn) ++counts[i];
    });
    for (std::size_t i = 0; i < t.p.size(); ++i) {
      INFO("k = " << k << ", " << text(t.sequences[i].tokens) << " of probability " << t.p[i] << ": " << counts[i]
                  << ", expected " << expected[i] * seeds);
      CHECK(std::abs(counts[i] - expected[i] * seeds) < 4 * std::sqrt(seeds * expected[i] * (1 - expected[i])) + 1);
    }
  }
}

TEST_CASE("stochastic_beam wide enough returns every output, with independent Gumbel numbers", "[stochastic_beam]") {
  auto const t = truth(small, 5, outcomes);
  std::array<std::int64_t, 20> bins{};
  double first_two = 0, largest = 0;
  constexpr std::uint64_t seeds = 4000;
  simulate(t, {.width = 30, .length = {.max = longest}}, seeds,
           [&](auto const& drawn, std::vector<Hypothesis> const& hypotheses) {
             REQUIRE(drawn.size() == t.p.size());
             std::vector<double> uniform(t.p.size());
             for (std::size_t i = 0; i < drawn.size(); ++i) {
               auto const& h = hypotheses[i];
               auto const& s = t.sequences[drawn[i]];
               if (std::abs(h.log_prob - s.log_prob) > 1e-4) CHECK(h.log_prob == s.log_prob);
               if (h.finished != s.finished) CHECK(h.finished == s.finished);
               if (i > 0 && h.score > hypotheses[i - 1].score) CHECK(h.score <= hypotheses[i - 1].score);
               uniform[drawn[i]] = std::exp(-std::exp(h.log_prob - h.score));
               ++bins[static_cast<std::size_t>(uniform[drawn[i]] * 20)];
             }
             first_two += (uniform[0] - 0.5) * (uniform[1] - 0.5) * 12;
             largest += hypotheses[0].score;
           });
  check_distribution(bins, std::vector<double>(20, 0.05), 20);
  CHECK(std::abs(first_two) / std::sqrt(seeds) < 4);
  CHECK_THAT(largest / seeds, WithinAbs(0.5772, 4 * 1.2825 / std::sqrt(seeds)));  // the largest of all is itself Gumbel
}

TEST_CASE("stochastic_beam gives estimates without bias", "[stochastic_beam]") {
  auto const t = truth(small, 5, outcomes);
  double mean_length = 0;
  for (std::size_t i = 0; i < t.p.size(); ++i)
    mean_length += t.p[i] * static_cast<double>(t.sequences[i].tokens.size());
  double sum[2]{}, square[2]{};
  constexpr std::uint64_t seeds = 20000;
  simulate(t, {.width = 5, .length = {.max = longest}}, seeds,
           [&](auto const&, std::vector<Hypothesis> const& hypotheses) {
             auto const w = importance_log_weights(hypotheses, 4);
             REQUIRE(w.size() == 4);
             double one = 0, length = 0;
             for (std::size_t i = 0; i < w.size(); ++i)
               one += std::exp(w[i]), length += std::exp(w[i]) * static_cast<double>(hypotheses[i].tokens.size());
             sum[0] += one, square[0] += one * one, sum[1] += length, square[1] += length * length;
           });
  double const truths[]{1, mean_length};
  for (std::size_t i = 0; i < 2; ++i) {
    auto const mean = sum[i] / seeds, error = std::sqrt((square[i] / seeds - mean * mean) / seeds);
    INFO(mean << " +- " << error << ", expected " << truths[i]);
    CHECK(std::abs(mean - truths[i]) < 4 * error);
    CHECK(error < 0.02);
  }
  simulate(t, {.width = 30, .length = {.max = longest}}, 3,
           [&](auto const&, std::vector<Hypothesis> const& hypotheses) {
             auto const w = importance_log_weights(hypotheses, 29);  // all outputs there are
             REQUIRE(w.size() == t.p.size());
             for (std::size_t i = 0; i < w.size(); ++i) CHECK(w[i] == hypotheses[i].log_prob);
           });
}

TEST_CASE("stochastic_beam: the narrower sample is the beginning of the wider", "[stochastic_beam]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 10);
    INFO("seed " << seed);
    auto const wide = run_one(table, seed, StochasticBeam{.width = 12, .length = {.max = 6}});
    check_result(wide, table, seed);
    for (std::int32_t width = 1; width < 12; width += 3) {
      auto const narrow = run_one(table, seed, StochasticBeam{.width = width, .length = {.max = 6}});
      auto cut = wide;
      if (cut.hypotheses.size() > static_cast<std::size_t>(width))
        cut.hypotheses.resize(static_cast<std::size_t>(width));
      CHECK(identical(narrow, cut));
    }
  }
}

TEST_CASE("stochastic_beam gives the same bits in any batch, order and set of abilities", "[stochastic_beam]") {
  std::mt19937_64 random(1);
  Table const table{.size = 20, .scale = 4, .eos_bias = 1, .eos_slope = 0.2};
  std::vector<BeamRequest> requests;
  std::vector<Result> alone;
  for (std::uint64_t i = 0; i < 30; ++i) {
    BeamRequest request{.source = 100 + i % 7, .seed = 7 * i};
    if (i % 3 == 1) request.prompt = {bos, static_cast<Token>(3 + i % 5), 4};
    if (i % 4 == 1) request.prefix = {5, static_cast<Token>(3 + i % 7)};
    request.search = StochasticBeam{
        .width = static_cast<std::int32_t>(1 + i % 6),
        .length = {.min = static_cast<std::int32_t>(i % 3), .max = static_cast<std::int32_t>(3 + i % 9)}};
    requests.push_back(request);
    alone.push_back(run<plain>(table, std::vector{request}, StochasticBeam{}).at(0));
    REQUIRE(alone.back().ok());
    if (i % 3 != 0) continue;  // no eos is forbidden
    check_result(alone.back(), table, request.source,
                 i % 3 == 1 ? std::vector<Token>(request.prompt.begin() + 1, request.prompt.end())
                            : std::vector<Token>{});
    for (auto const& h : alone.back().hypotheses) {
      std::vector<TableRequest<ForcedScore>> const again{
          {.source = request.source, .prompt = request.prompt, .prefix = h.tokens}};
      CHECK_THAT(h.log_prob, WithinAbs(run(table, again, ForcedScore{}).at(0).hypotheses.at(0).log_prob, 1e-4));
    }
  }
  for_pairs_of_abilities([&]<Abilities A>() {
    for (std::size_t const batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      INFO("ragged " << A.ragged << ", blocks " << A.blocks << ", roll_back " << A.roll_back << ", batch " << batch);
      auto const results = run<A>(table, requests, StochasticBeam{}, Batched{batch});
      for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], alone[i]));
    }
    std::vector<std::size_t> order(requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<BeamRequest> shuffled;
    for (auto i : order) shuffled.push_back(requests[i]);
    auto const results = run<A>(table, shuffled, StochasticBeam{}, Batched{9});
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(identical(results[i], alone[order[i]]));
  });
}

TEST_CASE("stochastic_beam never draws what is forbidden, and draws the rest as if it were not there",
          "[stochastic_beam]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Table const table{.size = 9, .scale = 3, .eos_bias = 0, .eos_slope = 0.2};
    auto const min = static_cast<std::int32_t>(seed % 4);
    StochasticBeam const search{
        .width = 6, .temperature = seed % 2 == 0 ? 1.0f : 0.7f, .length = {.min = min, .max = 8}};
    INFO("seed " << seed);
    auto const usual = run_one(table, seed, search);
    REQUIRE(usual.hypotheses.size() == 6);
    for (auto const kind : {Kind::logits, Kind::log_probs}) {
      auto const forbidden = run_one(table, seed, search, {.kind = kind, .impossible = false});
      for (std::size_t i = 0; i < 6; ++i) {
        auto const &h = forbidden.hypotheses.at(i), &expected = usual.hypotheses.at(i);
        CHECK(h.tokens == expected.tokens);
        CHECK_THAT(h.log_prob, WithinAbs(expected.log_prob, 1e-4));
        CHECK_THAT(h.score, WithinAbs(expected.score, 1e-3));
        CHECK(h.tokens.size() > static_cast<std::size_t>(min));
      }
    }
  }
  Table const only_eos{.size = 3};
  CHECK(run_one(only_eos, 1, StochasticBeam{.length = {.min = 2, .max = 4}}).failure == Failure::no_token_left);
  auto const one = run_one(only_eos, 1, StochasticBeam{});
  REQUIRE(one.hypotheses.size() == 1);
  CHECK(one.hypotheses[0].tokens == std::vector<Token>{eos});
}

TEST_CASE("stochastic_beam tempers the prefix too, and goes on behind an impossible one", "[stochastic_beam]") {
  Table const table{.size = 9, .scale = 4};
  std::vector<BeamRequest> const requests{{.source = 3, .prefix = {4, 5}}, {.source = 3, .prefix = {pad, 5}}};
  for (auto const temperature : {1.0, 2.0}) {
    auto const results =
        run(table, requests,
            StochasticBeam{.width = 4, .temperature = static_cast<float>(temperature), .length = {.max = 5}});
    REQUIRE(results[0].hypotheses.size() == 4);
    for (auto const& h : results[0].hypotheses) {
      std::vector<double> line(9);
      double sum = 0;
      for (std::size_t i = 0; i < h.tokens.size(); ++i) {
        table.logits(3, std::span(h.tokens).first(i), line);
        double all = 0;
        for (auto x : line) all += std::exp(x / temperature);
        sum += line[static_cast<std::size_t>(h.tokens[i])] / temperature - std::log(all);
      }
      CHECK_THAT(h.log_prob, WithinAbs(sum, 1e-4));
      CHECK((h.tokens[0] == 4 && h.tokens[1] == 5));
    }
    REQUIRE((results[1].ok() && results[1].hypotheses.size() == 4));
    for (auto const& h : results[1].hypotheses) {
      CHECK((h.tokens[0] == pad && h.tokens[1] == 5 && h.tokens.size() > 2));
      CHECK((std::isinf(h.log_prob) && h.log_prob < 0 && h.score == h.log_prob));
    }
  }
}

TEST_CASE("stochastic_beam with lengths at the edge", "[stochastic_beam]") {
  Table const table{.size = 8};
  auto const none = run_one(table, 1, StochasticBeam{.length = {.max = 0}});
  REQUIRE(none.hypotheses.size() == 1);
  CHECK(none.hypotheses[0].tokens.empty());
  auto const one = run_one(table, 1, StochasticBeam{.width = 10, .length = {.max = 1}});
  check_result(one, table, 1);
  CHECK(one.hypotheses.size() == 6);
  Table const endless{.size = 8, .has_eos = false};
  auto const fixed = run_one(endless, 1, StochasticBeam{.width = 3, .length = {.max = 4}});
  check_result(fixed, endless, 1);
  for (auto const& h : fixed.hypotheses) {
    CHECK(h.tokens.size() == 4);
    CHECK(h.finished);
  }
}

TEST_CASE("stochastic_beam shows what there is when it is cancelled", "[stochastic_beam]") {
  TableModel<plain> model(Table{.size = 8, .has_eos = false});
  Decoder decoder(model, StochasticBeam{.width = 4, .length = {.max = 9}});
  for (int steps = 0; steps < 9; ++steps) {
    auto const id = decoder.submit({.source = 1});
    for (int i = 0; i < steps; ++i) decoder.step();
    REQUIRE(decoder.cancel(id));
    Result result;
    REQUIRE(decoder.poll(result));
    CHECK(result.failure == Failure::cancelled);
    CHECK(result.hypotheses.size() == (steps == 0 ? 0u : 4u));
    for (auto const& h : result.hypotheses) {
      CHECK(h.tokens.size() == static_cast<std::size_t>(steps));
      CHECK_FALSE(h.finished);
    }
  }
}

TEST_CASE("stochastic_beam refuses options that make no sense", "[stochastic_beam]") {
  TableModel<> model;
  std::vector<std::uint64_t> const sources{1};
  CHECK_THROWS_AS(decode(model, sources, StochasticBeam{.width = 0}), std::invalid_argument);
  CHECK_THROWS_AS(decode(model, sources, StochasticBeam{.temperature = 0}), std::invalid_argument);
  CHECK_THROWS_AS(decode(model, sources, StochasticBeam{.length = {.min = -1}}), std::invalid_argument);
}
