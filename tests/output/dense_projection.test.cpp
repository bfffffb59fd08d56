// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/line_reference.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Expander<DenseProjection, Hidden<float>>);
static_assert(!Expander<DenseProjection, Scores<float>>);

std::vector<float> random_numbers(std::mt19937_64& random, std::ptrdiff_t count, double deviation = 1) {
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (auto& x : result) x = static_cast<float>(normal(random));
  return result;
}

struct Layer {
  Layer(std::uint64_t seed, std::ptrdiff_t vocabulary, std::ptrdiff_t depth, bool biased = true)
      : random(seed), size(vocabulary), d(depth), weights(random_numbers(random, size * d, 0.3)) {
    if (biased) bias = random_numbers(random, size);
  }
  MatrixView<float const> view() const { return {weights.data(), size, d, d}; }
  DenseProjection projection() const { return DenseProjection(view(), bias); }
  /// Logits of one hidden vector, in double precision.
  std::vector<double> logits(std::span<float const> h) const {
    std::vector<double> result;
    for (std::ptrdiff_t j = 0; j < size; ++j) {
      double sum = bias.empty() ? 0 : static_cast<double>(bias[static_cast<std::size_t>(j)]);
      for (std::ptrdiff_t k = 0; k < d; ++k)
        sum += static_cast<double>(weights[static_cast<std::size_t>(j * d + k)]) *
               static_cast<double>(h[static_cast<std::size_t>(k)]);
      result.push_back(sum);
    }
    return result;
  }

  std::mt19937_64 random;
  std::ptrdiff_t size, d;
  std::vector<float> weights, bias{};
};

bool same(Line const& a, Line const& b) {
  return a.valid == b.valid && a.log_sum_exp == b.log_sum_exp && a.entropy == b.entropy &&
         std::equal(a.best.begin(), a.best.end(), b.best.begin(), b.best.end()) &&
         std::equal(a.probes.begin(), a.probes.end(), b.probes.begin(), b.probes.end());
}

}  // namespace

TEST_CASE("dense_projection is the product in double precision to 1e-5", "[dense_projection]") {
  for (std::ptrdiff_t const size : {1, 2, 31, 32, 33, 64, 100, 1000, 4099})
    for (std::ptrdiff_t const d : {1, 3, 16, 17, 64, 256}) {
      Layer layer(static_cast<std::uint64_t>(size * 1000 + d), size, d, d % 2 == 0);
      auto projection = layer.projection();
      CHECK(projection.vocabulary_size() == size);
      CHECK(projection.hidden_size() == d);
      auto const rows = 3;
      auto const h = random_numbers(layer.random, rows * d);
      std::vector<Token> const probes{0, static_cast<Token>(size - 1)};
      std::vector<Query> const queries{
          {.best = 5, .probes = probes}, {.best = 2, .mass = 0.5f}, {.best = 1, .temperature = 0.7f}};
      auto const answer = projection.expand(hidden(h.data(), rows, d), queries, {});
      REQUIRE(answer.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) {
        INFO("V = " << size << ", d = " << d << ", line " << i);
        auto const logits =
            layer.logits(std::span(h).subspan(i * static_cast<std::size_t>(d), static_cast<std::size_t>(d)));
        check_line(answer[i], expected_line<double>(logits, Kind::logits, queries[i]), queries[i]);
      }
    }
}

