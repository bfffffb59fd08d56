// SPDX-License-Identifier: Apache-2.0
// The 2,000 development sentences against what an independent implementation (PyTorch, and fairseq's beam search over it)
// decoded with the same float32 weights; and the same again for every batch size, order and precision.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <transformer/transformer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Json = nlohmann::json;
using Tokens = std::vector<Token>;
std::filesystem::path const folder = std::filesystem::path(SLUICE_SHARED_DIR) / "model";

bool missing() {
  if (std::filesystem::exists(folder / "reference.json")) return false;
  std::cout << "SKIPPED: " << folder << " is missing\n";
  return true;
}

Json const& reference() {
  static Json const file = Json::parse(std::ifstream(folder / "reference.json"));
  return file;
}

// All of them where the compiler may use the processor; without, the products take ten times as long.
#ifdef __AVX2__
constexpr std::size_t sentences = 2000;
#else
constexpr std::size_t sentences = 200;
#endif

std::vector<Tokens> sources() {
  std::vector<Tokens> all;
  for (auto const& sentence : reference().at("dev"))
    if (all.size() < sentences) all.push_back(sentence.at("source").get<Tokens>());
  return all;
}

struct Loaded {
  std::shared_ptr<example::Weights const> weights;
  DenseProjection projection;
  explicit Loaded(std::filesystem::path const& file)
      : weights(example::Weights::load(file)), projection(weights->projection(), weights->bias) {}
};

template <class S>
std::vector<Result> decode_all(Loaded const& loaded, std::vector<Tokens> const& inputs, S const& search,
                               std::size_t batch) {
  example::Transformer model(loaded.weights);
  return decode(model, inputs, search, Batched{.size = batch}, loaded.projection);
}

BeamSearch const beam{.width = 5, .n_best = 5, .length = {.min = 1, .max = 200}};
Greedy const greedy{.length = {.max = 160}, .scores = false};

Tokens without_eos(Tokens tokens) {
  if (!tokens.empty() && tokens.back() == 2) tokens.pop_back();
  return tokens;
}

/// How many sentences have the expected best tokens; prints the others.
std::size_t agreeing(std::vector<Result> const& results, char const* what) {
  auto const& expected = reference().at("dev");
  auto const is_beam = std::string(what).find("beam") != std::string::npos;
  std::size_t same = 0;
  std::cout << what << ", differing:";
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i].ok());
    auto const found = without_eos(results[i].hypotheses.at(0).tokens);
    auto const wanted = is_beam ? without_eos(expected[i].at("beam5").at(0).at("tokens").get<Tokens>())
                                : expected[i].at("greedy").get<Tokens>();
    if (found == wanted) ++same;
    else std::cout << ' ' << i;
  }
  std::cout << "\n" << what << ": " << same << " of " << results.size() << " sentences have the reference's tokens\n";
  return same;
}

/// The largest difference from what the reference says of three sentences, by another implementation.
struct Difference {
  double hidden = 0, log_prob = 0;
  int sentences = 0, tokens_differ = 0;
};

Difference compare(std::filesystem::path const& weights) {
  example::Transformer model(example::Weights::load(weights));
  auto const& w = model.weights();
  PackedMatrix const projection(w.projection(), w.bias);
  Difference result;
  for (auto const& check : reference().at("checks")) {
    auto source = reference().at("dev")[check["sentence"].get<std::size_t>()]["source"].get<std::vector<Token>>();
    if (source.back() == 2) source.pop_back();  // the model adds eos itself
    std::vector<Token> const* const sources[] = {&source};
    Slot const slots[] = {0};
    model.start(sources, slots);

    auto const target = check["target"].get<std::vector<Token>>();
    auto const lines = static_cast<std::int32_t>(target.size());
    Row const rows[] = {{0, 0, 0, target, lines}};
    auto const answer = model.step(rows);
    std::vector<float> logits(target.size() * 8000);
    projection.multiply(answer, {logits.data(), lines, 8000, 8000});
    for (std::size_t t = 0; t < target.size(); ++t) {
      auto const vector = answer[static_cast<std::ptrdiff_t>(t)];
      for (std::size_t i = 0; i < check["hidden"][t].size(); ++i)
        result.hidden = std::max(result.hidden, std::abs(vector[i] - check["hidden"][t][i].get<double>()));
      auto const line = std::span(logits).subspan(t * 8000, 8000);
      double sum = 0;
      for (auto const logit : line) sum += std::exp(static_cast<double>(logit));
      auto const best = std::ranges::max_element(line) - line.begin();
      result.tokens_differ += best != check["top5"][t][0][0].get<std::ptrdiff_t>();
      for (auto const& entry : check["top5"][t])
        result.log_prob = std::max(
            result.log_prob, std::abs(line[entry[0].get<std::size_t>()] - std::log(sum) - entry[1].get<double>()));
    }
    ++result.sentences;
  }
  return result;
}

}  // namespace

