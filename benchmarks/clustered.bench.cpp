// SPDX-License-Identifier: Apache-2.0
// ClusteredProjection and DenseProjection, alternating in one process: vocabularies of multilingual models with random
// weights, 20 sentences of 2 hypotheses (Amer et al. 2022, table 2). The clusters' tokens come from a pool with a given
// share of the vocabulary, so a batch's union is that pool.
//
// Counters:
//   dense_ms, clustered_ms   medians of a step
//   of_dense                 dense / clustered
//   active_percent           tokens in a union (of the batch, or the mean of the sentences')
//   gather_percent           share of the clustered step spent gathering and packing weights, without products
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>

#include "yardstick.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace {

namespace bench = sluice::bench;
using sluice::ClusteredOptions;
using sluice::Token;

constexpr std::ptrdiff_t sentences = 20, width = 2, lines = sentences * width;

/// Weights of one shape, kept for all cases with that shape.
struct Layer {
  Layer(std::ptrdiff_t vocabulary, std::ptrdiff_t depth)
      : size(vocabulary), d(depth), weights(static_cast<std::size_t>(size * d)), dense({weights.data(), 0, d, d}) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
    for (auto& x : weights) x = uniform(random);
    dense = sluice::DenseProjection(view());
  }
  sluice::MatrixView<float const> view() const { return {weights.data(), size, d, d}; }

  std::ptrdiff_t size, d;
  std::vector<float> weights;
  sluice::DenseProjection dense;
};

Layer& layer(std::ptrdiff_t vocabulary, std::ptrdiff_t depth) {
  static std::vector<Layer> one;  // the last one used
  if (one.empty() || one[0].size != vocabulary || one[0].d != depth) {
    one.clear();
    one.emplace_back(vocabulary, depth);
  }
  return one[0];
}

/// 400 clusters of random centroids; each has a quarter of the pool.
sluice::Clusters random_clusters(Layer const& layer, double share) {
  constexpr std::ptrdiff_t count = 400;
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  sluice::Clusters clusters{.hidden_size = layer.d, .vocabulary_size = static_cast<std::int32_t>(layer.size)};
  for (std::ptrdiff_t i = 0; i < count * layer.d; ++i) clusters.centroids.push_back(normal(random));
  std::vector<Token> pool(static_cast<std::size_t>(layer.size));
  std::iota(pool.begin(), pool.end(), 0);
  std::shuffle(pool.begin(), pool.end(), random);
  pool.resize(static_cast<std::size_t>(share * static_cast<double>(layer.size)));
  for (std::ptrdiff_t c = 0; c < count; ++c) {
    std::shuffle(pool.begin(), pool.end(), random);
    auto const first = clusters.tokens.size();
    clusters.tokens.insert(clusters.tokens.end(), pool.begin(), pool.begin() + std::ssize(pool) / 4);
    std::sort(clusters.tokens.begin() + static_cast<std::ptrdiff_t>(first), clusters.tokens.end());
    clusters.begin.push_back(std::ssize(clusters.tokens));
  }
  return clusters;
}

void clustered(benchmark::State& state) {
  auto& all = layer(state.range(0), state.range(1));
  auto const unite = state.range(3) != 0 ? ClusteredOptions::Union::batch : ClusteredOptions::Union::sentence;
  auto const clusters = random_clusters(all, static_cast<double>(state.range(2)) / 100);
  sluice::ClusteredProjection projection(all.view(), {}, clusters, {.unite = unite}, all.dense.weights());

  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> vectors;
  for (std::ptrdiff_t i = 0; i < lines; ++i)
    for (auto const x : clusters.centroid(static_cast<std::ptrdiff_t>(random() % 400)))
      vectors.push_back(x + normal(random));
  auto const hidden = sluice::hidden<float>(vectors.data(), lines, all.d);
  std::vector<sluice::Query> const queries(lines, {.best = width});
  std::vector<sluice::Group> const groups(sentences, {.lines = width});

  // Only the gather: the pool, packed once.
  std::vector<Token> active;
  {
    sluice::detail::ActiveTokens tokens;
    tokens.begin(static_cast<std::int32_t>(all.size));
    tokens.insert(clusters.tokens);
    tokens.append_to(active);
  }
  sluice::detail::packed::FloatPanels panels;
  auto const gather = [&] {
    constexpr std::size_t step = 64;
    for (std::size_t first = 0; first < active.size(); first += step) {
      panels.gather(all.view(), {}, std::span(active).subspan(first, std::min(step, active.size() - first)));
      benchmark::DoNotOptimize(panels);
    }
  };

  bench::Turns turns;
  auto const dense = turns.add([&] { benchmark::DoNotOptimize(all.dense.expand(hidden, queries, groups)); });
  auto const ours = turns.add([&] { benchmark::DoNotOptimize(projection.expand(hidden, queries, groups)); });
  auto const gathering = turns.add(gather);
  for (auto _ : state) turns.round();
  auto const& statistics = projection.statistics();
  auto const mean = static_cast<double>(statistics.active) / static_cast<double>(statistics.unions - statistics.full);
  state.counters["dense_ms"] = 1e3 * turns.seconds(dense);
  state.counters["clustered_ms"] = 1e3 * turns.seconds(ours);
  state.counters["of_dense"] = turns.ratio(dense, ours);
  state.counters["active_percent"] = 100 * mean / static_cast<double>(all.size);
  state.counters["gather_percent"] = 100 * turns.ratio(gathering, ours);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"V", "d", "pool", "batch"})->Unit(benchmark::kMillisecond);
  for (std::int64_t const batch : {1, 0})
    for (std::int64_t const share : {6, 16}) benchmark->Args({8000, 256, share, batch});
  if (!bench::all_shapes()) return;
  for (std::int64_t const vocabulary : {128000, 250000})
    for (std::int64_t const batch : {1, 0})
      for (std::int64_t const share : {6, 16}) benchmark->Args({vocabulary, 1024, share, batch});
}
BENCHMARK(clustered)->Apply(shapes);

}  // namespace
