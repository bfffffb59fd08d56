// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/particle_sample.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/posterior.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Nothing is asked of the output.
struct Anything {
  using State = char;
  static State initial(Sentence const&) { return 0; }
  static State next(State, Token) { return 0; }
  static double log_prefix(State) { return 0; }
  static double log_final(State, bool) { return 0; }
};
static_assert(Potential<Anything> && Potential<HashedPotential> && Potential<Indicator<HashedAutomaton>>);
static_assert(Search<ParticleSample<Anything>> && SettlingSearch<ParticleSample<Anything>>);

/// A rule that forbids a token.
struct Without5 {
  using State = char;
  static State initial(Sentence const&) { return 0; }
  static State next(State, Token) { return 0; }
  static void edit(State, Output const&, std::vector<Edit>& edits) { edits.push_back(Edit::forbid(5)); }
};

constexpr Proposal proposals[]{Proposal::model, Proposal::rejection, Proposal::product};

Table small_table() { return {.size = 7, .scale = 4, .eos_bias = 0, .eos_slope = 0.6}; }

template <Potential P>
std::vector<Result> runs(Table const& table, std::uint64_t source, ParticleSample<P> const& search, std::size_t count,
                         std::vector<Token> const& prefix = {}) {
  std::vector<TableRequest<ParticleSample<P>>> requests(count);
  for (std::size_t i = 0; i < count; ++i)
    requests[i].source = source, requests[i].seed = 1000 + i, requests[i].prefix = prefix;
  return run(table, std::move(requests), search, Batched{});
}

/// Checks that the mean of exp(log_z) * weight is each output's probability times potential: an output's estimate may be 5 standard
/// deviations off (once in a million); and that no other output comes.
template <Potential P>
void check_unbiased(std::vector<Result> const& results, Outputs const& exact) {
  std::map<std::vector<Token>, std::pair<double, double>> sums;
  auto const count = static_cast<double>(results.size());
  double total = 0, squares = 0;
  for (auto const& result : results) {
    auto const z = std::exp(result.log_z);
    total += z, squares += z * z;
    CHECK(result.ok() == (z > 0));
    double weights = 0;
    for (auto const& h : result.hypotheses) {
      auto& [mean, square] = sums[h.tokens];
      mean += z * h.weight, square += z * z * h.weight * h.weight;
      weights += h.weight;
    }
    if (result.ok()) CHECK_THAT(weights, WithinAbs(1, 1e-9));
  }
  auto const check = [&](double expected, double all, double all_squares) {
    auto const mean = all / count;
    auto const deviation = std::sqrt(std::max(0.0, all_squares / count - mean * mean) / count);
    if (std::abs(mean - expected) > 5 * deviation + 1e-5 * expected + 2 / count * expected) {
      INFO("standard deviation of the mean " << deviation);
      CHECK(mean == expected);
    }
  };
  check(sum(exact), total, squares);
  for (auto const& [tokens, both] : sums) {
    INFO(text(tokens));
    REQUIRE(exact.contains(tokens));
    if (exact.at(tokens) * count > 30 * sum(exact)) check(exact.at(tokens), both.first, both.second);
  }
}

}  // namespace

TEST_CASE("particle sample: without a potential, the samples of Sample, with equal weights") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    auto const table = random_table(random, 9);
    Sample const sample{.temperature = 1.3f, .samples = 6, .length{.min = 1, .max = 7}};
    ParticleSample<Anything> const particles{.particles = 6,
                                             .proposal = proposals[round % 3],
                                             .temperature = 1.3f,
                                             .distinct = false,
                                             .length = sample.length};
    auto const expected = run_one(table, 5, sample), found = run_one(table, 5, particles);
    REQUIRE(found.ok());
    CHECK_THAT(found.log_z, WithinAbs(0, 1e-5));
    CHECK_THAT(found.log_z_error, WithinAbs(0, 1e-3));
    REQUIRE(found.hypotheses.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
      auto const &a = expected.hypotheses[i], &b = found.hypotheses[i];
      CHECK(a.tokens == b.tokens);
      CHECK(a.finished == b.finished);
      CHECK_THAT(b.log_prob, WithinAbs(a.log_prob, 1e-5));
      CHECK_THAT(b.weight, WithinAbs(1.0 / 6, 1e-5));
      CHECK(b.score == std::log(b.weight));
    }
  }
}