TEST_CASE("hidden vectors and log-probabilities are those of the reference", "[dev_set]") {
  if (missing()) return;
  auto const same = compare(folder / "model.safetensors");
  CHECK(same.sentences == 3);
  CHECK(same.hidden < 1e-4);
  CHECK(same.log_prob < 1e-4);
  CHECK(same.tokens_differ == 0);

  // The model of the repository, rounded to halves.
  auto const half = compare(SLUICE_SOURCE_DIR "/examples/apps/translate/model/model.safetensors");
  std::cout << "float: hidden " << same.hidden << ", log_prob " << same.log_prob << "; half: hidden " << half.hidden
            << ", log_prob " << half.log_prob << "\n";
  CHECK(half.hidden < 0.02);
  CHECK(half.log_prob < 0.02);
  CHECK(half.tokens_differ == 0);
}

TEST_CASE("the development sentences come out as the reference says", "[dev_set]") {
  if (missing()) return;
  Loaded const loaded(folder / "model.safetensors");
  auto const inputs = sources();
  CHECK(agreeing(decode_all(loaded, inputs, greedy, 64), "greedy") * 1000 >= 995 * sentences);
  auto const results = decode_all(loaded, inputs, beam, 64);
  CHECK(agreeing(results, "beam 5") * 100 >= 99 * sentences);
  std::size_t scores = 0, hypotheses = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& expected = reference().at("dev")[i].at("beam5");
    for (std::size_t h = 0; h < std::min(expected.size(), results[i].hypotheses.size()); ++h, ++hypotheses)
      if (results[i].hypotheses[h].tokens == expected[h].at("tokens").get<Tokens>())
        scores += std::abs(results[i].hypotheses[h].score - expected[h].at("score").get<double>()) < 1e-3;
  }
  std::cout << "beam 5, n-best: " << scores << " of " << hypotheses
            << " hypotheses have the reference's tokens and score\n";
  CHECK(static_cast<double>(scores) >= 0.98 * static_cast<double>(hypotheses));
}

TEST_CASE("half precision changes few sentences", "[dev_set]") {
  if (missing()) return;
  Loaded const loaded(SLUICE_SOURCE_DIR "/examples/apps/translate/model/model.safetensors");
  auto const inputs = sources();
  CHECK(agreeing(decode_all(loaded, inputs, greedy, 64), "half, greedy") * 100 >= 95 * sentences);
}

TEST_CASE("neither batch size nor order changes a bit of a result", "[dev_set]") {
  if (missing()) return;
  Loaded const loaded(folder / "model.safetensors");
  auto inputs = sources();
  inputs.resize(sentences / 10);
  auto const expected = decode_all(loaded, inputs, beam, 64);
  for (std::size_t const batch : {1u, 7u, 200u}) {
    auto const found = decode_all(loaded, inputs, beam, batch);
    for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(identical(found[i], expected[i]));
  }
  auto reversed = inputs;
  std::ranges::reverse(reversed);
  auto const found = decode_all(loaded, reversed, beam, 32);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto other = found[inputs.size() - 1 - i];
    CHECK(identical(other, expected[i]));
  }
}

TEST_CASE("refilling at once takes half the steps of batches, in full batches", "[dev_set]") {
  if (missing()) return;
  Loaded const loaded(folder / "model.safetensors");
  auto const inputs = sources();
  auto const size = sentences == 2000 ? std::size_t{64} : std::size_t{16};
  auto const decoded = [&](auto const& schedule, double& full) {
    example::Transformer model(loaded.weights);
    Decoder decoder(model, greedy, schedule, loaded.projection, {}, {.encode_ahead = 64, .encoder_thread = false});
    for (auto const& input : inputs) decoder.submit({.source = input});
    std::uint64_t rows = 0, steps = 0;
    while (decoder.step())
      if (decoder.waiting() > 0) rows = decoder.statistics().rows, steps = decoder.statistics().steps;
    full = static_cast<double>(rows) / static_cast<double>(steps * size);
    return decoder.statistics();
  };
  double batched_full = 0, streaming_full = 0;
  auto const batched = decoded(Batched{.size = size}, batched_full);
  auto const streaming =
      decoded(Streaming{.size = size, .refill_below = 1, .order = Streaming::Order::oldest_first}, streaming_full);
  std::cout << "greedy, size " << size << ": " << batched.steps << " steps batched (" << 100 * batched_full
            << " % full), " << streaming.steps << " steps streaming (" << 100 * streaming_full << " % full)\n";
  CHECK(streaming.rows == batched.rows);
  CHECK(streaming.encoder_calls == batched.encoder_calls);
  CHECK(streaming_full >= 0.95);
  if (sentences == 2000) CHECK(2 * streaming.steps <= batched.steps);
  else CHECK(streaming.steps < batched.steps);
}
