// SPDX-License-Identifier: Apache-2.0
// Searches over graphs of ONNX Runtime against our own Transformer, with the same weights, and against numpy in float64.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/onnxruntime.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/onnxruntime_models.hpp>
#include <transformer/transformer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;
constexpr double tolerance = 1e-3;  // of a hypothesis' score: products round by the batch

void check_same(std::vector<Result> const& results, std::vector<Result> const& expected) {
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("sentence " << i << ": " << results[i].message);
    REQUIRE(results[i].ok());
    REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
    for (std::size_t k = 0; k < results[i].hypotheses.size(); ++k) {
      CHECK(results[i].hypotheses[k].tokens == expected[i].hypotheses[k].tokens);
      CHECK_THAT(results[i].hypotheses[k].score, WithinAbs(expected[i].hypotheses[k].score, tolerance));
    }
  }
}

/// How many best outputs are the same.
int same_best(std::vector<Result> const& results, std::vector<Result> const& expected) {
  int same = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(results[i].message);
    REQUIRE(results[i].ok());
    same += results[i].hypotheses[0].tokens == expected[i].hypotheses[0].tokens;
  }
  return same;
}

BeamSearch beam(std::int32_t width) {
  auto search = presets::ctranslate2(width);
  search.n_best = width;
  return search;
}

/// Our own Transformer over the shipped weights.
struct Own {
  std::shared_ptr<example::Weights const> weights =
      example::Weights::load(SLUICE_SOURCE_DIR "/examples/apps/translate/model/model.safetensors");
  example::Transformer model{weights};
  DenseProjection projection{weights->projection(), weights->bias};

  template <class S>
  std::vector<Result> decode(std::vector<Tokens> const& sources, S const& search) {
    return sluice::decode(model, sources, search, Batched{.size = 32}, projection);
  }
};

template <class M, class S, class... E>
void check_schedules(M& model, std::vector<Tokens> const& sources, S const& search, std::vector<Result> const& expected,
                     E const&... expander) {
  for (auto const size : std::vector<std::size_t>{1, 7, 64})
    check_same(decode(model, sources, search, Batched{.size = size}, expander...), expected);
  // Sentences of other lengths join those that run.
  check_same(decode(model, sources, search, Streaming{.size = 8, .refill_below = 1}, expander...), expected);
  CHECK(model.rows() == 0);
}

std::vector<Request<std::monostate, Greedy>> prompts(std::string const& model) {
  std::vector<Request<std::monostate, Greedy>> requests;
  for (auto const& one : onnx_expected(model)) requests.push_back({.prompt = one.at("prompt").get<Tokens>()});
  return requests;
}

/// Greedy outputs and their log-probabilities are numpy's, however they are batched.
template <class M, class... E>
void check_numpy(M& model, std::string const& name, double difference, E const&... expander) {
  auto const expected = onnx_expected(name);
  auto const requests = prompts(name);
  auto const check = [&](std::vector<Result> const& results) {
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO(name << ", prompt " << i << ": " << results[i].message);
      REQUIRE(results[i].ok());
      auto const& best = results[i].hypotheses[0];
      CHECK(best.tokens == expected[i].at("tokens").get<Tokens>());
      auto const log_probs = expected[i].at("log_probs").get<std::vector<double>>();
      REQUIRE(best.log_probs.size() == log_probs.size());
      for (std::size_t t = 0; t < log_probs.size(); ++t)
        CHECK_THAT(static_cast<double>(best.log_probs[t]), WithinAbs(log_probs[t], difference));
    }
  };
  Greedy const greedy{.length = {.max = 20}};
  for (auto const size : std::vector<std::size_t>{1, 5, 64})
    check(decode(model, requests, greedy, Batched{.size = size}, expander...));
  check(decode(model, requests, greedy, Streaming{.size = 4, .refill_below = 1}, expander...));
  CHECK(model.rows() == 0);
}

}  // namespace

