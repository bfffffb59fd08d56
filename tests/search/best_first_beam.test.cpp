// SPDX-License-Identifier: Apache-2.0
// Best first finds what a beam finds, and what enumeration proves, in fewer rows.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/presets.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using BestFirstRequest = TableRequest<BestFirstBeam>;

struct BestFirstCase {
  Table table;
  BeamSearch beam;
  BestFirstBeam search;
  std::vector<Token> prefix;
};

double of_few(std::mt19937_64& random, double step, std::uint64_t count) {
  return step * static_cast<double>(random() % count);
}

LengthPenalty any_penalty(std::mt19937_64& random) {
  LengthPenalty penalty{.kind = static_cast<LengthPenalty::Kind>(random() % 3)};
  penalty.alpha = of_few(random, 0.5, 5) - 0.5;
  if (random() % 3 == 0) penalty.word_penalty = of_few(random, 0.4, 6) - 1;
  return penalty;
}

Pruning any_pruning(std::mt19937_64& random) {
  Pruning pruning;
  if (random() % 5 == 0) pruning.absolute_threshold = of_few(random, 0.5, 8);
  if (random() % 6 == 0) pruning.relative_threshold = 0.05;
  if (random() % 5 == 0) pruning.max_per_parent = 1 + static_cast<std::int32_t>(random() % 4);
  return pruning;
}

/// Some have ties, several eos tokens, none, or prefixes.
BestFirstCase any_case(std::mt19937_64& random) {
  BestFirstCase made;
  made.table = {.size = 5 + static_cast<std::int32_t>(random() % 5), .scale = 3 + of_few(random, 1, 6)};
  made.table.eos_bias = of_few(random, 1, 6) - 4;
  made.table.has_eos = random() % 6 > 0;
  if (random() % 3 == 0) made.table.levels = 1 + static_cast<std::int32_t>(random() % 4);
  if (random() % 4 == 0) made.table.second_eos = 3;
  auto& beam = made.beam;
  beam.width = 1 + static_cast<std::int32_t>(random() % 6);
  beam.n_best = 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(beam.width));
  beam.length.max = static_cast<std::int32_t>(random() % 13);
  if (random() % 3 == 0) beam.length.min = std::min(static_cast<std::int32_t>(random() % 4), beam.length.max);
  if (beam.length.max > 3 && random() % 3 == 0) made.prefix.assign(1 + random() % 2, 4);
  beam.penalty = any_penalty(random), beam.pruning = any_pruning(random);
  beam.early_stopping.rule = EarlyStopping::Rule::exact;
  beam.at_maximum = static_cast<AtMaximum>(random() % 5);
  beam.prefix_scored = random() % 3 > 0;
  beam.guard_prefix = random() % 3 == 0;
  if (random() % 4 == 0) beam.candidates = beam.width + static_cast<std::int32_t>(random() % 4);
  if (random() % 3 == 0) beam.stage = Stage::before_softmax;
  made.search = BestFirstBeam::as_beam(beam);
  if (random() % 2 == 0) made.search.states = 2 + static_cast<std::int32_t>(random() % 4);
  return made;
}

template <class S>
std::vector<TableRequest<S>> some_requests(std::uint64_t seed, std::vector<Token> const& prefix) {
  std::vector<TableRequest<S>> requests(5);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i] = {.source = seed + i, .prefix = prefix};
  return requests;
}

/// Allows forks without the parent's slot being continued: best first leaves parents unchanged.
template <class S, class P = Batched>
std::vector<Result> run_forking(Abilities claimed, Table const& table, std::vector<TableRequest<S>> requests,
                                S const& search, P const& schedule = {}, Counters* counters = nullptr) {
  TableChecker model(TableModel<everything>(table), claimed, {.first_child_in_place = false});
  auto const results = decode(model, std::move(requests), search, schedule);
  CHECK(model.report() == "");
  if (counters != nullptr) *counters = model.counters();
  return results;
}

}  // namespace