TEST_CASE("particle sample: estimates of Z and of every output's part are unbiased") {
  auto const table = small_table();
  Universe const universe{.minimum = 1, .maximum = 5, .must_finish = false};
  constexpr std::size_t count = 1200;
  LengthLimits const length{.min = 1, .max = 5};
  {
    constexpr std::uint64_t source = 1;
    HashedAutomaton const automaton{.salt = 12};
    HashedPotential const hashed{.salt = 4};
    auto const accepted = joint(table, source, universe, Indicator<HashedAutomaton>{automaton});
    auto const weighted = joint(table, source, universe, hashed);
    REQUIRE(accepted.size() > 10);
    REQUIRE(weighted.size() > 20);
    REQUIRE(sum(accepted) < 0.8);
    for (auto const proposal : proposals)
      for (auto const resample_below : {0.0f, 0.6f, 1.0f}) {
        INFO("source " << source << ", " << name(proposal) << ", resample_below " << resample_below);
        check_unbiased<Indicator<HashedAutomaton>>(
            runs(table, source,
                 ParticleSample<Indicator<HashedAutomaton>>{.particles = 3,
                                                            .proposal = proposal,
                                                            .resample_below = resample_below,
                                                            .length = length,
                                                            .potential{automaton}},
                 count),
            accepted);
        check_unbiased<HashedPotential>(runs(table, source,
                                             ParticleSample<HashedPotential>{.particles = 3,
                                                                             .proposal = proposal,
                                                                             .resample_below = resample_below,
                                                                             .length = length,
                                                                             .potential = hashed},
                                             count),
                                        weighted);
      }
    for (auto const tries : {1, 2, 4})
      for (auto const looks : {1, 3}) {
        INFO("source " << source << ", tries " << tries << ", looks " << looks);
        check_unbiased<HashedPotential>(
            runs(table, source,
                 ParticleSample<HashedPotential>{
                     .particles = 3, .tries = tries, .looks = looks, .length = length, .potential = hashed},
                 count),
            weighted);
      }
  }
}

TEST_CASE("particle sample: after a forced prefix, Z is of what follows it") {
  auto const table = small_table();
  std::vector<Token> const prefix{3, 4};
  HashedPotential const hashed{.salt = 12};
  auto const exact = joint(table, 4, {.maximum = 6, .must_finish = false, .prefix = prefix}, hashed);
  REQUIRE(exact.size() > 20);
  for (auto const proposal : proposals) {
    ParticleSample<HashedPotential> const search{
        .particles = 4, .proposal = proposal, .length{.max = 6}, .potential = hashed};
    INFO(name(proposal));
    auto const results = runs(table, 4, search, 800, prefix);
    for (auto const& h : results.at(0).hypotheses)
      CHECK_THAT(h.log_prob, WithinAbs(log_prob(table, 4, {}, h.tokens), 1e-4));
    auto outputs = results;
    for (auto& result : outputs)
      for (auto& h : result.hypotheses) h.tokens.erase(h.tokens.begin(), h.tokens.begin() + 2);
    Outputs rest;
    for (auto const& [tokens, value] : exact) rest[{tokens.begin() + 2, tokens.end()}] = value;
    check_unbiased<HashedPotential>(outputs, rest);
  }
}