TEST_CASE("n-best lists are those of our own Transformer, in every batch and schedule") {
  if (no_onnx()) return;
  Own own;
  auto const sources = onnx_sources(), ended = with_eos(sources);
  auto const expected = own.decode(sources, beam(5));
  OnnxEncoderDecoder merged(onnx_transformer(true), onnx_transformer_options());
  OnnxEncoderDecoder apart(onnx_transformer(false), onnx_transformer_options());
  check_schedules(merged, ended, beam(5), expected);
  check_same(decode(apart, ended, beam(5), Batched{.size = 7}), expected);
  check_same(decode(apart, ended, beam(5), Streaming{.size = 8, .refill_below = 1}), expected);
}

TEST_CASE("hidden vectors of a cut graph, with the layer that was cut off, give the same") {
  if (no_onnx()) return;
  Own own;
  auto const sources = onnx_sources(), ended = with_eos(sources);
  auto graphs = onnx_transformer();
  graphs.decoder = onnx_graph("transformer/hidden.onnx");
  auto const layer = onnx_output(onnx_graph("transformer/layer.onnx"));
  OnnxEncoderDecoder<Hidden<float>> model(graphs, onnx_transformer_options());
  DenseProjection const projection(layer.weights(), layer.bias);
  auto const expected = own.decode(sources, beam(4));
  check_same(decode(model, ended, beam(4), Batched{.size = 7}, projection), expected);
  check_same(decode(model, ended, beam(4), Streaming{.size = 8, .refill_below = 1}, projection), expected);
  CHECK(model.rows() == 0);
}

TEST_CASE("greedy, a beam whose width shrinks, and guesses") {
  if (no_onnx()) return;
  Own own;
  auto sources = onnx_sources();
  sources.resize(24);
  auto const ended = with_eos(sources);
  auto options = onnx_transformer_options();
  options.abilities = Abilities{.blocks = true, .roll_back = true};  // these decoders have a causal mask
  OnnxEncoderDecoder model(onnx_transformer(), options);
  OnnxEncoderDecoder apart(onnx_transformer(false), options);
  Greedy const greedy{.length = {.max = 100}};
  auto const expected = own.decode(sources, greedy);
  check_schedules(model, ended, greedy, expected);
  auto search = presets::marian(4, 1);
  search.n_best = 4, search.length = {.min = 1, .max = 60};
  check_schedules(model, ended, search, own.decode(sources, search));
  OnnxEncoderDecoder unmasked(onnx_transformer(true, "transformer_unmasked"),
                              options);  // sources of one length at a time
  check_same(decode(unmasked, ended, search, Streaming{.size = 9, .refill_below = 1}), own.decode(sources, search));
  Speculated guessing(model, PromptLookup()), guessing_apart(apart, PromptLookup());
  Blockwise const blockwise{.block = 4, .length = {.max = 100}};
  check_same(decode(guessing, ended, blockwise, Batched{.size = 6}), expected);
  check_same(decode(guessing_apart, ended, blockwise, Streaming{.size = 3, .refill_below = 1}), expected);
}

TEST_CASE("a decoder without an encoder and a GRU are numpy's") {
  if (no_onnx()) return;
  OnnxDecoder tiny({.decoder = onnx_graph("tiny/model.onnx")}, onnx_drawn_options());
  check_numpy(tiny, "tiny", 1e-4);
  OnnxDecoder keep({.decoder = onnx_graph("tiny_keep/model.onnx")}, onnx_drawn_options());
  check_numpy(keep, "tiny", 1e-4);
  OnnxDecoder gru({.decoder = onnx_graph("gru/model.onnx")}, onnx_drawn_options());
  check_numpy(gru, "gru", 1e-4);

  // One by one, and of one length; without the product.
  auto options = onnx_drawn_options();
  options.abilities = Abilities{};
  OnnxDecoder plain({.decoder = onnx_graph("tiny/model.onnx")}, options);
  check_numpy(plain, "tiny", 1e-4);
  options.size = 50;
  OnnxDecoder<Hidden<float>> hidden({.decoder = onnx_graph("gru/hidden.onnx")}, options);
  auto const layer = onnx_output(onnx_graph("gru/layer.onnx"));
  check_numpy(hidden, "gru", 1e-4, DenseProjection(layer.weights(), layer.bias));
}