TEST_CASE("best first finds what a beam finds", "[best_first]") {
  std::mt19937_64 random(21);
  std::int64_t fewer = 0, more = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    auto made = any_case(random);
    made.search.states = 200;  // nothing is fed twice
    Counters rows{}, beam_rows{};
    auto const requests = some_requests<BestFirstBeam>(seed, made.prefix);
    auto const found = run_forking(everything, made.table, requests, made.search, Batched{}, &rows);
    auto const expected =
        run(everything, made.table, some_requests<BeamSearch>(seed, made.prefix), made.beam, Batched{}, {}, &beam_rows);
    for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(same_outputs(found[i], expected[i]));
    CHECK(rows.rows <= beam_rows.rows);
    fewer += rows.rows < beam_rows.rows, more += rows.rows == beam_rows.rows;
  }
  CHECK(fewer > more / 2);
}

TEST_CASE("best first finds the same in few slots, under every ability, schedule and batch", "[best_first]") {
  std::mt19937_64 random(22);
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    INFO("seed " << seed);
    auto const made = any_case(random);
    auto const requests = some_requests<BestFirstBeam>(seed, made.prefix);
    auto const alone = run_forking(everything, made.table, requests, made.search, Batched{.size = 1});
    for (int able = 0; able < 8; ++able) {
      INFO("abilities " << able);
      Abilities const abilities{.ragged = (able & 1) != 0, .blocks = (able & 2) != 0, .roll_back = (able & 4) != 0};
      auto const batch = run_forking(abilities, made.table, requests, made.search, Batched{.size = 3});
      auto const stream =
          run_forking(abilities, made.table, requests, made.search, Streaming{.size = 3, .refill_below = 1});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(identical(alone[i], batch[i]));
        CHECK(identical(alone[i], stream[i]));
      }
    }
  }
}

TEST_CASE("best first, wide enough, finds the best of all outputs", "[best_first]") {
  std::mt19937_64 random(23);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    Table const table{.size = 6, .scale = 4, .eos_bias = of_few(random, 1, 4) - 2};
    Universe const universe{.maximum = 1 + static_cast<std::int32_t>(random() % 5)};
    BestFirstBeam search{.width = 300, .n_best = 4, .length = {.max = universe.maximum}};
    search.penalty = any_penalty(random);
    search.states = 2 + static_cast<std::int32_t>(random() % 9);
    auto const result = run_forking(everything, table, std::vector<BestFirstRequest>{{.source = seed}}, search).at(0);
    check_n_best(result, n_best(all_sequences(table, seed, universe), 4, [&](Sequence const& one) {
                   return search.penalty.score(one.log_prob, static_cast<std::int32_t>(one.tokens.size()));
                 }));
  }
}

TEST_CASE("best first finds what engines' beams find whose rules prove it", "[best_first]") {
  std::mt19937_64 random(24);
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    INFO("seed " << seed);
    Table table{.size = 7, .scale = 3 + of_few(random, 1, 5), .eos_bias = of_few(random, 1, 5) - 3};
    if (random() % 3 == 0) table.levels = 3;
    auto const width = 1 + static_cast<std::int32_t>(random() % 5);
    auto const alpha = of_few(random, 0.5, 4);
    BeamSearch beam;
    switch (random() % 3) {
      case 0: beam = presets::ctranslate2(width, 0); break;
      case 1: beam = presets::huggingface(width, 0); break;
      default: beam = presets::huggingface(width, alpha, EarlyStopping::Rule::never_early); break;
    }
    if (beam.early_stopping.rule != EarlyStopping::Rule::top_ended) beam.n_best = width;
    beam.length.max = 3 + static_cast<std::int32_t>(random() % 9);
    std::vector<Token> const prefix(random() % 3, 4);
    auto const found =
        run_forking(everything, table, some_requests<BestFirstBeam>(seed, prefix), BestFirstBeam::as_beam(beam));
    auto const expected = run(everything, table, some_requests<BeamSearch>(seed, prefix), beam);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
  }
}

