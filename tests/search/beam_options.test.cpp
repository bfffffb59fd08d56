// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Always gives the same line of scores; token 0 is eos.
struct Constant {
  using Source = std::monostate;
  static constexpr Abilities abilities = everything;
  std::vector<float> line;
  std::vector<float> lines{};

  Vocabulary vocabulary() const { return {.size = static_cast<std::int32_t>(line.size()), .bos = 0, .eos = {0}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const> rows) {
    lines.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) lines.insert(lines.end(), line.begin(), line.end());
    return scores(lines.data(), std::ssize(rows), std::ssize(line), Kind::log_probs);
  }
};

/// The beam's width after one step.
std::int32_t width_after_one(std::vector<float> line, BeamSearch search) {
  Constant model{std::move(line)};
  Decoder decoder(model, search, Batched{});
  decoder.submit({});
  decoder.step();
  auto const before = decoder.statistics().rows;
  decoder.step();
  return static_cast<std::int32_t>(decoder.statistics().rows - before);
}

constexpr auto no = -std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("a candidate exactly at a threshold is dropped, one just above it stays", "[pruning]") {
  std::vector<float> const line{no, -1, -1.5f, -2.5f, -4};
  BeamSearch const wide{.width = 4, .length = {.max = 20}};
  CHECK(width_after_one(line, wide) == 4);
  auto search = wide;
  search.pruning.absolute_threshold = 1.5;
  CHECK(width_after_one(line, search) == 2);
  search.pruning.absolute_threshold = 1.5 + 1e-12;
  CHECK(width_after_one(line, search) == 3);

  // The relative threshold is the absolute one in terms of probability: at exactly 1.5 nats both give the same result.
  search = wide;
  auto ratio = std::exp(-1.5);
  while (-std::log(ratio) > 1.5) ratio = std::nextafter(ratio, 1.0);
  while (-std::log(ratio) < 1.5) ratio = std::nextafter(ratio, 0.0);
  if (-std::log(ratio) == 1.5) {
    search.pruning.relative_threshold = ratio;
    CHECK(width_after_one(line, search) == 2);
  }
  search.pruning.relative_threshold = std::exp(-1.6);
  CHECK(width_after_one(line, search) == 3);
  search.pruning.relative_threshold = std::exp(-1.4);
  CHECK(width_after_one(line, search) == 2);

  search = wide;
  search.pruning.relative_local_threshold = std::exp(-1.6);
  CHECK(width_after_one(line, search) == 3);
  search.pruning.relative_local_threshold = std::exp(-1.4);
  CHECK(width_after_one(line, search) == 2);
  auto const bar = [&](double local) { return -1.0 + std::log(local); };
  auto local = std::exp(-1.5);
  while (bar(local) < -2.5) local = std::nextafter(local, 1.0);
  while (bar(local) > -2.5) local = std::nextafter(local, 0.0);
  if (bar(local) == -2.5) {
    search.pruning.relative_local_threshold = local;
    CHECK(width_after_one(line, search) == 2);
  }

  search = wide;
  for (std::int32_t most = 1; most <= 4; ++most) {
    search.pruning.max_per_parent = most;
    CHECK(width_after_one(line, search) == most);
  }
}

TEST_CASE("thresholds at infinity and zero prune nothing", "[pruning]") {
  Table const table{.size = 10, .scale = 3};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    BeamSearch const plain_search{.width = 4, .n_best = 4, .length = {.max = 12}};
    auto loose = plain_search;
    loose.pruning = {.absolute_threshold = 1e6, .relative_threshold = 1e-300, .max_per_parent = 4};
    CHECK(identical(run_one(table, seed, plain_search), run_one(table, seed, loose)));
  }
}

TEST_CASE("pruning costs expansions, never adds them", "[pruning]") {
  Table const table{.size = 12, .scale = 3, .eos_bias = -1, .eos_slope = 0.3};
  std::uint64_t last = 0;
  for (auto const threshold : {0.5, 1.5, 2.5, 1e6}) {
    std::uint64_t rows = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CheckedTable<everything> model{TableModel<everything>(table)};
      auto search = presets::varstream(8, threshold, 5);
      search.length.max = 20;
      Decoder decoder(model, search, Batched{});
      decoder.submit({.source = seed});
      while (decoder.step()) {
      }
      rows += decoder.statistics().expansions;
    }
    CHECK(rows > last);
    last = rows;
  }
}

