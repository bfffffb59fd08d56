// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tests of the device's projections, over a device, or over host_cuda/ and emulated ones. The including file must
/// define no_device(), ProjectionTypes and projection_rounds.
#pragma once

#include <sluice/cuda/projection/clustered_projection.cuh>
#include <sluice/cuda/projection/dense_projection.cuh>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/device_query.hpp>
#include <support/hidden_model.hpp>
#include <support/line_reference.hpp>
#include <support/output_layer.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::test {
namespace {

using Union = cuda::ClusteredOptions::Union;

static_assert(Expander<cuda::DenseProjection<float>, cuda::Hidden<float>>);
static_assert(Expander<cuda::ClusteredProjection<__nv_bfloat16>, cuda::Hidden<__nv_bfloat16>>);
static_assert(Expander<cuda::DenseProjection<__nv_bfloat16, __nv_bfloat16>, cuda::Hidden<__nv_bfloat16>>);
static_assert(!Expander<cuda::DenseProjection<float>, cuda::Hidden<__nv_bfloat16>>);

template <class T>
T rounded(float x) {
  return static_cast<T>(x);
}

/// An output layer whose numbers are exact in T, as the device sees it: rows of d numbers, or padded.
template <class T>
struct DeviceLayer {
  DeviceLayer(std::uint64_t seed, std::ptrdiff_t vocabulary, std::ptrdiff_t depth, std::size_t per_cluster = 12)
      : layer(seed, vocabulary, depth, 1, per_cluster), stride(depth + (seed % 3 == 0 ? 3 : 0)) {
    auto const exact = [](std::vector<float>& numbers) {
      for (auto& x : numbers) x = static_cast<float>(rounded<T>(x));
    };
    exact(layer.weights);
    for (auto& clusters : layer.clusters) exact(clusters.centroids);
    std::vector<T> rows(static_cast<std::size_t>(vocabulary * stride));
    for (std::ptrdiff_t v = 0; v < vocabulary; ++v)
      for (std::ptrdiff_t k = 0; k < depth; ++k)
        rows[static_cast<std::size_t>(v * stride + k)] = rounded<T>(layer.view()[v][k]);
    weights = std::make_unique<OnDevice<T>>(rows);
  }
  /// Hidden vectors that are exact in T and clearly nearest to one centroid.
  std::vector<float> vectors(std::size_t count) {
    std::vector<float> all;
    while (all.size() < count * static_cast<std::size_t>(layer.d)) {
      auto h = layer.vectors(1);
      for (auto& x : h) x = static_cast<float>(rounded<T>(x));
      if (OutputLayer::nearest(layer.clusters[0], h)) all.insert(all.end(), h.begin(), h.end());
    }
    return all;
  }
  /// Copies them to the device; valid until the next call.
  cuda::Hidden<T> hidden(std::vector<float> const& h) {
    std::vector<T> numbers(h.size());
    std::transform(h.begin(), h.end(), numbers.begin(), rounded<T>);
    vectors_ = std::make_unique<OnDevice<T>>(numbers);
    return cuda::hidden<T>(vectors_->data(), static_cast<std::ptrdiff_t>(h.size()) / layer.d, layer.d);
  }
  MatrixView<T const> view() const { return {weights->data(), layer.size, layer.d, stride}; }

