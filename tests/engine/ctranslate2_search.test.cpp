// SPDX-License-Identifier: Apache-2.0
// Searches over CTranslate2's encoder and decoder against CTranslate2's own.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/ctranslate2.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/ctranslate2_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctranslate2/types.h>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;

// CTranslate2 adds scores up in float, and its products round by the batch.
constexpr double tolerance = 1e-5;

void check_same(std::vector<Result> const& results, std::vector<ctranslate2::TranslationResult> const& own,
                CTranslate2Loaded const& model) {
  REQUIRE(results.size() == own.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("sentence " << i << ": " << results[i].message);
    REQUIRE(results[i].ok());
    REQUIRE(results[i].hypotheses.size() == own[i].hypotheses.size());
    for (std::size_t k = 0; k < own[i].hypotheses.size(); ++k) {
      CHECK(model.pieces(results[i].hypotheses[k].tokens) == own[i].hypotheses[k]);
      CHECK_THAT(results[i].hypotheses[k].score, WithinAbs(static_cast<double>(own[i].scores[k]), tolerance));
    }
  }
}
void check_same(std::vector<Result> const& results, std::vector<Result> const& expected, double difference) {
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("sentence " << i << ": " << results[i].message);
    REQUIRE(results[i].ok());
    REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
    for (std::size_t k = 0; k < results[i].hypotheses.size(); ++k) {
      CHECK(results[i].hypotheses[k].tokens == expected[i].hypotheses[k].tokens);
      CHECK_THAT(results[i].hypotheses[k].score, WithinAbs(expected[i].hypotheses[k].score, difference));
    }
  }
}

BeamSearch beam(std::int32_t width) {
  auto search = presets::ctranslate2(width);
  search.n_best = width;
  return search;
}

struct Fixture {
  std::vector<Tokens> sources = sample_sources();
  CTranslate2 model{shared_ctranslate2()};
  CTranslate2Output output = model.output();
  DenseProjection projection{output.weights(), output.bias};
};

}  // namespace

TEST_CASE("n-best lists are CTranslate2's own, under every schedule") {
  Fixture f;
  ctranslate2::TranslationOptions options;
  options.beam_size = options.num_hypotheses = 5;
  auto const own = own_translations(*shared_ctranslate2(), f.sources, options);
  check_same(decode(f.model, f.sources, beam(5), Batched{.size = 64}, f.projection), own, f.model);
  check_same(decode(f.model, f.sources, beam(5), Batched{.size = 7}, f.projection), own, f.model);
  // Sentences of other lengths join those that run.
  check_same(decode(f.model, f.sources, beam(5), Streaming{.size = 8, .refill_below = 1}, f.projection), own, f.model);
  CTranslate2Logits logits(shared_ctranslate2());
  check_same(decode(logits, f.sources, beam(5), Streaming{.size = 8, .refill_below = 1}), own, f.model);
  CHECK(f.model.rows() == 0);
  CHECK(logits.rows() == 0);
}

TEST_CASE("a beam whose width shrinks shares memories too") {
  Fixture f;
  // Marian's: sentences of one step have different numbers of rows.
  auto search = presets::marian(4, 1);
  search.n_best = 4, search.length = {.min = 1, .max = 60};
  CTranslate2Logits logits(shared_ctranslate2());
  auto const alone = decode(logits, f.sources, search, Batched{.size = 1});
  check_same(decode(f.model, f.sources, search, Batched{.size = 16}, f.projection), alone, tolerance);
  check_same(decode(f.model, f.sources, search, Streaming{.size = 5}, f.projection), alone, tolerance);
}

TEST_CASE("greedy is CTranslate2's own") {
  Fixture f;
  ctranslate2::TranslationOptions options;
  options.beam_size = 1;
  auto const own = own_translations(*shared_ctranslate2(), f.sources, options);
  for (std::size_t const size : {1, 6, 64}) {
    auto const greedy = presets::ctranslate2_greedy();
    check_same(decode(f.model, f.sources, greedy, Batched{.size = size}, f.projection), own, f.model);
    check_same(decode(f.model, f.sources, greedy, Streaming{.size = size, .refill_below = 1}, f.projection), own,
               f.model);
  }
}

TEST_CASE("forced beginnings are those of CTranslate2") {
  Fixture f;
  f.sources.resize(24);
  std::vector<Tokens> prefixes;
  std::vector<Request<Tokens, BeamSearch>> requests;
  for (std::size_t i = 0; i < f.sources.size(); ++i) {
    prefixes.push_back({418, static_cast<Token>(300 + i)});
    if (i % 3 == 0) prefixes.back().pop_back();
    requests.push_back({.source = f.sources[i], .prefix = prefixes.back()});
  }
  ctranslate2::TranslationOptions options;
  options.beam_size = options.num_hypotheses = 4;
  auto const own = own_translations(*shared_ctranslate2(), f.sources, options, prefixes);
  check_same(decode(f.model, requests, beam(4), Batched{.size = 64}, f.projection), own, f.model);
  check_same(decode(f.model, requests, beam(4), Streaming{.size = 5, .refill_below = 1}, f.projection), own, f.model);
}

