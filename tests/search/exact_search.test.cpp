// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Abilities cutting{.roll_back = true};
constexpr auto infinite = std::numeric_limits<double>::infinity();

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
  made.universe.minimum = std::min(made.universe.minimum, made.universe.maximum);
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

/// Decodes one sentence; BestFirstBeam's forks leave their parents unchanged.
template <class S>
Result outcome(Table const& table, TableRequest<S> const& request, S const& search, TableOptions const& options = {}) {
  TableChecker model(TableModel<everything>(table, options), everything, {.first_child_in_place = false});
  auto const result = decode(model, std::vector<TableRequest<S>>{request}, search).at(0);
  CHECK(model.report() == "");
  return result;
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
    if (result.hypotheses.empty()) {  // no output scores that much
      CHECK(result.message.find("no output was found that scores floor = ") == 0);
      CHECK(best < made.search.floor + 1e-4);
      CHECK(result.bound == made.search.floor);
      ++none;
      continue;
    }
    auto const& first = result.hypotheses[0];
    if (first.finished) {
      CHECK(first.score <= best + 1e-4);
      if (result.bound <= first.score) CHECK_THAT(first.score, WithinAbs(best, 1e-4));  // the search reports a proof
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
    // A model without roll-back starts again.
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
  using Search = Processed<ExactSearch>;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto const result =
        run_one<cutting>(table, seed, Search{{.n_best = 3, .list = 2, .length = {.max = 4}}, ForbidTokens{{4}}});
    auto all = all_sequences(table, seed, {.maximum = 4});
    std::erase_if(all, [](Sequence const& one) { return std::ranges::find(one.tokens, 4) != one.tokens.end(); });
    check_n_best(result, n_best(all, 3, [](Sequence const& one) { return one.log_prob; }));
  }
}

TEST_CASE("searches that prove or force an end find the n best where no other length is allowed", "[exact]") {
  std::mt19937_64 random(14);
  for (std::uint64_t seed = 0; seed < times(150u); ++seed) {
    auto table = random_table(random, 5 + static_cast<std::int32_t>(random() % 2));
    if (seed % 3 == 0) table.second_eos = 3;
    auto const length = 1 + static_cast<std::int32_t>(random() % 4);
    INFO("seed " << seed << ", length " << length << ", V " << table.size);
    LengthLimits const limits{.min = length, .max = length};
    auto const all = all_sequences(table, seed, {.minimum = length, .maximum = length});
    REQUIRE(!all.empty());
    auto const expected = n_best(all, 3, [](Sequence const& one) { return one.log_prob; });
    for (auto const& one : expected) CHECK(std::ssize(one.tokens) == length);
    check_n_best(run_one<cutting>(table, seed, ExactSearch{.n_best = 3, .length = limits}), expected);
    LengthPenalty const none{.kind = LengthPenalty::Kind::none};
    BeamSearch const beam{.width = 300, .n_best = 3, .length = limits, .penalty = none};
    check_n_best(run_one(table, seed, beam), expected);
    BestFirstBeam const first{.width = 300, .n_best = 3, .length = limits, .penalty = none};
    check_n_best(outcome(table, {.source = seed}, first), expected);
    // Searches that force no eos stop there, without an earlier end.
    auto const cut = all_sequences(table, seed, {.minimum = length, .maximum = length, .must_finish = false});
    auto const among = [&](Result const& result) {
      check_result(result, table, seed);
      for (auto const& h : result.hypotheses)
        CHECK((!h.finished && std::ranges::count(cut, h.tokens, &Sequence::tokens) == 1));
    };
    if (cut.empty()) continue;  // the second eos was its only token
    among(run_one(table, seed, Greedy{.length = limits}));
    auto truncated = beam;
    truncated.at_maximum = AtMaximum::truncate;
    check_n_best(run_one(table, seed, truncated), n_best(cut, 3, [](Sequence const& one) { return one.log_prob; }));
    auto const unmasked = [&](Result const& result) {  // eos is forbidden before the softmax
      REQUIRE(!result.hypotheses.empty());
      for (auto const& h : result.hypotheses)
        CHECK((!h.finished && std::ranges::count(cut, h.tokens, &Sequence::tokens) == 1));
    };
    unmasked(run_one(table, seed, Sample{.length = limits}));
    auto const drawn = run_one(table, seed, StochasticBeam{.width = 300, .length = limits});
    unmasked(drawn);
    CHECK(drawn.hypotheses.size() == cut.size());
  }
}