TEST_CASE("particle sample: total variation falls as particles rise; that of masking does not") {
  auto const table = small_table();
  Universe const universe{.maximum = 6, .must_finish = false};
  constexpr std::int32_t sizes[]{4, 16, 64, 256};
  for (std::uint64_t source = 0; source < 3; ++source) {
    Indicator<HashedAutomaton> const potential{{.salt = 20 + source}};
    auto const exact = normalised(joint(table, source, universe, potential));
    REQUIRE(exact.size() > 10);
    // The mean distance of what one run returns.
    auto const distance = [&](ParticleSample<Indicator<HashedAutomaton>> search, bool weighted) {
      search.length.max = 6, search.potential = potential, search.distinct = weighted;
      constexpr std::size_t count = 40;
      double mean = 0;
      for (auto const& result : runs(table, source, search, count)) {
        Outputs found;
        for (auto const& h : result.hypotheses) found[h.tokens] += weighted ? h.weight : 1;
        mean += (found.empty() ? 1 : total_variation(normalised(found), exact)) / count;
      }
      return mean;
    };
    std::vector<double> masked, rejection, product;
    for (auto const n : sizes) {
      masked.push_back(distance({.particles = n, .proposal = Proposal::product, .resample_below = 0}, false));
      rejection.push_back(distance({.particles = n, .proposal = Proposal::rejection}, true));
      product.push_back(distance({.particles = n, .proposal = Proposal::product}, true));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      INFO("source " << source << ", " << sizes[i] << " particles: masked " << masked[i] << ", rejection "
                     << rejection[i] << ", product " << product[i]);
      if (i > 0) {
        CHECK(rejection[i] < 0.75 * rejection[i - 1]);
        CHECK(product[i] < 0.75 * product[i - 1]);
      }
    }
    CHECK(masked[3] > 0.75 * masked[2]);
    CHECK(masked[3] > 1.6 * rejection[3]);
    CHECK(masked[3] > 1.6 * product[3]);
  }
}

TEST_CASE("particle sample: the error of log Z is what runs differ by") {
  auto const table = small_table();
  for (std::uint64_t source = 0; source < 2; ++source)
    for (auto const resample_below : {0.0f, 0.5f, 1.0f}) {
      ParticleSample<HashedPotential> const search{
          .particles = 64, .resample_below = resample_below, .length{.max = 6}, .potential{.salt = 5 + source}};
      double mean = 0, squares = 0, told = 0;
      constexpr std::size_t count = 300;
      for (auto const& result : runs(table, source, search, count)) {
        mean += result.log_z / count, squares += result.log_z * result.log_z / count;
        told += result.log_z_error * result.log_z_error / count;
      }
      auto const seen = squares - mean * mean;
      INFO("source " << source << ", resample_below " << resample_below << ": seen " << seen << ", told " << told);
      CHECK(told > 0.7 * seen);
      CHECK(told < 1.5 * seen);
    }
}

TEST_CASE("particle sample: results do not depend on batch, schedule or abilities") {
  auto const table = small_table();
  std::mt19937_64 random(8);
  using Of = ParticleSample<HashedPotential>;
  std::vector<TableRequest<Of>> requests;
  for (std::uint64_t i = 0; i < 24; ++i) {
    Of search{.particles = 1 + static_cast<std::int32_t>(random() % 9),
              .proposal = proposals[random() % 3],
              .resample_below = static_cast<float>(random() % 3) / 2,
              .tries = 1 + static_cast<std::int32_t>(random() % 6),
              .looks = 1 + static_cast<std::int32_t>(random() % 2),
              .distinct = random() % 2 == 0,
              .length{.min = static_cast<std::int32_t>(random() % 2), .max = static_cast<std::int32_t>(random() % 9)}};
    search.length.min = std::min(search.length.min, search.length.max);
    search.potential.salt = i;
    auto& request = requests.emplace_back();
    request.source = i, request.seed = 50 + i, request.search = search;
    if (i % 3 == 0 && search.length.max > 2) request.prefix = {4};
  }
  auto const alone = [&](std::size_t i) { return run(table, {requests[i]}, Of{.particles = 9}).at(0); };
  auto const together = run(table, requests, Of{.particles = 9});
  auto const few = run<everything>(table, requests, Of{.particles = 9}, Batched{.size = 5});
  auto const streaming = run<everything>(table, requests, Of{.particles = 9}, Streaming{.size = 4});
  std::size_t outputs = 0, failed = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO("sentence " << i);
    for (auto const& other : {alone(i), few[i], streaming[i]}) {
      CHECK(identical(together[i], other));
      CHECK(same_bits(together[i].log_z, other.log_z));
      CHECK(same_bits(together[i].log_z_error, other.log_z_error));
      REQUIRE(together[i].hypotheses.size() == other.hypotheses.size());
      for (std::size_t k = 0; k < other.hypotheses.size(); ++k)
        CHECK(together[i].hypotheses[k].weight == other.hypotheses[k].weight);
    }
    outputs += together[i].hypotheses.size(), failed += together[i].ok() ? 0U : 1U;
  }
  CHECK(outputs > 40);
  CHECK(failed < 12);
}