TEST_CASE("dense_projection selects as log_softmax_top_k does, from its own logits, bit for bit",
          "[dense_projection]") {
  Layer layer(1, 777, 50);
  auto projection = layer.projection();
  LogSoftmaxTopK selection;
  std::ptrdiff_t const rows = 130;
  auto const h = random_numbers(layer.random, rows * 50);
  std::vector<Edit> const edits{{7, -std::numeric_limits<float>::infinity(), 1}, {9, 1, 2}};
  std::vector<Token> const probes{7, 9, 11};
  std::vector<Query> queries;
  std::vector<Group> groups;
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    Query q{.base = -0.1 * static_cast<double>(i), .best = static_cast<std::int32_t>(i % 7), .probes = probes};
    if (i % 2 == 0) q.edits = edits;
    if (i % 4 == 0) q.stage = Stage::after_softmax;
    if (i % 5 == 0) q.mass = 0.2f, q.entropy = true;
    if (i % 6 == 0) q.noise = static_cast<std::uint64_t>(i + 1);
    queries.push_back(q);
    if (i % 10 == 0) groups.push_back({.keep = static_cast<std::int32_t>(i / 10 % 3 * 5)});
    ++groups.back().lines;
  }
  auto const all = projection.logits(hidden(h.data(), rows, 50));
  REQUIRE(all.rows == rows);
  REQUIRE(all.columns == 777);
  std::vector<float> const logits(all.data, all.data + rows * all.stride);
  auto const expected = selection.expand(scores(logits.data(), rows, 777), queries, groups);
  auto const answer = projection.expand(hidden(h.data(), rows, 50), queries, groups);
  REQUIRE(answer.size() == static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < queries.size(); ++i) {
    INFO("line " << i);
    CHECK(same(answer[i], expected[i]));
  }
}

