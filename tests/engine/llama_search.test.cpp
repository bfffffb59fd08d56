// SPDX-License-Identifier: Apache-2.0
// Searches over llama.cpp against llama.cpp itself: its own sampler, and contexts that read every hypothesis from its beginning.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/llama_models.hpp>
#include <support/slow_llama.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;
constexpr LengthLimits length{.max = 50};

/// Prompts of 1 to 24 tokens.
std::vector<Tokens> prompts(std::size_t count = 16) {
  std::vector<Tokens> all(count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k <= i * 7 % 24; ++k)
      all[i].push_back(static_cast<Token>(k == 0 ? 1 : 6 + (i + k * k) % 53));
  return all;
}

template <class S>
std::vector<Request<std::monostate, S>> requests(std::vector<Tokens> const& prompts) {
  std::vector<Request<std::monostate, S>> all;
  for (auto const& prompt : prompts) all.push_back({.prompt = prompt});
  return all;
}

std::vector<Tokens> outputs(std::vector<Result> const& results) {
  std::vector<Tokens> all;
  for (auto const& result : results) {
    INFO(result.message);
    REQUIRE(result.ok());
    all.push_back(result.hypotheses.at(0).tokens);
  }
  return all;
}

std::vector<Tokens> own(llama_model* model) {
  std::vector<Tokens> all;
  for (auto const& prompt : prompts()) all.push_back(own_greedy(model, prompt, 50));
  return all;
}

// Of logits, times 1 + their size.
double model_tolerance(std::string_view architecture) { return architecture == "gemma2" ? 1e-2 : 1e-4; }

void check_same(std::vector<Result> const& results, std::vector<Result> const& expected, double tolerance) {
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("request " << i << ": " << results[i].message);
    REQUIRE(results[i].ok());
    REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
    for (std::size_t k = 0; k < results[i].hypotheses.size(); ++k) {
      auto const &one = results[i].hypotheses[k], &other = expected[i].hypotheses[k];
      CHECK(one.tokens == other.tokens);
      CHECK(one.finished == other.finished);
      CHECK_THAT(one.score, WithinAbs(other.score, tolerance));
    }
  }
}

}  // namespace

TEST_CASE("greedy is llama.cpp's own greedy sampler") {
  for (auto const* architecture : {"llama", "mamba", "gemma2"}) {
    auto const model = draw_llama({.architecture = architecture, .window = 16});
    auto const expected = own(model.get());
    for (bool const unified : {true, false})
      for (std::size_t const size : {1, 4, 16}) {
        INFO(architecture << ", unified " << unified << ", batch " << size);
        auto params = exact_params(16, 4096);
        params.kv_unified = unified;
        auto const context = make_context(model.get(), params);
        Llama adapter(context.get());
        Greedy const greedy{.length = length};
        CHECK(outputs(decode(adapter, requests<Greedy>(prompts()), greedy, Batched{.size = size})) == expected);
        CHECK(outputs(decode(adapter, requests<Greedy>(prompts()), greedy,
                             Streaming{.size = size, .refill_below = 1})) == expected);
      }
  }
}

TEST_CASE("a batch of llama.cpp's smaller than a step changes nothing") {
  auto const model = draw_llama();
  auto const expected = own(model.get());
  for (auto const& [n_batch, sequences] : {std::pair{16u, 16u}, {7u, 4u}, {4u, 4u}}) {  // never fewer than sequences
    auto params = exact_params(sequences, 4096);
    params.n_batch = params.n_ubatch = n_batch;
    auto const context = make_context(model.get(), params);
    Llama adapter(context.get());
    CHECK(outputs(decode(adapter, requests<Greedy>(prompts()), Greedy{.length = length})) == expected);
    // Lines of several calls, in one answer: a draft that is always right fills blocks.
    auto const other = make_context(model.get(), params);
    Llama same(other.get());
    Speculated drafted(adapter, DraftModel(same));
    CHECK(outputs(decode(drafted, requests<Blockwise<>>(prompts()), Blockwise<>{.block = 5, .length = length})) ==
          expected);
  }
}

TEST_CASE("beams are those over contexts that read every hypothesis anew") {
  auto const model = draw_llama();
  BeamSearch const beam{.width = 4, .length = {.max = 20}};
  DiverseBeamSearch const diverse{.search = {.width = 2, .n_best = 2, .length = {.max = 12}}};
  for (bool const unified : {true, false}) {
    auto params = exact_params(32, 8192);
    params.kv_unified = unified;
    auto const context = make_context(model.get(), params);
    Llama adapter(context.get());
    SlowLlama slow(model.get(), adapter.vocabulary());
    auto const some = prompts(6);
    auto const expected = decode(slow, requests<BeamSearch>(some), beam);
    check_same(decode(adapter, requests<BeamSearch>(some), beam), expected, 1e-4);
    check_same(decode(adapter, requests<BeamSearch>(some), beam, Streaming{.size = 3, .refill_below = 1}), expected,
               1e-4);
    check_same(decode(adapter, requests<DiverseBeamSearch>(some), diverse),
               decode(slow, requests<DiverseBeamSearch>(some), diverse), 1e-4);
  }
}