TEST_CASE("particle sample: a function of the output as a potential") {
  auto const table = small_table();
  // As often as there are 3s, the output is twice as good; outputs of an odd length are impossible.
  auto function = [](std::span<Token const> tokens, bool over) {
    if (over && tokens.size() % 2 == 1) return -std::numeric_limits<double>::infinity();
    return 0.7 * static_cast<double>(std::count(tokens.begin(), tokens.end(), 3));
  };
  OutputPotential const potential(function);
  auto const exact = joint(table, 6, {.maximum = 5, .must_finish = false}, potential);
  REQUIRE(exact.size() > 30);
  for (auto const proposal : proposals) {
    INFO(name(proposal));
    ParticleSample<OutputPotential<decltype(function)>> const search{
        .particles = 5, .proposal = proposal, .length{.max = 5}, .potential = potential};
    check_unbiased<OutputPotential<decltype(function)>>(runs(table, 6, search, 800), exact);
  }
}

TEST_CASE("particle sample: under a rule, the model is the one that the rule leaves") {
  auto const table = small_table();
  HashedPotential const hashed{.salt = 4};
  using Of = ParticleSample<HashedPotential>;
  // Without token 5: the others' probabilities, normalised.
  struct Without {
    HashedPotential inner;
    using State = HashedPotential::State;
    State initial(Sentence const& sentence) const { return inner.initial(sentence); }
    State next(State state, Token token) const { return token == 5 ? 0 : inner.next(state, token); }
    double log_prefix(State state) const { return inner.log_prefix(state); }
    double log_final(State state, bool finished) const { return inner.log_final(state, finished); }
  };
  Outputs exact;
  for (auto const& [tokens, value] : joint(table, 2, {.maximum = 5, .must_finish = false}, Without{hashed})) {
    std::vector<double> line(static_cast<std::size_t>(table.size));
    std::vector<Token> context;
    auto lost = 0.0;
    for (auto const token : tokens) {
      table.log_probs(2, context, line);
      lost += std::log1p(-std::exp(line[5])), context.push_back(token);
    }
    exact[tokens] = value / std::exp(lost);
  }
  for (auto const proposal : proposals) {
    INFO(name(proposal));
    Processed<Of> const search(Of{.particles = 4, .proposal = proposal, .length{.max = 5}, .potential = hashed},
                               Without5{});
    std::vector<TableRequest<Processed<Of>>> requests(1000);
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].source = 2, requests[i].seed = i;
    check_unbiased<HashedPotential>(run(table, requests, search), exact);
  }
}