TEST_CASE("best first under rules", "[best_first]") {
  std::mt19937_64 random(25);
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    auto const made = any_case(random);
    auto const compare = [&]<class Rule>(Rule const& rule) {
      Processed<BestFirstBeam> const search{made.search, rule};
      Processed<BeamSearch> const beam{made.beam, rule};
      for (auto const able : {everything, Abilities{}, Abilities{.ragged = true}}) {
        auto const found =
            run_forking(able, made.table, some_requests<Processed<BestFirstBeam>>(seed, made.prefix), search);
        auto const expected =
            run_forking(able, made.table, some_requests<Processed<BeamSearch>>(seed, made.prefix), beam);
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
      }
    };
    compare(NoRepeatNgram{2});
    compare(ForbidTokens{{4}});
  }
}

TEST_CASE("best first under stops", "[best_first]") {
  StopSequences const stop({.tokens = {{4}, {5, 6}}});
  using Found = Processed<BestFirstBeam>;
  using Expected = Processed<BeamSearch>;
  std::size_t stopped = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Table const table{
        .size = 7, .scale = 4 + static_cast<double>(seed % 4), .eos_bias = static_cast<double>(seed % 5) - 3};
    BeamSearch beam{.width = 1 + static_cast<std::int32_t>(seed % 5)};
    beam.n_best = beam.width, beam.length.max = 10, beam.early_stopping.rule = EarlyStopping::Rule::exact;
    for (auto const minimum : {0, 4}) {
      beam.length.min = minimum;
      auto const expected = run(everything, table, some_requests<Expected>(seed * 10, {}), Expected{beam, stop});
      for (auto const states : {0, 2, 5}) {
        auto search = BestFirstBeam::as_beam(beam);
        search.states = states;
        for (auto const able : {everything, Abilities{}, Abilities{.ragged = true, .roll_back = true}}) {
          INFO("seed " << seed << ", minimum " << minimum << ", states " << states);
          auto const found = run_forking(able, table, some_requests<Found>(seed * 10, {}), Found{search, stop});
          for (std::size_t i = 0; i < found.size(); ++i) {
            CHECK(same_outputs(found[i], expected[i]));
            for (auto const& one : found[i].hypotheses) stopped += one.stop >= 0;
          }
        }
      }
    }
  }
  CHECK(stopped > 1000);
}

TEST_CASE("what best first says while it runs", "[best_first]") {
  Table const table{.size = 8, .scale = 6, .eos_bias = -5};
  std::size_t grown = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TableModel<everything> model(table);
    Decoder decoder(model, BestFirstBeam{.width = 3, .n_best = 2, .length = {.max = 12}});
    decoder.submit({.source = seed, .prefix = {4}});
    std::vector<Token> settled;
    while (decoder.step())
      decoder.settled([](std::uint64_t) { return true; },
                      [&](std::uint64_t, std::span<Token const> tokens) {
                        REQUIRE(tokens.size() >= settled.size());
                        CHECK(std::equal(settled.begin(), settled.end(), tokens.begin()));
                        grown += tokens.size() > std::max<std::size_t>(settled.size(), 1);
                        settled.assign(tokens.begin(), tokens.end());
                      });
    Result result;
    REQUIRE(decoder.poll(result));
    for (auto const& one : result.hypotheses) {
      REQUIRE(one.tokens.size() >= settled.size());
      CHECK(std::equal(settled.begin(), settled.end(), one.tokens.begin()));
    }
  }
  CHECK(grown > 100);
}