TEST_CASE("behind an impossible prefix every search goes on, ranks by what follows, and says -infinity", "[exact]") {
  std::mt19937_64 random(15);
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < times(100u); ++seed) {
    auto const table = random_table(random, 5 + static_cast<std::int32_t>(random() % 6));
    INFO("seed " << seed << ", V " << table.size);
    LengthPenalty const none{.kind = LengthPenalty::Kind::none};
    auto const check = [&](auto search) {
      using S = decltype(search);
      return outcome<S>(table, {.source = seed, .prefix = {pad}}, search);
    };
    auto const same = [&](auto search) {  // the same as after an equal context without a forced prefix
      using S = decltype(search);
      auto const behind = check(search);
      auto& length = [&]() -> LengthLimits& {
        if constexpr (requires { search.search.length; }) return search.search.length;
        else if constexpr (requires { search.beam.length; }) return search.beam.length;
        else return search.length;
      }();
      --length.max, length.min = std::max(length.min - 1, 0);
      auto const expected = outcome<S>(table, {.source = seed, .prompt = {bos, pad}}, search);
      REQUIRE(behind.ok());
      REQUIRE(behind.hypotheses.size() == expected.hypotheses.size());
      for (std::size_t i = 0; i < expected.hypotheses.size(); ++i, ++compared) {
        auto const& h = behind.hypotheses[i];
        auto tokens = expected.hypotheses[i].tokens;
        tokens.insert(tokens.begin(), pad);
        CHECK(h.tokens == tokens);
        CHECK(std::ranges::equal(std::span(h.log_probs).subspan(1), expected.hypotheses[i].log_probs));
        CHECK(h.finished == expected.hypotheses[i].finished);
        CHECK((h.log_prob == -infinite && h.score == -infinite &&
               h.log_probs[0] == -std::numeric_limits<float>::infinity()));
      }
      return behind;
    };
    LengthLimits const limits{.min = static_cast<std::int32_t>(seed % 3), .max = 5};
    same(Greedy{.length = limits});
    auto const proved = same(ExactSearch{.n_best = 3, .length = limits});
    CHECK(proved.bound == -infinite);
    CHECK(same(ExactSearch{.n_best = 3, .steps = 2, .length = limits}).bound == -infinite);
    auto const floored = check(ExactSearch{.floor = -1e9, .length = limits});
    CHECK((floored.ok() && floored.hypotheses.empty() && floored.bound == -1e9));
    BeamSearch const beam{.width = 4, .n_best = 4, .length = limits, .penalty = none};
    same(beam);
    auto exact = beam;
    exact.early_stopping = {.rule = EarlyStopping::Rule::exact}, exact.n_best = 2;
    same(exact);
    same(BestFirstBeam{.width = 4, .n_best = 2, .length = limits, .penalty = none});
    same(DiverseBeamSearch{.search = beam, .groups = 2, .n_best = 6});
    same(ConstrainedBeamSearch<Constraints>{.beam = beam, .constraints = Constraints({.all = {{4}}})});
    // Noise depends on positions: it is compared with the same prefix where that is possible, all else equal.
    auto const drawn = [&](auto search) {
      using S = decltype(search);
      auto const behind = check(search);
      auto const expected = outcome<S>(table, {.source = seed, .prefix = {pad}}, search, {.impossible = false});
      REQUIRE((behind.ok() && expected.ok()));
      REQUIRE(behind.hypotheses.size() == expected.hypotheses.size());
      for (std::size_t i = 0; i < expected.hypotheses.size(); ++i, ++compared) {
        CHECK(behind.hypotheses[i].tokens == expected.hypotheses[i].tokens);
        CHECK((behind.hypotheses[i].log_prob == -infinite && behind.hypotheses[i].score == -infinite));
        CHECK(expected.hypotheses[i].log_prob > -infinite);
      }
    };
    drawn(Sample{.samples = 3, .length = limits});
    drawn(Sample{.samples = 3, .distinct = true, .length = limits});
    drawn(StochasticBeam{.width = 4, .length = limits});
  }
  CHECK(compared > times(1500u));
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