TEST_CASE("particle sample: settled tokens begin every output that is returned, and only grow") {
  auto const table = small_table();
  std::size_t settled_early = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    TableModel<> model(table);
    using Of = ParticleSample<Indicator<HashedAutomaton>>;
    Of const search{.particles = 4, .length{.max = 7}, .potential{{.salt = seed % 4}}};
    Decoder decoder(model, search);
    decoder.submit({.source = seed, .seed = seed});
    std::vector<Token> last;
    while (decoder.step())
      decoder.settled([](std::uint64_t) { return true; },
                      [&](std::uint64_t, std::span<Token const> tokens) {
                        REQUIRE(tokens.size() >= last.size());
                        CHECK(std::equal(last.begin(), last.end(), tokens.begin()));
                        last.assign(tokens.begin(), tokens.end());
                      });
    Result result;
    REQUIRE(decoder.poll(result));
    for (auto const& h : result.hypotheses) {
      REQUIRE(h.tokens.size() >= last.size());
      CHECK(std::equal(last.begin(), last.end(), h.tokens.begin()));
    }
    settled_early += last.empty() ? 0U : 1U;
  }
  CHECK(settled_early > 4);
}

TEST_CASE("particle sample: refusals, impossible potentials, and failures that stay with their sentence") {
  auto const table = small_table();
  TableModel<> model(table);
  auto const refused = [&](auto const& search) -> std::string {
    try {
      decode(model, std::vector<std::uint64_t>{1}, search);
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "nothing";
  };
  using Of = ParticleSample<Anything>;
  CHECK(refused(Of{.particles = 0}) == "sluice: particles = 0: must be at least 1");
  CHECK(refused(Of{.resample_below = 1.5f}).starts_with("sluice: resample_below = 1.5"));
  CHECK(refused(Of{.resample_below = std::nanf("")}).starts_with("sluice: resample_below = "));
  CHECK(refused(Of{.tries = 0}) == "sluice: tries = 0: must be at least 1");
  CHECK(refused(Of{.looks = 0}) == "sluice: looks = 0: must be at least 1");
  CHECK(refused(Of{.temperature = 0}).starts_with("sluice: temperature = 0"));
  CHECK(refused(Of{.proposal = static_cast<Proposal>(3)}) ==
        "sluice: proposal = 3: must be model, rejection or product");

  auto bad = [](std::span<Token const> tokens, bool over) {
    return tokens.size() == 2 && tokens[0] == 3 ? std::nan("") : over ? 0.0 : 0.1;
  };
  auto impossible = [](std::span<Token const>, bool) { return -std::numeric_limits<double>::infinity(); };
  auto never = [](std::span<Token const>, bool over) { return over ? -std::numeric_limits<double>::infinity() : 0; };
  using Bad = OutputPotential<decltype(bad)>;
  using Impossible = OutputPotential<decltype(impossible)>;
  using Never = OutputPotential<decltype(never)>;
  for (auto const proposal : proposals) {
    INFO(name(proposal));
    ParticleSample<Bad> const search{.particles = 3, .proposal = proposal, .length{.max = 4}, .potential = Bad(bad)};
    std::vector<TableRequest<ParticleSample<Bad>>> requests(2);
    requests[0].prefix = {3}, requests[1].prefix = {4};
    auto const results = run(table, requests, search);
    CHECK(results[0].failure == Failure::search);
    CHECK(results[0].message.find("potential = ") != std::string::npos);
    CHECK(results[1].ok());
    auto const none =
        run_one(table, 1,
                ParticleSample<Impossible>{
                    .particles = 3, .proposal = proposal, .length{.max = 4}, .potential = Impossible(impossible)});
    CHECK(none.failure == Failure::bad_request);
    auto const dies = run_one(
        table, 1,
        ParticleSample<Never>{.particles = 3, .proposal = proposal, .length{.max = 4}, .potential = Never(never)});
    CHECK(dies.failure == Failure::no_token_left);
    CHECK(dies.log_z == -std::numeric_limits<double>::infinity());
    CHECK(std::isnan(dies.log_z_error));
    auto const empty = run_one(table, 1, Of{.particles = 3, .proposal = proposal, .length{.max = 0}});
    REQUIRE(empty.hypotheses.size() == 1);
    CHECK(empty.hypotheses[0].tokens.empty());
    CHECK_FALSE(empty.hypotheses[0].finished);
    CHECK(empty.hypotheses[0].weight == 1);
  }
}