TEST_CASE("the exact bound never loses a better hypothesis, and saves steps", "[stop]") {
  std::mt19937_64 random(7);
  std::uint64_t steps = 0, steps_to_the_end = 0;
  for (int i = 0; i < 1500; ++i) {
    Table table{.size = 8, .scale = 4, .eos_bias = 0, .eos_slope = 0.2};
    table.eos_bias = std::uniform_int_distribution(-4, 2)(random);
    auto const seed = random();
    BeamSearch search{.width = 4, .n_best = 1 + i % 3, .length = {.max = 16}};
    search.penalty.kind = std::vector{LengthPenalty::Kind::none, LengthPenalty::Kind::average,
                                      LengthPenalty::Kind::gnmt}[static_cast<std::size_t>(i) % 3];
    search.penalty.alpha = std::uniform_int_distribution(-2, 5)(random) / 4.0;
    search.penalty.word_penalty = std::uniform_int_distribution(-2, 2)(random) / 8.0;
    auto const decode_with = [&](EarlyStopping const& stop, std::uint64_t& count) {
      CheckedTable<everything> model{TableModel<everything>(table)};
      auto with = search;
      with.early_stopping = stop;
      Decoder decoder(model, with, Batched{});
      decoder.submit({.source = seed});
      while (decoder.step()) {
      }
      Result result;
      decoder.poll(result);
      count += decoder.statistics().steps;
      return result;
    };
    auto const exact = decode_with({.rule = EarlyStopping::Rule::exact}, steps);
    auto const all = decode_with({.rule = EarlyStopping::Rule::count, .finished = 1000000}, steps_to_the_end);
    INFO("seed " << seed << " alpha " << search.penalty.alpha << " kind " << i % 3 << " word "
                 << search.penalty.word_penalty);
    REQUIRE(exact.hypotheses.size() == all.hypotheses.size());
    for (std::size_t h = 0; h < all.hypotheses.size(); ++h) CHECK(exact.hypotheses[h].score == all.hypotheses[h].score);
  }
  INFO("steps " << steps << " of " << steps_to_the_end);
  CHECK(steps < steps_to_the_end);
}

TEST_CASE("what happens at the maximum length", "[at_maximum]") {
  // eos at -3, others better: nothing ends by itself within four tokens.
  std::vector<float> const line{-3, -1, -1.25f, -8};
  auto const decode_line = [&](AtMaximum what) {
    Constant model{line};
    BeamSearch search{.width = 2, .n_best = 2, .length = {.max = 3}};
    search.at_maximum = what;
    std::vector<std::monostate> const one(1);
    return decode(model, one, search)[0];
  };
  auto const scored = decode_line(AtMaximum::force_eos);
  REQUIRE(scored.hypotheses.size() == 2);
  CHECK(scored.hypotheses[0].tokens == std::vector<Token>{1, 1, 0});
  CHECK(scored.hypotheses[0].log_prob == -5.0);
  CHECK(scored.hypotheses[0].finished);
  auto const free = decode_line(AtMaximum::force_eos_free);
  CHECK(free.hypotheses[0].tokens == std::vector<Token>{1, 1, 0});
  CHECK(free.hypotheses[0].log_prob == -2.0);
  auto const cut = decode_line(AtMaximum::truncate);
  REQUIRE(cut.hypotheses.size() == 2);
  CHECK(cut.hypotheses[0].tokens == std::vector<Token>{1, 1, 1});
  CHECK_FALSE(cut.hypotheses[0].finished);
  auto const best = decode_line(AtMaximum::best_unfinished);
  REQUIRE(best.hypotheses.size() == 1);
  CHECK(best.hypotheses[0].tokens == std::vector<Token>{1, 1, 1});
  auto const dropped = decode_line(AtMaximum::drop);
  CHECK(dropped.hypotheses.empty());
  CHECK(dropped.ok());
}

TEST_CASE("siblings that must differ come from more parents", "[sibling_penalty]") {
  Table const table{.size = 12, .scale = 2, .eos_bias = -3, .eos_slope = 0.3};
  std::size_t heads = 0, diverse_heads = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    BeamSearch search{.width = 6, .n_best = 6, .length = {.max = 8}};
    auto const count = [&](Result const& result) {
      std::vector<Token> first;
      for (auto const& h : result.hypotheses) first.push_back(h.tokens[0]);
      std::sort(first.begin(), first.end());
      return static_cast<std::size_t>(std::unique(first.begin(), first.end()) - first.begin());
    };
    heads += count(run_one(table, seed, search));
    search.sibling_penalty = 1;
    auto const result = run_one(table, seed, search);
    diverse_heads += count(result);
    for (std::size_t h = 1; h < result.hypotheses.size(); ++h)
      CHECK(result.hypotheses[h - 1].score >= result.hypotheses[h].score);
  }
  CHECK(diverse_heads > heads);
}

TEST_CASE("impossible combinations are refused in a sentence", "[options]") {
  auto const refused = [](BeamSearch const& search) {
    try {
      search.check();
    } catch (std::invalid_argument const& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused({}).empty());
  CHECK(refused({.width = 0}) == "sluice: width = 0: must be at least 1");
  CHECK(refused({.width = 2, .n_best = 3}).find("n_best = 3") != std::string::npos);
  CHECK(refused({.pruning = {.absolute_threshold = -1}}).find("absolute_threshold") != std::string::npos);
  CHECK(refused({.pruning = {.absolute_threshold = std::nan("")}}).find("absolute_threshold") != std::string::npos);
  CHECK(refused({.pruning = {.relative_threshold = 1}}).find("relative_threshold") != std::string::npos);
  CHECK(refused({.pruning = {.max_per_parent = 0}}).find("max_per_parent") != std::string::npos);
  CHECK(refused({.finished = FinishedHypotheses::shrink, .early_stopping = {.rule = EarlyStopping::Rule::heuristic}})
            .find("set_aside") != std::string::npos);
  CHECK(refused({.finished = FinishedHypotheses::stay, .early_stopping = {.rule = EarlyStopping::Rule::exact}})
            .find("stay") != std::string::npos);
  CHECK(refused({.finished = FinishedHypotheses::stay, .candidates = 20}).find("set_aside") != std::string::npos);
  CHECK(refused({.candidates = 3}).find("candidates = 3") != std::string::npos);
  CHECK(refused({.length = {.max = -1}}).find("length.max = -1") != std::string::npos);
}