TEST_CASE("samples are those over contexts that read every hypothesis anew") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(16, 4096));
  Llama adapter(context.get());
  SlowLlama slow(model.get(), adapter.vocabulary());
  Sample const sample{.samples = 3, .length = {.max = 20}};
  auto const some = prompts(4);
  check_same(decode(adapter, requests<Sample>(some), sample), decode(slow, requests<Sample>(some), sample), 1e-4);
}

TEST_CASE("blockwise is greedy: by look-up, by a draft, rolled back by starting again") {
  using Search = Blockwise<>;
  for (bool const unified : {true, false}) {
    auto const model = draw_llama();
    auto const expected = own(model.get());
    auto params = exact_params(16, 4096);
    params.kv_unified = unified;
    auto const context = make_context(model.get(), params), other = make_context(model.get(), params);
    Llama adapter(context.get());
    Search const blockwise{.block = 5, .length = length};

    Speculated lookup(adapter, PromptLookup());
    CHECK(outputs(decode(lookup, requests<Search>(prompts()), blockwise)) == expected);

    Llama same(other.get());
    Speculated drafted(adapter, DraftModel(same));
    auto const results = decode(drafted, requests<Search>(prompts()), blockwise);
    CHECK(outputs(results) == expected);
    CHECK(results[0].hypotheses[0].blocks.size() * 3 <
          results[0].hypotheses[0].tokens.size() + 6);  // all guesses right

    auto const weak = draw_llama({.layers = 1, .seed = 1});
    auto const small = make_context(weak.get(), params);
    Llama draft(small.get());
    Speculated guessed(adapter, DraftModel(draft));
    CHECK(outputs(decode(guessed, requests<Search>(prompts()), blockwise)) == expected);
  }

  {  // windows that keep what has left them
    auto const model = draw_llama({.architecture = "gemma2", .window = 16});
    auto params = exact_params(16, 4096);
    params.kv_unified = false;
    auto const context = make_context(model.get(), params);
    Llama adapter(context.get());
    Speculated lookup(adapter, PromptLookup());
    CHECK(outputs(decode(lookup, requests<Search>(prompts()), Search{.block = 5, .length = length})) ==
          own(model.get()));
  }

  auto const model = draw_llama({.architecture = "mamba"});
  auto const context = make_context(model.get(), exact_params(16, 4096));
  Llama adapter(context.get());
  CHECK_THROWS_AS(decode(adapter, requests<Search>(prompts()), Search{}), std::invalid_argument);
  Restarting restarting(adapter);
  Speculated lookup(restarting, PromptLookup());
  CHECK(outputs(decode(lookup, requests<Search>(prompts()), Search{.length = length})) == own(model.get()));
}

TEST_CASE("an output scores what it scored while it was found") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(16, 4096));
  Llama adapter(context.get());
  auto const found = decode(adapter, requests<BeamSearch>(prompts(4)), BeamSearch{.width = 4, .length = {.max = 20}});
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<Request<std::monostate, ForcedScore>> again;
    for (auto const& hypothesis : found[i].hypotheses)
      again.push_back({.prompt = prompts(4)[i], .prefix = hypothesis.tokens});
    auto const scored = decode(adapter, again, ForcedScore{});
    for (std::size_t k = 0; k < scored.size(); ++k)
      CHECK_THAT(scored[k].hypotheses.at(0).log_prob, WithinAbs(found[i].hypotheses[k].log_prob, 1e-4));
  }
}

TEST_CASE("Checked finds nothing") {
  for (auto const* architecture : {"llama", "mamba", "gemma2"})
    for (bool const unified : {true, false}) {
      INFO(architecture << ", unified " << unified);
      auto const model = draw_llama({.architecture = architecture, .window = 16});
      auto params = exact_params(16, 4096);
      params.kv_unified = unified;
      auto const context = make_context(model.get(), params);
      Llama adapter(context.get());
      // ggml looks gemma2's GELU up in a table of halves: where a sum's last bit moves its index, a logit moves by 1e-3.
      Checked checked(adapter, {.every = 3, .rows = 4, .tolerance = model_tolerance(architecture)});
      auto const found = decode(checked, requests<BeamSearch>(prompts(6)),
                                BeamSearch{.width = 4, .length = {.max = 30}}, Streaming{.size = 3, .refill_below = 1});
      CHECK(outputs(found).size() == 6);
      CHECK(checked.report() == "");
    }
}