TEST_CASE("dense_projection gives a line the same bits in any company and place", "[dense_projection]") {
  for (std::ptrdiff_t const d : {64, 512}) {
    Layer layer(2, 300, d);
    auto projection = layer.projection();
    std::ptrdiff_t const most = 320, stride = d + 5;
    auto const h = random_numbers(layer.random, most * stride);
    std::vector<Token> probes;
    for (Token t = 0; t < 300; ++t) probes.push_back(t);
    auto const one = [&](std::ptrdiff_t i) {
      Query const query{.best = 5, .probes = probes};
      Hidden<float> view;
      view.data = h.data() + i * stride, view.rows = 1, view.columns = d, view.stride = stride;
      auto const line = projection.expand(view, std::span(&query, 1), {})[0];
      return std::pair(std::vector<Candidate>(line.best.begin(), line.best.end()),
                       std::vector<float>(line.probes.begin(), line.probes.end()));
    };
    std::vector<decltype(one(0))> alone;
    for (std::ptrdiff_t i = 0; i < most; ++i) alone.push_back(one(i));
    for (std::ptrdiff_t const rows : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 24, 47, 48, 49, 97, 320}) {
      INFO("d = " << d << ", " << rows << " rows");
      std::vector<Query> const queries(static_cast<std::size_t>(rows), Query{.best = 5, .probes = probes});
      for (std::ptrdiff_t const first : {std::ptrdiff_t{0}, most - rows}) {
        Hidden<float> view;
        view.data = h.data() + first * stride, view.rows = rows, view.columns = d, view.stride = stride;
        auto const answer = projection.expand(view, queries, {});
        auto equal = true;
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
          auto const line = answer[static_cast<std::size_t>(i)];
          auto const& [best, all] = alone[static_cast<std::size_t>(first + i)];
          equal = equal && std::equal(best.begin(), best.end(), line.best.begin(), line.best.end()) &&
                  std::equal(all.begin(), all.end(), line.probes.begin(), line.probes.end());
        }
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("dense_projection keeps its own copy of the weights, and copies share it", "[dense_projection]") {
  auto layer = std::make_unique<Layer>(3, 40, 8);
  auto const h = random_numbers(layer->random, 8);
  auto const first = layer->projection();
  layer.reset();
  auto a = first, b = first;
  Query const query{.best = 40};
  auto const x = a.expand(hidden(h.data(), 1, 8), std::span(&query, 1), {});
  auto const y = b.expand(hidden(h.data(), 1, 8), std::span(&query, 1), {});
  CHECK(same(x[0], y[0]));
  CHECK(x[0].best.size() == 40);
}

TEST_CASE("dense_projection marks a vector that holds a NaN, and no other", "[dense_projection]") {
  Layer layer(4, 100, 16);
  auto projection = layer.projection();
  auto h = random_numbers(layer.random, 3 * 16);
  h[16 + 7] = std::numeric_limits<float>::quiet_NaN();
  std::vector<Query> const queries(3, Query{.best = 2});
  auto const answer = projection.expand(hidden(h.data(), 3, 16), queries, {});
  CHECK(answer[0].valid);
  CHECK_FALSE(answer[1].valid);
  CHECK(answer[2].valid);
}

TEST_CASE("dense_projection refuses shapes that do not fit", "[dense_projection]") {
  Layer layer(5, 10, 4);
  layer.bias.push_back(0);
  CHECK_THROWS_AS(layer.projection(), std::invalid_argument);
  CHECK_THROWS_AS(DenseProjection(std::shared_ptr<PackedMatrix const>()), std::invalid_argument);
  layer.bias.clear();
  auto projection = layer.projection();
  std::vector<float> const h(6);
  Query const query{};
  CHECK_THROWS_AS(projection.expand(hidden(h.data(), 1, 5), std::span(&query, 1), {}), std::invalid_argument);
}

TEST_CASE("dense_projection allocates nothing once warm", "[dense_projection]") {
  Layer layer(6, 500, 32);
  auto projection = layer.projection();
  auto const h = random_numbers(layer.random, 60 * 32);
  std::vector<Query> const queries(60, Query{.best = 6});
  std::vector<Group> const groups{{.lines = 60, .keep = 10}};
  projection.expand(hidden(h.data(), 60, 32), queries, groups);
  auto const before = allocations();
  projection.expand(hidden(h.data(), 60, 32), queries, groups);
  projection.expand(hidden(h.data(), 1, 32), std::span(queries).first(1), std::span(groups).first(0));
  CHECK(allocations() == before);
}

TEST_CASE("a model of hidden vectors decodes through a dense_projection", "[dense_projection]") {
  struct Vectors {  // a hidden vector that is a hash of the last two tokens
    using Source = std::uint64_t;
    Vocabulary vocabulary() const { return {.size = 30, .bos = 1, .eos = {2}, .never = {0, 1}}; }
    void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
      for (std::size_t i = 0; i < slots.size(); ++i) state[slots[i]] = *sources[i];
    }
    Hidden<float> step(std::span<Row const> rows) {
      answer.clear();
      for (auto const& row : rows)
        if (row.from != row.to) state[row.to] = state[row.from];
      for (auto const& row : rows) {
        auto& s = state[row.to];
        s = mix(s * 31 + static_cast<std::uint64_t>(row.tokens[0]) + 1);
        for (std::uint64_t k = 0; k < 16; ++k)
          answer.push_back(static_cast<float>(uniform(s, static_cast<Token>(k)) - 0.5) * 8);
      }
      return hidden(answer.data(), std::ssize(rows), 16);
    }
    std::map<Slot, std::uint64_t> state{};
    std::vector<float> answer{};
  };
  Layer layer(7, 30, 16);
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5, 6, 7, 8, 9};
  BeamSearch const search{.width = 4, .n_best = 4, .length = {.max = 12}};
  Vectors together, single;
  auto const results = decode(together, sources, search, Batched{}, layer.projection());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto const alone = decode(single, std::vector{sources[i]}, search, Batched{}, layer.projection());
    REQUIRE(results[i].ok());
    REQUIRE(results[i].hypotheses.size() == alone[0].hypotheses.size());
    for (std::size_t j = 0; j < results[i].hypotheses.size(); ++j) {
      CHECK(results[i].hypotheses[j].tokens == alone[0].hypotheses[j].tokens);
      CHECK(results[i].hypotheses[j].log_probs == alone[0].hypotheses[j].log_probs);
    }
  }
}
