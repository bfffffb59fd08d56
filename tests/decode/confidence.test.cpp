// SPDX-License-Identifier: Apache-2.0
// What the model thought where a token was chosen comes back with it, whatever the search did meanwhile.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const doubted{.size = 9, .scale = 5, .eos_bias = -2, .eos_slope = 0.3};

/// What the model's distribution after `context` says, in double precision, of the choice of `taken`.
void check_choice(Choice const& choice, Confidence const& asked, std::uint64_t seed, std::span<Token const> context,
                  Token taken) {
  std::vector<double> line(static_cast<std::size_t>(doubted.size));
  doubted.log_probs(seed, context, line);
  double entropy = 0;
  for (auto const x : line)
    if (std::isfinite(x)) entropy -= std::exp(x) * x;
  if (asked.entropy) CHECK_THAT(static_cast<double>(choice.entropy), WithinAbs(entropy, 2e-5));
  else CHECK(std::isnan(choice.entropy));
  auto const possible = std::ranges::count_if(line, [](double x) { return std::isfinite(x); });
  auto const count = std::min<std::ptrdiff_t>(asked.alternatives, possible);
  REQUIRE(std::ssize(choice.alternatives) == count);
  std::vector<Token> order(line.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Token>(i);
  auto const of = [&](Token token) { return line[static_cast<std::size_t>(token)]; };
  std::ranges::sort(order, [&](Token a, Token b) { return of(a) != of(b) ? of(a) > of(b) : a < b; });
  for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
    CHECK(choice.alternatives[i].token == order[i]);
    CHECK_THAT(static_cast<double>(choice.alternatives[i].log_prob), WithinAbs(of(order[i]), 2e-5));
  }
  auto const rank = std::ranges::find(order, taken) - order.begin();
  CHECK(choice.rank == (asked.alternatives == 0 ? -1 : std::min(rank, count)));
}

/// \param unknown  so many tokens of the output, the first ones, were not chosen
void check_choices(Result const& result, Confidence const& asked, std::uint64_t seed, std::vector<Token> context,
                   std::size_t unknown = 0) {
  INFO(name(result.failure) << ": " << result.message);
  REQUIRE(result.ok());
  auto const prompt = context.size();
  for (auto const& hypothesis : result.hypotheses) {
    REQUIRE(hypothesis.choices.size() == (asked.asks() ? hypothesis.tokens.size() : 0));
    context.resize(prompt);
    for (std::size_t i = 0; i < hypothesis.choices.size(); ++i) {
      if (i >= unknown) check_choice(hypothesis.choices[i], asked, seed, context, hypothesis.tokens[i]);
      else CHECK((hypothesis.choices[i].rank == -1 && hypothesis.choices[i].alternatives.empty()));
      context.push_back(hypothesis.tokens[i]);
    }
  }
}

/// Requests that ask for this and that, beside some that ask for nothing; under every set of abilities that the search can do
/// with, in batches of 1, 3 and 4 and under both schedules. Nothing else changes.
template <class S>
void check_doubts(S const& search) {
  for (int able = 0; able < 8; ++able) {
    Abilities const abilities{.ragged = (able & 1) != 0, .blocks = (able & 2) != 0, .roll_back = (able & 4) != 0};
    if (!abilities.include(sluice::needs(search))) continue;
    INFO("abilities " << able);
    std::vector<TableRequest<S>> requests(8), silent(8);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      silent[i].source = i + 3;
      silent[i].prompt.assign(i % 3, static_cast<Token>(3 + i % 5));
      silent[i].prefix.assign(i / 3, static_cast<Token>(4 + i % 3));
      requests[i] = silent[i];
      requests[i].confidence = {.entropy = i % 2 == 0, .alternatives = static_cast<std::int32_t>(i % 4) * 3};
    }
    requests[1].confidence = {};
    auto const check = [&](auto const& schedule) {
      TableChecker model(TableModel<everything>(doubted), abilities, {.first_child_in_place = false});
      auto const results = decode(model, requests, search, schedule);
      auto const without = decode(model, silent, search, schedule);
      for (std::size_t i = 0; i < results.size(); ++i) {
        check_choices(results[i], requests[i].confidence, requests[i].source, requests[i].prompt);
        CHECK(identical(results[i], without[i]));
      }
    };
    check(Batched{.size = 1}), check(Batched{.size = 4}), check(Streaming{.size = 3, .refill_below = 1});
  }
}

struct NoEntropy : LogSoftmaxTopK {
  static constexpr bool answers_entropy = false;
};

}  // namespace

