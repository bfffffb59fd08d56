// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/schedule/streaming.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/exact/exact_search.hpp>
#include <sluice/search/rule/rules.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Abilities cutting{.roll_back = true};

struct Case {
  Table table;
  Universe universe;
  ExactSearch search;
  std::vector<Sequence> expected;  // all, best first
};

Case random_case(std::mt19937_64& random, std::uint64_t seed) {
  Case made{.table = random_table(random, 5 + static_cast<std::int32_t>(random() % 3)),
            .universe = {},
            .search = {},
            .expected = {}};
  made.table.has_eos = random() % 5 > 0;
  made.universe.maximum = 1 + static_cast<std::int32_t>(random() % 5);
  if (made.table.has_eos) made.universe.minimum = static_cast<std::int32_t>(random() % 3);
  if (made.table.has_eos && random() % 4 == 0) made.table.second_eos = 3;
  made.universe.minimum = std::min(made.universe.minimum, made.universe.maximum - 1);
  if (made.universe.maximum > 2 && random() % 3 == 0) made.universe.prefix = {4};
  auto& search = made.search;
  search.n_best = 1 + static_cast<std::int32_t>(random() % 4);
  search.list = 1 + static_cast<std::int32_t>(random() % 4);
  search.length = {.min = made.universe.minimum, .max = made.universe.maximum};
  auto const kind = random() % 4;
  search.penalty.kind = kind == 0   ? LengthPenalty::Kind::average
                        : kind == 1 ? LengthPenalty::Kind::gnmt
                                    : LengthPenalty::Kind::none;
  search.penalty.alpha = static_cast<double>(random() % 5) / 2 - 0.5;
  if (random() % 3 == 0) search.penalty.word_penalty = static_cast<double>(random() % 5) - 2;
  auto all = all_sequences(made.table, seed, made.universe);
  made.expected = n_best(std::move(all), std::numeric_limits<std::size_t>::max(), [&](Sequence const& one) {
    return search.penalty.score(one.log_prob, static_cast<std::int32_t>(one.tokens.size()));
  });
  return made;
}

}  // namespace

TEST_CASE("exact search finds the n best of all outputs", "[exact]") {
  std::mt19937_64 random(11);
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    INFO("seed " << seed);
    auto const made = random_case(random, seed);
    auto const result =
        run<cutting>(made.table,
                     std::vector<TableRequest<ExactSearch>>{{.source = seed, .prefix = made.universe.prefix}},
                     made.search)
            .at(0);
    auto expected = made.expected;
    expected.resize(std::min(expected.size(), static_cast<std::size_t>(made.search.n_best)));
    check_n_best(result, expected);
    CHECK_THAT(result.bound, WithinAbs(expected.at(0).score, 1e-4));
  }
}

TEST_CASE("what exact search has not looked at scores no more than it says", "[exact]") {
  std::mt19937_64 random(12);
  std::size_t cut = 0, unfinished = 0, none = 0;
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    INFO("seed " << seed);
    auto made = random_case(random, seed);
    made.search.steps = 1 + static_cast<std::int64_t>(random() % 12);
    auto const best = made.expected.at(0).score;
    if (random() % 2 == 0) made.search.floor = best - 1.5 + static_cast<double>(random() % 4) / 2;
    auto const result =
        run<cutting>(made.table,
                     std::vector<TableRequest<ExactSearch>>{{.source = seed, .prefix = made.universe.prefix}},
                     made.search)
            .at(0);
    REQUIRE(result.ok());
    CHECK(result.bound >= best - 1e-4);
    if (result.hypotheses.empty()) {  // nothing scores so much
      CHECK(best < made.search.floor + 1e-4);
      CHECK(result.bound == made.search.floor);
      ++none;
      continue;
    }
    auto const& first = result.hypotheses[0];
    if (first.finished) {
      CHECK(first.score <= best + 1e-4);
      if (result.bound <= first.score) CHECK_THAT(first.score, WithinAbs(best, 1e-4));  // it says that it is proved
      else ++cut;
    } else {
      ++unfinished;
    }
  }
  CHECK(cut > times(100u));
  CHECK(unfinished > times(20u));
  CHECK(none > times(50u));
}