  OutputLayer layer;
  std::ptrdiff_t stride;
  std::unique_ptr<OnDevice<T>> weights, vectors_;
};

TEMPLATE_LIST_TEST_CASE("cuda dense_projection is a softmax over W h + b", "[cuda]", ProjectionTypes) {
  if (no_device()) return;
  for (std::uint64_t seed = 0; seed < 8 * projection_rounds; ++seed) {
    DeviceLayer<TestType> model(seed, seed % 4 == 0 ? 10000 + static_cast<std::ptrdiff_t>(seed) : 100,
                                1 + static_cast<std::ptrdiff_t>(seed % 19));
    auto& random = model.layer.random;
    auto const lines = 1 + below(random, 5);
    auto const h = model.vectors(lines);
    auto const with_bias = seed % 2 == 0;
    if (!with_bias) std::fill(model.layer.bias.begin(), model.layer.bias.end(), 0.0f);
    // Tiles that are too small for all lines, for all columns, or for neither.
    cuda::DenseProjection<TestType> projection(
        model.view(), with_bias ? model.layer.bias : std::vector<float>{},
        std::vector<std::size_t>{0, 1, 3 * 4096 * sizeof(float)}[below(random, 3)]);
    for (int round = 0; round < 2; ++round) {
      auto const size = static_cast<std::size_t>(model.layer.size);
      auto asked = seed % 3 == 0 && round == 1 ? Queries(random, lines, size, QueryFields{})
                                               : Queries(random, lines, size, seed % 5 == 0 && round == 1 ? 300 : 64);
      if (seed % 5 == 0 && round == 1) asked.queries[0].best = 90;
      auto const got = projection.expand(model.hidden(h), asked.queries, {});
      for (std::size_t i = 0; i < lines; ++i) {
        INFO("seed " << seed << ", line " << i);
        check_line(got[i],
                   expected_line<double>(model.layer.logits(model.layer.row(h, i), {}), Kind::logits, asked.queries[i]),
                   asked.queries[i], 2e-5);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("cuda dense_projection rounds logits of 16 bits, and nothing else", "[cuda]", ProjectionTypes) {
  if (no_device()) return;
  if constexpr (!std::is_same_v<TestType, float>) {
    for (std::uint64_t seed = 0; seed < 4 * projection_rounds; ++seed) {
      DeviceLayer<TestType> model(seed, seed % 4 == 0 ? 20000 + static_cast<std::ptrdiff_t>(seed) : 100,
                                  1 + static_cast<std::ptrdiff_t>(seed % 19));
      auto const lines = 1 + below(model.layer.random, 5);
      auto const h = model.vectors(lines);
      // Tiles of one chunk and a line, of all lines, and of everything.
      cuda::DenseProjection<TestType, TestType> projection(model.view(), model.layer.bias,
                                                           std::vector<std::size_t>{1, 5 * 8192 * 2, 0}[seed % 3]);
      auto const bias = std::exchange(model.layer.bias, std::vector<float>(model.layer.bias.size()));
      Queries asked(model.layer.random, lines, bias.size(), seed % 2 == 0 ? 64 : 100);
      auto const got = projection.expand(model.hidden(h), asked.queries, {});
      for (std::size_t i = 0; i < lines; ++i) {
        INFO("seed " << seed << ", line " << i);
        auto logits = model.layer.logits(model.layer.row(h, i), {});
        auto largest = 0.0;
        for (std::size_t v = 0; v < logits.size(); ++v) {
          logits[v] = static_cast<double>(static_cast<float>(rounded<TestType>(static_cast<float>(logits[v]))));
          largest = std::max(largest, std::abs(logits[v]));
          logits[v] += static_cast<double>(bias[v]);
        }
#ifdef SLUICE_EMULATED_DEVICE
        auto const tolerance = 2e-5;
#else  // a sum that was added in another order may be rounded to the other neighbour
        auto const tolerance = 2e-5 + largest * (std::is_same_v<TestType, __half> ? 0x1p-10 : 0x1p-7);
#endif
        check_line(got[i], expected_line<double>(logits, Kind::logits, asked.queries[i]), asked.queries[i], tolerance);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("cuda clustered_projection is a softmax over the active tokens, however it is computed",
                        "[cuda]", ProjectionTypes) {
  if (no_device()) return;
  std::set<std::string> ways;
  for (std::uint64_t seed = 1; seed <= 20 * projection_rounds; ++seed) {
    auto const unite = seed % 2 == 0 ? Union::sentence : Union::batch;
    // Depths that allow reading in place, and others.
    DeviceLayer<TestType> model(seed, 30 + static_cast<std::ptrdiff_t>(seed) * (seed % 10 == 0 ? 450 : 5),
                                seed % 5 < 3 ? 8 * (1 + static_cast<std::ptrdiff_t>(seed % 2)) : 5);
    auto& layer = model.layer;
    cuda::ClusteredOptions options{.always = {2, 5}, .unite = unite};
    options.full_above = seed % 4 == 0 ? 1.0 : 0.3 + 0.1 * static_cast<double>(seed % 5);
    options.full_below = seed % 7 == 0 ? options.full_below : 0;
    options.token_cost = seed % 9 == 0 ? 5 : 1;
    options.few_lines = seed % 3 == 0 ? 0 : 1000;
    options.matrix_lines = seed % 4 == 0 ? 17 : seed % 4 == 1 ? 1 : 9;
    options.tile_bytes = seed % 5 == 0 ? 1 : 0;
    options.step = {.mapped_answers = seed % 4 > 0, .early_starts = seed % 2 > 0};
    sluice::ClusteredOptions const reference{.always = options.always,
                                             .unite = unite == Union::batch ? sluice::ClusteredOptions::Union::batch
                                                                            : sluice::ClusteredOptions::Union::sentence,
                                             .full_above = options.full_above};
    cuda::ClusteredProjection<TestType> projection(model.view(), layer.bias, layer.clusters[0], options);
    cuda::ClusteredStatistics counted;
    for (int round = 0; round < 2; ++round) {
      std::vector<Group> groups;
      std::vector<std::int32_t> directions;
      for (auto g = 1 + below(layer.random, 5); g > 0; --g) {
        auto const lines = static_cast<std::int32_t>(below(layer.random, 5));
        groups.push_back({.lines = lines, .direction = below(layer.random, 9) == 0 ? 1 : 0});
        directions.insert(directions.end(), static_cast<std::size_t>(lines), groups.back().direction);
      }
      auto const size = static_cast<std::size_t>(layer.size);
      // Lists of a few hundred: where the step before had shorter ones, the step is answered, and counted, twice.
      auto const asked = seed % 3 == 1 && size <= 256
                             ? Queries(layer.random, directions.size(), size, QueryFields{.only = false})
                             : Queries(layer.random, directions.size(), size, 64);
      auto const h = model.vectors(directions.size());
      auto const before = projection.statistics();
      auto const got = projection.expand(model.hidden(h), asked.queries, groups);
      auto const after = projection.statistics();
      auto const reduced = after.reduced > before.reduced;
      ways.insert(!reduced ? "all" : after.gathered > before.gathered ? "gathered" : "in place");
      auto const times = after.steps - before.steps;
      CHECK((asked.queries.empty() ? times == 0 : times == 1 || times == 2));
      counted.lines += times * asked.queries.size();
      auto const check_lines = [&](std::size_t first, std::size_t count) {
        if (count == 0) return;
        auto const queries = std::span(asked.queries).subspan(first, count);
        auto const active = layer.active(h, first, queries, std::span(directions).subspan(first, count), reference);
        counted.unions += times;
        if (active) counted.active += times * active->size();
        else counted.full += times;
        for (auto i = first; i < first + count; ++i) {
          INFO("seed " << seed << ", round " << round << ", line " << i << ", active "
                       << (active ? std::ssize(*active) : -1) << " of " << layer.size);
          auto const expected =
              expected_line<double>(layer.logits(layer.row(h, i), active), Kind::logits, asked.queries[i]);
          check_line(got[i], expected, asked.queries[i], 2e-5);
          for (auto const& c : got[i].best) CHECK((!active || active->contains(c.token)));
        }
      };
      std::size_t first = 0;
      if (unite == Union::batch) check_lines(0, asked.queries.size());
      else
        for (auto const& group : groups) {
          check_lines(first, static_cast<std::size_t>(group.lines));
          first += static_cast<std::size_t>(group.lines);
        }
    }
    auto const& seen = projection.statistics();
    CHECK(seen.lines == counted.lines);
    CHECK(seen.unions == counted.unions);
    CHECK(seen.full == counted.full);
    CHECK(seen.active == counted.active);
  }
  CHECK(ways == std::set<std::string>{"all", "gathered", "in place"});
}

TEST_CASE("cuda clustered_projection says what the host's says", "[cuda]") {
  if (no_device()) return;
  for (std::uint64_t seed = 1; seed <= 24 * projection_rounds; ++seed) {
    DeviceLayer<float> model(3 * seed + 1, 400, 16);
    auto& layer = model.layer;
    auto const nearest = std::min<std::int32_t>(2, static_cast<std::int32_t>(layer.clusters[0].size()));
    sluice::ClusteredProjection host(layer.view(), layer.bias, layer.clusters[0], {.always = {2}, .nearest = nearest});
    cuda::ClusteredOptions options{.always = {2}, .nearest = nearest};
    options.full_below = 0, options.step.early_starts = seed % 3 > 0;
    cuda::ClusteredProjection<float> device(model.view(), layer.bias, layer.clusters[0], options);
    std::vector<Group> const groups{{.lines = 3, .keep = 4}, {.lines = 1}, {.lines = 2}};
    options.few_lines = seed % 4 < 2 ? 16 : 0, options.token_cost = 1;
    Queries asked(layer.random, 6, static_cast<std::size_t>(layer.size), 8);
    // Token sets: shared by a sentence's lines, and sometimes for one line only, or after the softmax.
    TokenSet few(static_cast<std::int32_t>(layer.size)), other(static_cast<std::int32_t>(layer.size + 90));
    for (Token t = 0; t < layer.size + 90; ++t) {
      if (t < layer.size && below(layer.random, 5) == 0) few.insert(t);
      if (below(layer.random, 3) == 0) other.insert(t);
    }
    for (std::size_t first = 0; seed > 2 && first < 6; first += first == 0 ? 3 : first == 3 ? 1 : 2) {
      auto const way = below(layer.random, 6);
      for (std::size_t i = first; i < (first == 0 ? 3u : first == 3 ? 4u : 6u); ++i) {
        auto& query = asked.queries[i];
        if (way <= 1) query.shortlist = &few;
        if (way == 1 && query.stage == Stage::before_softmax) query.only = &few;
        if (way == 2) query.only = &other, query.stage = Stage::before_softmax;
        if (way == 3 && i == first) query.only = &few;
        if (way == 4) query.shortlist = i == first ? &few : &other;
      }
    }
    auto h = model.vectors(6);
    if (seed % 2 == 0) h[2 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();  // one line fails; its sentence goes on
    auto const expected = host.expand(hidden(h.data(), 6, layer.d), asked.queries, groups);
    auto const got = device.expand(model.hidden(h), asked.queries, groups);
    for (std::size_t i = 0; i < 6; ++i) {
      INFO("seed " << seed << ", line " << i);
      auto const a = got[i], b = expected[i];
      REQUIRE(a.valid == b.valid);
      REQUIRE(a.best.size() == b.best.size());
      for (std::size_t j = 0; j < a.best.size(); ++j) {
        CHECK(a.best[j].token == b.best[j].token);
        CHECK_THAT(a.best[j].log_prob, WithinAbs(static_cast<double>(b.best[j].log_prob), 5e-5));
      }
    }
    CHECK(device.statistics().active == host.statistics().active);
    CHECK(device.statistics().full == host.statistics().full);
  }
}

TEMPLATE_LIST_TEST_CASE("cuda clustered_projection multiplies on matrix units from matrix_lines on", "[cuda]",
                        ProjectionTypes) {
  if (no_device()) return;
  DeviceLayer<TestType> model(7, 400, 64);
  auto const h = model.vectors(12);
  auto const answers = [&](std::ptrdiff_t lines, std::int32_t matrix_lines) {
    cuda::ClusteredOptions options{.always = {2}};
    options.full_above = 1, options.full_below = 0, options.matrix_lines = matrix_lines;
    cuda::ClusteredProjection<TestType> projection(model.view(), model.layer.bias, model.layer.clusters[0], options);
    std::vector<Query> const queries(static_cast<std::size_t>(lines), Query{.best = 1});
    auto const got = kept(projection.expand(model.hidden({h.begin(), h.begin() + 64 * lines}), queries, {}));
    CHECK(projection.statistics().reduced == 1);
    return got;
  };
  auto const same = [](auto const& some, auto const& others) {  // bit for bit
    return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                      [](auto const& a, auto const& b) { return same_line(a.view(), b.view()); });
  };
  auto const usual = cuda::ClusteredOptions{}.matrix_lines;
  CHECK(same(answers(12, usual), answers(12, 1)));
  CHECK(same(answers(8, usual), answers(8, 17)));
  if constexpr (std::is_same_v<TestType, float>) CHECK(same(answers(12, 1), answers(12, 17)));
#ifdef SLUICE_EMULATED_DEVICE  // a device's matrix units may round these sums as its other units do
  else CHECK_FALSE(same(answers(12, 1), answers(12, 17)));
#endif
}

TEST_CASE("cuda clustered_projection gathers weights once while the union stays", "[cuda]") {
  if (no_device()) return;
  DeviceLayer<float> model(4, 300, 16);
  cuda::ClusteredOptions options{.always = {2}};
  options.full_below = 0, options.few_lines = 0;
  cuda::ClusteredProjection<float> projection(model.view(), model.layer.bias, model.layer.clusters[0], options);
  std::vector<Query> queries(6, Query{.best = 1});
  auto const h = model.vectors(6);
  for (int i = 0; i < 3; ++i) projection.expand(model.hidden(h), queries, {});
  CHECK(projection.statistics().reduced == 3);
  CHECK(projection.statistics().gathered == 1);
  std::vector<Token> const probes{299};
  queries[3].probes = probes;  // another union of tokens
  projection.expand(model.hidden(h), queries, {});
  CHECK(projection.statistics().gathered == 2);
  queries[3].probes = {};  // and the first one again
  auto const workspace = projection.workspace();
  auto const again = kept(projection.expand(model.hidden(h), queries, {}));
  CHECK(projection.statistics().gathered == 3);
  CHECK(projection.workspace() == workspace);
  cuda::ClusteredProjection<float> other(model.view(), model.layer.bias, model.layer.clusters[0], options);
  auto const expected = other.expand(model.hidden(h), queries, {});
  for (std::size_t i = 0; i < 6; ++i) CHECK(same_line(again[i].view(), expected[i]));
}

/// Vectors that are copied to the device, as if they had been computed there.
class DeviceHidden : public HiddenModel<> {
 public:
  using HiddenModel<>::HiddenModel;
  cuda::Hidden<float> step(std::span<Row const> rows) {
    auto const host = HiddenModel<>::step(rows);
    auto const size = static_cast<std::size_t>(host.rows * host.columns);
    memory_ = std::make_unique<OnDevice<float>>(std::vector<float>(host.data, host.data + size));
    return cuda::hidden<float>(memory_->data(), host.rows, host.columns);
  }

 private:
  std::unique_ptr<OnDevice<float>> memory_;
};

TEST_CASE("a beam search over hidden vectors on a device finds what one over the host's finds", "[cuda]") {
  if (no_device()) return;
  DeviceLayer<float> output(4, 120, 8);
  auto const& bias = output.layer.bias;
  auto const& clusters = output.layer.clusters[0];
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5, 6};
  BeamSearch const search{.width = 3, .length = {.max = 6}};
  auto const same = [&](std::vector<Result> const& results, std::vector<Result> const& expected) {
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(!results[i].hypotheses.empty());
      CHECK(results[i].hypotheses[0].tokens == expected[i].hypotheses[0].tokens);
      CHECK_THAT(results[i].hypotheses[0].score, WithinAbs(expected[i].hypotheses[0].score, 1e-4));
    }
  };
  HiddenModel<> reference(120, 8);
  DeviceHidden model(120, 8);
  auto const weights = output.view();
  // [projection]
  auto const results =
      decode(model, sources, search, Streaming{.size = 4}, cuda::DenseProjection<float>(weights, bias));
  cuda::ClusteredProjection<float> reduced(weights, bias, clusters, {.always = {eos}});
  auto const faster = decode(model, sources, search, Streaming{.size = 4}, std::move(reduced));
  // [/projection]
  same(results, decode(reference, sources, search, Streaming{.size = 4}, output.layer.dense()));
  same(faster, decode(reference, sources, search, Streaming{.size = 4}, output.layer.clustered({.always = {eos}})));
}

TEST_CASE("cuda projections refuse what does not fit", "[cuda]") {
  if (no_device()) return;
  DeviceLayer<float> model(1, 40, 8);
  auto const& clusters = model.layer.clusters[0];
  std::vector<float> const short_bias(39);
  CHECK_THROWS_AS(cuda::DenseProjection<float>(model.view(), short_bias), std::invalid_argument);
  CHECK_THROWS_AS(cuda::ClusteredProjection<float>(model.view(), short_bias, clusters), std::invalid_argument);
  auto const refuses = [&](cuda::ClusteredOptions options) {
    CHECK_THROWS_AS(cuda::ClusteredProjection<float>(model.view(), {}, clusters, std::move(options)),
                    std::invalid_argument);
  };
  refuses({.always = {40}});
  refuses({.nearest = 0});
  refuses({.nearest = 1000});
  refuses({.full_above = 1.5});
  refuses({.token_cost = -1});
  refuses({.few_lines = -1});
  refuses({.matrix_lines = 0});
  auto wrong = clusters;
  wrong.vocabulary_size = 41;
  CHECK_THROWS_AS(cuda::ClusteredProjection<float>(model.view(), {}, wrong), std::invalid_argument);

  cuda::ClusteredProjection<float> projection(model.view(), {}, clusters);
  cuda::DenseProjection<float> dense(model.view());
  OnDevice<float> const h(std::vector<float>(40));
  std::vector<Query> const queries(1);
  CHECK_THROWS_AS(projection.expand(cuda::hidden(h.data(), 1, 7), queries, {}), std::invalid_argument);
  CHECK_THROWS_AS(dense.expand(cuda::hidden(h.data(), 1, 7), queries, {}), std::invalid_argument);
  cuda::LineTask<float> task;
  CHECK_THROWS_AS(projection.enqueue(task, cuda::hidden(h.data(), 1, 8), 0, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(projection.enqueue(task, cuda::hidden(h.data(), 1, 7), 1, nullptr), std::invalid_argument);
  CHECK(projection.expand(cuda::hidden(h.data(), 0, 8), {}, {}).size() == 0);
  CHECK(dense.expand(cuda::hidden(h.data(), 0, 8), {}, {}).size() == 0);
}

}  // namespace
}  // namespace sluice::test