TEST_CASE("best first that is broken off tells what waits", "[best_first]") {
  TableModel<everything> model(Table{.size = 8, .scale = 6, .eos_bias = -3});
  std::size_t finished = 0, waiting = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (int steps = 1; steps < 12; ++steps) {
      Decoder decoder(model, BestFirstBeam{.width = 3, .n_best = 3, .length = {.max = 12}});
      auto const id = decoder.submit({.source = seed});
      for (int i = 0; i < steps; ++i) decoder.step();
      if (!decoder.cancel(id)) break;
      Result result;
      REQUIRE(decoder.poll(result));
      REQUIRE(result.hypotheses.size() == 3);
      for (auto const& one : result.hypotheses) {
        CHECK(one.tokens.size() == one.log_probs.size());
        CHECK_THAT(one.log_prob, WithinAbs(log_prob(model.table(), seed, {}, one.tokens), 1e-4));
        CHECK(one.finished == model.table().ends(one.tokens.back()));
        ++(one.finished ? finished : waiting);
      }
    }
  CHECK((finished > 20 && waiting > 100));
}

TEST_CASE("best first takes memory for the lengths that it comes to, not for the maximum", "[best_first]") {
  Table const table{.size = 8, .scale = 6, .eos_bias = -1};
  BestFirstBeam search{.width = 3, .n_best = 3, .length = {.max = 100}, .penalty = {.alpha = 0}};
  search.pruning.relative_threshold = 0.01;  // looks at all lengths so far
  auto const expected = run_forking(everything, table, some_requests<BestFirstBeam>(1, {4}), search);
  for (auto const maximum : {1'000'000'000, std::numeric_limits<std::int32_t>::max() - 1}) {
    search.length.max = maximum;
    auto const found = run_forking(everything, table, some_requests<BestFirstBeam>(1, {4}), search);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].ok());
      CHECK(same_outputs(found[i], expected[i]));
    }
  }
}

TEST_CASE("options of best first", "[best_first]") {
  auto const refused = [](BeamSearch beam, std::string const& message) {
    CHECK_THROWS_MATCHES(BestFirstBeam::as_beam(beam), std::invalid_argument, Message("sluice: " + message));
  };
  refused({}, "early_stopping.rule = count: ends after a number of steps, and hypotheses are looked at in another "
              "order: use exact");
  refused({.finished = FinishedHypotheses::shrink},
          "finished = shrink: the room for one length would depend on what has ended before: must be set_aside");
  EarlyStopping const exact{.rule = EarlyStopping::Rule::exact};
  refused({.early_stopping = exact, .one_end = true}, "one_end = true: is not there: must be false");
  refused({.early_stopping = {.rule = EarlyStopping::Rule::exact, .ended_first = true}},
          "early_stopping.ended_first = true: is not there: must be false");
  refused({.early_stopping = exact, .sibling_penalty = 1},
          "sibling_penalty = 1.000000: ranks by something else than log-probability: must be 0");
  refused({.pruning = {.relative_local_threshold = 0.5}, .early_stopping = exact},
          "pruning.relative_local_threshold = 0.500000: compares with all candidates of a step: must be 0");
  refused({.pruning = {.below_finished = 1}, .early_stopping = exact},
          "pruning.below_finished = 1.000000: depends on what has ended in earlier steps: must be off");
  refused({.n_best = 2, .penalty = {.alpha = 0}, .early_stopping = {.rule = EarlyStopping::Rule::top_ended}},
          "early_stopping.rule = top_ended: is a proof only for n_best = 1, without length penalty and word "
          "penalty: use exact");
  refused(presets::huggingface(4),
          "early_stopping.rule = heuristic: is a proof only without length penalty and word penalty: use exact");
  refused({.penalty = {.word_penalty = 1}, .early_stopping = {.rule = EarlyStopping::Rule::never_early}},
          "early_stopping.rule = never_early: is a proof only without word penalty: use exact");
  auto const wrong = [](BestFirstBeam search, std::string const& message) {
    CHECK_THROWS_MATCHES(sluice::check(search), std::invalid_argument, Message("sluice: " + message));
  };
  wrong({.width = 0}, "width = 0: must be at least 1");
  wrong({.n_best = 6}, "n_best = 6: must be between 1 and the width");
  wrong({.candidates = 2}, "candidates = 2: must be 0 or at least the width");
  wrong({.states = 1}, "states = 1: must be 0 (twice the width, and one) or at least 2");
}
