// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blockwise decoding against greedy decoding, with a model that does not fit into the cache: 6 decoder layers of d
/// 1024, vocabulary 32000, random weights. The probability that a guess is right gives blocks of 2.0 tokens on average
/// at k = 4, and is the same at other k. Exact: both must give the same output, which is checked.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>

#include "cpu_clock.hpp"
#include "scripted.hpp"
#include "yardstick.hpp"
#include <transformer/transformer.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::example;
using sluice::bench::median, sluice::bench::seconds;

constexpr std::int32_t tokens = 48;

/// Uniform numbers, small enough for a deep sum to stay finite.
class Numbers {
 public:
  std::vector<float> operator()(std::ptrdiff_t count, float scale) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (auto& x : numbers) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      x = (static_cast<float>(state_ >> 40) * 0x1p-23f - 1) * scale;
    }
    return numbers;
  }
  PackedMatrix linear(std::ptrdiff_t out, std::ptrdiff_t in) {
    auto const weights = (*this)(out * in, 1.7f / std::sqrt(static_cast<float>(in)));
    return PackedMatrix({weights.data(), out, in, in}, (*this)(out, 0.1f), precision);
  }

  Precision precision = Precision::float32;

 private:
  std::uint64_t state_ = 1;
};

struct Large {
  std::shared_ptr<Weights const> weights;
  std::unique_ptr<DenseProjection> projection;
  double bytes = 0;  // read by a step

  explicit Large(Precision precision) {
    auto w = std::make_shared<Weights>();
    Numbers numbers;
    numbers.precision = precision;
    constexpr std::ptrdiff_t d = 1024, ff = 4096, size = 32000, layers = 6;
    w->d = d, w->ff = ff, w->heads = 16;
    w->vocabulary = {static_cast<std::int32_t>(size), 1, {2}, {0, 1, 2}};  // no end: all outputs have the same length
    w->embedding = numbers(size * d, 1 / std::sqrt(static_cast<float>(d)));
    w->bias = numbers(size, 0.1f);
    Norm const norm{std::vector<float>(d, 1.0f), std::vector<float>(d, 0.0f)};
    auto const fill = [&](Layer& layer) {
      layer.n1 = layer.nf = norm;
      layer.qkv = numbers.linear(3 * d, d), layer.o = numbers.linear(d, d);
      layer.fi = numbers.linear(ff, d), layer.fo = numbers.linear(d, ff);
    };
    fill(w->encoder.emplace_back());
    w->decoder.resize(layers);
    for (auto& layer : w->decoder) {
      fill(layer);
      layer.n2 = norm, layer.cq = numbers.linear(d, d), layer.co = numbers.linear(d, d);
    }
    w->source = numbers.linear(layers * 2 * d, d);
    w->en = w->dn = norm;
    bytes = (precision == Precision::float32 ? 4.0 : 2.0) *
            static_cast<double>(layers * (6 * d * d + 2 * d * ff) + size * d);
    projection = std::make_unique<DenseProjection>(w->projection(), w->bias, precision);
    weights = std::move(w);
  }
};

Large const& large(Precision precision) {
  static std::map<Precision, Large> models;
  return models.try_emplace(precision, precision).first->second;
}

/// How often the shipped model's heads are right: [place][rank], measured by blockwise_study --learn.
std::vector<std::vector<double>> const head_accuracy{{0.600, 0.094, 0.040, 0.025}, {0.398, 0.099, 0.046, 0.033},
                                                     {0.268, 0.098, 0.049, 0.031}, {0.206, 0.084, 0.043, 0.028},
                                                     {0.206, 0.084, 0.043, 0.028}, {0.206, 0.084, 0.043, 0.028}};

/// `nodes` > 0: guesses as accurate as the shipped heads', as a tree of so many nodes, or (`branches` 1) as a chain.
void large_model(benchmark::State& state, Precision precision, std::size_t sentences, std::size_t batch,
                 std::int32_t block, std::int32_t branches, std::int32_t nodes) {
  sluice::bench::one_thread();
  auto const& all = large(precision);
  Transformer model(all.weights, {.length = 64});
  std::vector<std::vector<Token>> sources;
  for (std::size_t i = 0; i < sentences; ++i) sources.emplace_back(12 + i % 5, static_cast<Token>(100 + i));
  LengthLimits const length{.max = tokens};
  auto const run = [&](auto& who, auto const& search) {
    return decode(who, sources, search, Batched{.size = batch}, DenseProjection(*all.projection));
  };
  std::vector<Result> expected, found;
  std::vector<std::vector<Token>> outputs(sentences);
  expected = run(model, Greedy{.length = length, .scores = false});
  for (std::size_t i = 0; i < sentences; ++i) outputs[i] = expected[i].hypotheses.at(0).tokens;
  ::bench::Scripted scripted(model, outputs, ::bench::right_for(2.0, 4));
  if (nodes > 0) scripted.branch(TreeShape::learn(head_accuracy, nodes, branches), head_accuracy);
  Blockwise<> const search{.block = block, .length = length, .branches = branches, .nodes = nodes};
  std::vector<double> greedy, blockwise;
  double calls = 0, kept = 0, rounds = 0;
  auto const steps = static_cast<double>(tokens) * static_cast<double>(sentences) / static_cast<double>(batch);
  for (auto _ : state) {
    greedy.push_back(seconds([&] { expected = run(model, Greedy{.length = length, .scores = false}); }));
    scripted.calls = 0;
    blockwise.push_back(seconds([&] { found = run(scripted, search); }));
    calls = static_cast<double>(scripted.calls);
  }
  for (std::size_t i = 0; i < sentences; ++i) {
    auto const& h = found[i].hypotheses.at(0);
    if (h.tokens != outputs[i]) state.SkipWithError("blocks gave another output");
    kept += static_cast<double>(h.tokens.size()), rounds += static_cast<double>(h.blocks.size());
  }
  state.counters["mean_block"] = kept / rounds;
  state.counters["calls"] = calls;
  state.counters["greedy_ms"] = 1e3 * median(greedy) / steps;
  state.counters["greedy_of_reading"] =
      median(greedy) / steps / sluice::bench::read_seconds(static_cast<std::size_t>(all.bytes));
  state.counters["call_ms"] = 1e3 * median(blockwise) / calls;
  state.counters["times_greedy"] = median(greedy) / median(blockwise);
}

void blocks_large_model(benchmark::State& state) {
  auto const batch = static_cast<std::size_t>(state.range(0));
  large_model(state, Precision::float32, batch, batch, static_cast<std::int32_t>(state.range(1)), 1, 0);
}

/// A chain against trees of equally accurate guesses, four sentences one by one, weights in bfloat16.
void trees_large_model(benchmark::State& state) {
  large_model(state, Precision::bfloat16, 4, 1, static_cast<std::int32_t>(state.range(0)),
              static_cast<std::int32_t>(state.range(1)), static_cast<std::int32_t>(state.range(2)));
}

BENCHMARK(trees_large_model)
    ->ArgNames({"k", "branches", "nodes"})
    ->Args({2, 1, 1})
    ->Args({3, 1, 2})
    ->Args({4, 1, 3})
    ->Args({6, 1, 5})
    ->Args({4, 8, 4})
    ->Args({6, 32, 8})
    ->Args({6, 32, 16})
    ->Args({6, 32, 32})
    ->Unit(benchmark::kMillisecond);

BENCHMARK(blocks_large_model)
    ->ArgNames({"batch", "k"})
    ->Args({1, 2})
    ->Args({1, 4})
    ->Args({1, 8})
    ->Args({8, 4})
    ->Unit(benchmark::kMillisecond);

}  // namespace