TEST_CASE("exact search is the same for every list, floor, schedule and model", "[exact]") {
  std::mt19937_64 random(13);
  for (std::uint64_t seed = 0; seed < times(200u); ++seed) {
    INFO("seed " << seed);
    auto made = random_case(random, seed);
    std::vector<TableRequest<ExactSearch>> requests(7);
    for (std::size_t i = 0; i < requests.size(); ++i)
      requests[i] = {.source = seed + i, .prefix = made.universe.prefix};
    auto const alone = run(everything, made.table, requests, made.search, Batched{.size = 1});
    auto wide = made.search;
    wide.list = 100;
    auto const others = {
        run(cutting, made.table, requests, made.search),
        run(Abilities{.ragged = true, .roll_back = true}, made.table, requests, wide, Streaming{.size = 3})};
    for (auto const& other : others)
      for (std::size_t i = 0; i < alone.size(); ++i) CHECK(identical(alone[i], other[i]));
    // A model that cannot cut starts again.
    TableModel<Abilities{.ragged = true}> uncut(made.table);
    Restarting restarting(uncut);
    auto const again = decode(restarting, requests, made.search);
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(identical(alone[i], again[i]));
    // The floor is what a beam has found: the best is at least as good.
    if (made.table.endless()) continue;
    auto floored = made.search;
    floored.n_best = 1;
    std::vector<TableRequest<BeamSearch>> beams(requests.size());
    for (std::size_t i = 0; i < beams.size(); ++i) beams[i] = {.source = seed + i, .prefix = made.universe.prefix};
    auto const beam = run(everything, made.table, beams,
                          BeamSearch{.width = 3, .length = made.search.length, .penalty = made.search.penalty});
    for (std::size_t i = 0; i < alone.size(); ++i) {
      if (!beam[i].hypotheses.at(0).finished) continue;
      floored.floor = beam[i].hypotheses[0].score - 1e-4;
      auto const found = run(everything, made.table, {requests[i]}, floored).at(0);
      REQUIRE(found.hypotheses.size() == 1);
      CHECK(same_output(found.hypotheses[0], alone[i].hypotheses[0]));
    }
  }
}

TEST_CASE("exact search under a rule", "[exact]") {
  Table const table{.size = 6, .scale = 3};
  using Search = Ruled<ExactSearch, ForbidTokens>;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto const result = run_one<cutting>(table, seed, Search{{.n_best = 3, .list = 2, .length = {.max = 4}}, {{4}}});
    auto all = all_sequences(table, seed, {.maximum = 4});
    std::erase_if(all, [](Sequence const& one) { return std::ranges::find(one.tokens, 4) != one.tokens.end(); });
    check_n_best(result, n_best(all, 3, [](Sequence const& one) { return one.log_prob; }));
  }
}

TEST_CASE("options of exact search", "[exact]") {
  CHECK_THROWS_MATCHES(sluice::check(ExactSearch{.n_best = 0}), std::invalid_argument,
                       Message("sluice: n_best = 0: must be at least 1"));
  CHECK_THROWS_MATCHES(sluice::check(ExactSearch{.steps = -1}), std::invalid_argument,
                       Message("sluice: steps = -1: must be 0 (no bound) or more"));
  CHECK_THROWS_MATCHES(sluice::check(ExactSearch{.list = 0}), std::invalid_argument,
                       Message("sluice: list = 0: must be at least 1"));
  CHECK_THROWS_AS(sluice::check(ExactSearch{.floor = std::numeric_limits<double>::quiet_NaN()}), std::invalid_argument);
  CHECK_THROWS_AS(sluice::check(ExactSearch{.penalty = {.beta = -1}}), std::invalid_argument);
  CHECK_THROWS_AS(sluice::check(ExactSearch{.length = {.min = -1}}), std::invalid_argument);
  CHECK_NOTHROW(sluice::check(ExactSearch{.n_best = 1, .steps = 0, .list = 1}));
  ExactSearch const unsaid;
  CHECK((unsaid.n_best == 1 && unsaid.list == 32 && unsaid.steps == 0 && unsaid.slot_count() == 1));
  Table const table{.size = 6};
  auto const nothing = run_one<cutting>(table, 1, ExactSearch{.length = {.max = 0}});
  CHECK((nothing.ok() && nothing.hypotheses.size() == 1 && nothing.hypotheses[0].tokens.empty()));
}