TEST_CASE("what the model thought of every choice comes back under every search", "[confidence]") {
  LengthLimits const length{.max = 10};
  SECTION("greedy") { check_doubts(Greedy{.length = length}); }
  SECTION("greedy without scores") { check_doubts(Greedy{.length = length, .scores = false}); }
  SECTION("beam") { check_doubts(BeamSearch{.width = 4, .n_best = 4, .length = length}); }
  SECTION("best first") { check_doubts(BestFirstBeam{.width = 3, .n_best = 3, .length = length, .states = 3}); }
  SECTION("diverse") {
    check_doubts(DiverseBeamSearch{.search = {.width = 2, .n_best = 2, .length = length}, .groups = 2, .n_best = 4});
  }
  SECTION("samples") { check_doubts(Sample{.temperature = 2, .top_k = 5, .samples = 3, .length = length}); }
  SECTION("stochastic beam") { check_doubts(StochasticBeam{.width = 3, .length = length}); }
  SECTION("blocks") { check_doubts(Blockwise<>{.block = 3, .length = length}); }
  SECTION("exact") { check_doubts(ExactSearch{.length = {.max = 5}}); }
  SECTION("scores of given outputs") { check_doubts(ForcedScore{}); }
  SECTION("constraints") {
    check_doubts(ConstrainedBeamSearch<>{.beam = {.width = 4, .length = length},
                                         .constraints = Constraints({.all = {{3, 4}, {5}}})});
  }
  SECTION("rules do not show") {
    check_doubts(Processed{BeamSearch{.width = 3, .length = length, .stage = Stage::before_softmax}, NoRepeatNgram{1}});
  }
}

TEST_CASE("guesses that were rejected leave no doubts behind", "[confidence]") {
  for (std::uint64_t seed = 0; seed < times(30u); ++seed) {
    TableModel<everything> model(doubted);
    Speculated guesses(model, PromptLookup({.shortest = 1}));
    using Search = Blockwise<>;
    auto const result = decode(guesses,
                               std::vector<TableRequest<Search>>{{.source = seed,
                                                                  .prompt = {bos, 3, 4, 5, 6, 7, 8, 3, 5, 7, 4, 6, 8},
                                                                  .confidence = {.entropy = true, .alternatives = 3}}},
                               Search{.block = 4, .length = {.max = 12}})
                            .at(0);
    check_choices(result, {.entropy = true, .alternatives = 3}, seed, {3, 4, 5, 6, 7, 8, 3, 5, 7, 4, 6, 8});
  }
}

TEST_CASE("a request for more alternatives than there are gets all, and changes no other", "[confidence]") {
  std::vector<TableRequest<Greedy>> requests(3);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].source = i;
  requests[1].confidence = {.alternatives = 2'000'000'000};
  auto const results = run<plain>(doubted, requests, Greedy{.length = {.max = 8}});
  for (std::size_t i = 0; i < results.size(); ++i) check_choices(results[i], requests[i].confidence, i, {});
}

TEST_CASE("a prefix that is not scored was not chosen", "[confidence]") {
  using Search = BeamSearch;
  Confidence const asked{.entropy = true, .alternatives = 2};
  auto const result =
      run(everything, doubted, std::vector<TableRequest<Search>>{{.source = 4, .prefix = {5, 6}, .confidence = asked}},
          Search{.width = 3, .length = {.max = 9}, .prefix_scored = false})
          .at(0);
  check_choices(result, asked, 4, {}, 2);
}

TEST_CASE("tokens that are never generated are no alternatives", "[confidence]") {
  TableModel<everything> model(doubted, {.impossible = false});  // they have the best scores
  for (std::int32_t const count : {1, 3, 9}) {
    std::vector<TableRequest<Greedy>> const requests{{.source = 4, .confidence = {.alternatives = count}}};
    auto const result = decode(model, requests, Greedy{.length = {.max = 6}}).at(0);
    REQUIRE(result.ok());
    for (auto const& choice : result.hypotheses.at(0).choices) {
      CHECK(choice.rank == 0);
      CHECK(std::ssize(choice.alternatives) == std::min(count, 7));
      for (auto const& one : choice.alternatives) CHECK((one.token != pad && one.token != bos));
    }
  }
}

TEST_CASE("what cannot be told is refused", "[confidence]") {
  TableModel<everything> model(doubted);
  auto const ask = [&](Confidence const& confidence, auto expander) {
    return decode(model, std::vector<TableRequest<Greedy>>{{.source = 1, .confidence = confidence}}, Greedy{},
                  Batched{}, expander)
        .at(0);
  };
  auto const refused = ask({.entropy = true}, NoEntropy{});
  CHECK(refused.failure == Failure::bad_request);
  CHECK(refused.message == "sluice: confidence.entropy = 1: the expander does not compute the entropy (Expander)");
  CHECK(ask({.alternatives = 2}, NoEntropy{}).hypotheses.at(0).choices.size() > 0);
  CHECK(ask({.alternatives = -1}, LogSoftmaxTopK{}).message ==
        "sluice: confidence.alternatives = -1: must not be negative");
}
