// SPDX-License-Identifier: Apache-2.0
// A real model under all the threads that there are: writers, a worker, an encoder beside it.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <transformer/transformer.hpp>

#include <cstddef>
#include <filesystem>
#include <future>
#include <random>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using sluice::example::Transformer;
using sluice::example::Weights;

TEST_CASE("the Transformer encodes beside its steps, for several writers", "[transformer]") {
  auto const weights =
      Weights::load(std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/apps/translate/model/model.safetensors");
  DenseProjection const projection(weights->projection(), weights->bias);
  std::mt19937 random(1);
  std::vector<std::vector<Token>> sources(24);
  for (auto& source : sources)
    for (auto n = 1 + random() % 8; n > 0; --n) source.push_back(static_cast<Token>(3 + random() % 7997));
  BeamSearch const search{.width = 2, .length = {.max = 8}};

  Transformer alone(weights);
  auto const expected = decode(alone, sources, search, Batched{5}, projection);
  Transformer model(weights);
  Server server(model, search, Streaming{.size = 5, .refill_below = 1},
                {.queue = 6, .intake = {.window = 4, .encode_ahead = 6}}, projection);
  std::vector<std::future<Result>> results(sources.size());
  {
    std::vector<std::jthread> writers;
    for (std::size_t w = 0; w < 4; ++w)
      writers.emplace_back([&, w] {
        for (auto i = w; i < sources.size(); i += 4) results[i] = server.submit({.source = sources[i]});
      });
  }
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(results[i].get(), expected[i]));
}