TEST_CASE("a beam's log-probabilities are those of its outputs, fed as one block") {
  if (no_onnx()) return;
  for (auto const* const name : {"tiny", "gru"}) {
    INFO(name);
    OnnxDecoder model({.decoder = onnx_graph(std::string(name) + "/model.onnx")}, onnx_drawn_options());
    std::vector<Request<std::monostate, BeamSearch>> requests;
    for (auto const& one : onnx_expected(name)) requests.push_back({.prompt = one.at("prompt").get<Tokens>()});
    BeamSearch const search{.width = 6, .n_best = 6, .length = {.max = 16}};
    auto const alone = decode(model, requests, search, Batched{.size = 1});
    check_same(decode(model, requests, search, Batched{.size = 6}), alone);
    check_same(decode(model, requests, search, Streaming{.size = 4, .refill_below = 1}), alone);
    std::vector<Request<std::monostate, ForcedScore>> forced;
    std::vector<double> sums;
    for (std::size_t i = 0; i < alone.size(); ++i)
      for (auto const& hypothesis : alone[i].hypotheses) {
        forced.push_back({.prompt = requests[i].prompt, .prefix = hypothesis.tokens});
        sums.push_back(hypothesis.log_prob);
      }
    auto const scores = decode(model, forced, ForcedScore{}, Batched{.size = 9});
    for (std::size_t i = 0; i < scores.size(); ++i) {
      REQUIRE(scores[i].ok());
      CHECK_THAT(scores[i].hypotheses[0].log_prob, WithinAbs(sums[i], tolerance));
    }
  }
}

TEST_CASE("the contract of slots holds") {
  if (no_onnx()) return;
  CheckOptions const often{.every = 2, .rows = 2, .tolerance = 1e-3};
  auto ended = with_eos(onnx_sources());
  ended.resize(5);
  auto options = onnx_transformer_options();
  options.abilities = Abilities{.blocks = true, .roll_back = true};
  for (auto const merged : {true, false}) {
    OnnxEncoderDecoder model(onnx_transformer(merged), options);
    Checked checked(model, often);
    auto search = beam(3);
    search.length.max = 12;
    for (auto const& result : decode(checked, ended, search, Streaming{.size = 3, .refill_below = 1}))
      CHECK(result.ok());
    CHECK(checked.violations().empty());
  }
  for (auto const* const name : {"tiny", "tiny_keep", "gru"}) {
    OnnxDecoder model({.decoder = onnx_graph(std::string(name) + "/model.onnx")}, onnx_drawn_options());
    Checked checked(model, often);
    std::vector<Request<std::monostate, BeamSearch>> requests;
    for (auto const& one : onnx_expected(name)) requests.push_back({.prompt = one.at("prompt").get<Tokens>()});
    BeamSearch const search{.width = 3, .length = {.max = 8}};
    for (auto const& result : decode(checked, requests, search, Streaming{.size = 3, .refill_below = 1})) {
      INFO(result.message);
      CHECK(result.ok());
    }
    CHECK(checked.violations().empty());
  }
}

TEST_CASE("graphs of halves and of int8 find nearly the same") {
  if (no_onnx()) return;
  Own own;
  auto const sources = onnx_sources(), ended = with_eos(sources);
  auto const expected = own.decode(sources, beam(4));
  OnnxEncoderDecoder half(onnx_transformer(true, "transformer_float16"), onnx_transformer_options());
  CHECK(same_best(decode(half, ended, beam(4), Batched{.size = 16}), expected) >= 58);  // of 60
  CHECK(same_best(decode(half, ended, beam(4), Streaming{.size = 8, .refill_below = 1}), expected) >= 58);
  OnnxEncoderDecoder small(onnx_transformer(true, "transformer_int8"), onnx_transformer_options());
  CHECK(same_best(decode(small, ended, beam(4), Batched{.size = 16}), expected) >= 45);
  OnnxDecoder tiny({.decoder = onnx_graph("tiny_float16/model.onnx")}, onnx_drawn_options());
  OnnxDecoder single({.decoder = onnx_graph("tiny/model.onnx")}, onnx_drawn_options());
  Greedy const greedy{.length = {.max = 20}};
  auto const requests = prompts("tiny");
  CHECK(same_best(decode(tiny, requests, greedy, Batched{.size = 5}), decode(single, requests, greedy)) >=
        12);  // of 14
}