TEST_CASE("blocks and roll-back: blockwise decoding is greedy decoding") {
  Fixture f;
  Greedy const greedy{.length = {.max = 80}};
  auto const expected = decode(f.model, f.sources, greedy, Batched{.size = 16}, f.projection);
  Speculated looking(f.model, PromptLookup());
  Blockwise<> const search{.block = 5, .length = {.max = 80}};
  for (std::size_t const size : {1, 16}) {
    auto const results = decode(looking, f.sources, search, Streaming{.size = size}, f.projection);
    check_same(results, expected, 1e-4);
    std::size_t rounds = 0, tokens = 0;
    for (auto const& result : results)
      rounds += result.hypotheses[0].blocks.size(), tokens += result.hypotheses[0].tokens.size();
    CHECK(rounds < tokens);  // some guesses were kept
  }
}

TEST_CASE("hidden vectors and CTranslate2's logits give the same samples") {
  Fixture f;
  CTranslate2Logits logits(shared_ctranslate2());
  StochasticBeam const search{.width = 3, .length = {.max = 40}};
  auto const expected = decode(logits, f.sources, search, Batched{.size = 16});
  check_same(decode(f.model, f.sources, search, Batched{.size = 16}, f.projection), expected, 1e-3);
}

TEST_CASE("the output layer may be less exact") {
  Fixture f;
  auto const exact = decode(f.model, f.sources, beam(4), Batched{.size = 16}, f.projection);
  for (auto const precision : {Precision::int8, Precision::bfloat16}) {
    DenseProjection rough(f.output.weights(), f.output.bias, precision);
    auto const results = decode(f.model, f.sources, beam(4), Batched{.size = 16}, rough);
    std::size_t same = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].ok());
      same += results[i].hypotheses[0].tokens == exact[i].hypotheses[0].tokens;
    }
    CHECK(same >= exact.size() * 9 / 10);
  }
}

TEST_CASE("an int8 model gives its output layer back") {
  if (!ctranslate2::mayiuse_int8(ctranslate2::Device::CPU)) {  // built without a library that has int8 products
    CHECK_THROWS_WITH(load_ctranslate2(ctranslate2::ComputeType::INT8), Catch::Contains("int8"));
    return;
  }
  auto const loaded = load_ctranslate2(ctranslate2::ComputeType::INT8);
  CTranslate2 model(loaded);
  auto const output = model.output(), exact = CTranslate2(shared_ctranslate2()).output();
  REQUIRE(output.numbers.size() == exact.numbers.size());
  float worst = 0, largest = 0;
  for (std::size_t i = 0; i < output.numbers.size(); ++i) {
    worst = std::max(worst, std::abs(output.numbers[i] - exact.numbers[i]));
    largest = std::max(largest, std::abs(exact.numbers[i]));
  }
  CHECK(worst > 0);
  CHECK(worst <= largest / 127);

  auto const sources = sample_sources();
  ctranslate2::TranslationOptions options;
  options.beam_size = options.num_hypotheses = 4;
  auto const own = own_translations(*loaded, sources, options);
  DenseProjection projection(output.weights(), output.bias);
  auto const results = decode(model, sources, beam(4), Batched{.size = 64}, projection);
  std::size_t same = 0;  // CTranslate2 rounds hidden vectors to int8 too before that layer
  for (std::size_t i = 0; i < sources.size(); ++i)
    same += model.pieces(results[i].hypotheses[0].tokens) == own[i].hypotheses[0];
  CHECK(same >= sources.size() * 9 / 10);
}

TEST_CASE("Checked finds nothing") {
  Fixture f;
  f.sources.resize(12);
  CheckOptions const often{.every = 1, .rows = 2, .tolerance = 1e-3};
  SECTION("hidden vectors, a beam") {
    Checked checked(f.model, often);
    auto const results = decode(checked, f.sources, beam(3), Streaming{.size = 4, .refill_below = 1}, f.projection);
    for (auto const& result : results) CHECK(result.ok());
    CHECK(checked.report().empty());
  }
  SECTION("logits, samples that fork") {
    CTranslate2Logits logits(shared_ctranslate2());
    Checked checked(logits, often);
    auto const results =
        decode(checked, f.sources, StochasticBeam{.width = 3, .length = {.max = 30}}, Batched{.size = 5});
    for (auto const& result : results) CHECK(result.ok());
    CHECK(checked.report().empty());
  }
  SECTION("blocks that are rolled back") {
    Checked checked(f.model, often);
    Speculated looking(checked, PromptLookup());
    auto const results = decode(looking, f.sources, Blockwise<>{.block = 4, .length = {.max = 40}},
                                Streaming{.size = 4, .refill_below = 1}, f.projection);
    for (auto const& result : results) CHECK(result.ok());
    CHECK(checked.report().empty());
  }
  CHECK(f.model.rows() == 0);
}
