// SPDX-License-Identifier: Apache-2.0
// Built with OpenMP where there is one, and run with four threads.
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/detail/simd/parallel.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::ptrdiff_t lines = 300, vocabulary = 3001, depth = 24;

std::vector<float> random_numbers(std::ptrdiff_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (auto& x : numbers) x = normal(random);
  return numbers;
}

/// Some of everything, line after line.
struct Questions {
  std::vector<Token> probes{0, 77, vocabulary - 1};
  std::vector<Edit> edits{{5, -1, 2}, {9, 3, 1}};
  std::vector<Query> queries = std::vector<Query>(lines);

  Questions() {
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto& query = queries[i];
      query.best = static_cast<std::int32_t>(i % 7);
      if (i % 3 == 0) query.probes = probes;
      if (i % 5 == 0) query.edits = edits;
      if (i % 11 == 0) query.mass = 0.3f;
      if (i % 13 == 0) query.noise = i + 1;
    }
  }
};

bool same(Line const& a, Line const& b) {
  return a.valid == b.valid && a.log_sum_exp == b.log_sum_exp && std::ranges::equal(a.best, b.best) &&
         std::ranges::equal(a.probes, b.probes);
}

}  // namespace

TEST_CASE("parallel: OpenMP has threads where the test is built with it", "[parallel]") {
#if defined(_OPENMP)
  CHECK(detail::parallel_parts(lines, lines * vocabulary) == 4);
  CHECK(detail::parallel_parts(2, lines * vocabulary) == 2);
  CHECK(detail::parallel_parts(lines, 100) == 1);
#else
  CHECK(detail::parallel_parts(lines, lines * vocabulary) == 1);
#endif
}

TEST_CASE("parallel: every row once, exceptions come through", "[parallel]") {
  for (std::size_t const parts : {1U, 4U}) {
#if !defined(_OPENMP)
    if (parts > 1) continue;
#endif
    std::vector<std::atomic<int>> seen(101);
    detail::parallel_for(parts, 101, [&](std::size_t part, std::ptrdiff_t first, std::ptrdiff_t last) {
      if (part >= parts) throw std::logic_error("a part too many");
      for (auto i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    CHECK(std::ranges::all_of(seen, [](auto const& count) { return count == 1; }));
    CHECK_THROWS_AS(detail::parallel_for(parts, 101, [](auto, auto, auto) { throw std::runtime_error("no"); }),
                    std::runtime_error);
  }
}

TEST_CASE("parallel: the number of threads changes no answer", "[parallel]") {
  Questions const q;
  SECTION("scores") {
    auto const numbers = random_numbers(lines * vocabulary, 1);
    LogSoftmaxTopK together, alone;
    auto const all = together.expand(scores<float>(numbers.data(), lines, vocabulary), q.queries, {});
    REQUIRE(all.size() == lines);
    for (std::ptrdiff_t i = 0; i < lines; ++i) {
      auto const& query = q.queries[static_cast<std::size_t>(i)];
      auto const one = alone.expand(scores<float>(numbers.data() + i * vocabulary, 1, vocabulary), {&query, 1}, {});
      REQUIRE(same(all[static_cast<std::size_t>(i)], one[0]));
    }
  }
  SECTION("hidden vectors") {
    auto const weights = random_numbers(vocabulary * depth, 2), vectors = random_numbers(lines * depth, 3);
    DenseProjection together({weights.data(), vocabulary, depth, depth});
    auto alone = together;
    auto const all = together.expand(hidden<float>(vectors.data(), lines, depth), q.queries, {});
    REQUIRE(all.size() == lines);
    for (std::ptrdiff_t i = 0; i < lines; ++i) {
      auto const& query = q.queries[static_cast<std::size_t>(i)];
      auto const one = alone.expand(hidden<float>(vectors.data() + i * depth, 1, depth), {&query, 1}, {});
      REQUIRE(same(all[static_cast<std::size_t>(i)], one[0]));
    }
  }
}
