// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/fenced.hpp>
#include <support/line_reference.hpp>
#include <support/random_query.hpp>
#include <support/times.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

using Queries = std::vector<std::unique_ptr<RandomQuery>>;

Queries random_queries(std::mt19937_64& random, std::size_t count, std::size_t size, QueryFields const& fields = {}) {
  Queries made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(std::make_unique<RandomQuery>(random, size, fields));
  return made;
}
std::vector<Query> views(Queries const& made) {
  std::vector<Query> queries;
  for (auto const& one : made) queries.push_back(one->query);
  return queries;
}

template <class T>
Scores<T> view(T const* data, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t stride,
               Kind kind = Kind::logits) {
  return {{data, rows, columns, stride}, kind};
}

std::string text(Query const& q) {
  return "best " + std::to_string(q.best) + ", mass " + std::to_string(q.mass) + ", within " +
         std::to_string(q.within) + ", typical " + std::to_string(q.typical) + ", " + std::to_string(q.probes.size()) +
         " probes, " + std::to_string(q.edits.size()) + " edits " +
         (q.stage == Stage::before_softmax ? "before" : "after") + ", only " + std::to_string(q.only != nullptr) +
         ", temperature " + std::to_string(q.temperature) + ", normalise " + std::to_string(q.normalise) + ", noise " +
         std::to_string(q.noise) + ", entropy " + std::to_string(q.entropy);
}

/// Adds the same numbers to every line.
struct Added final : detail::LineProcessor {
  std::vector<float> numbers;
  void process(std::span<float> scores) override {
    REQUIRE(scores.size() == numbers.size());
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += numbers[i];
  }
};

/// A score that the library has never heard of.
struct Fixed {
  std::int32_t thousandths = 0;
  explicit operator float() const { return static_cast<float>(thousandths) / 1000; }
};

}  // namespace

TEST_CASE("log_softmax_top_k answers random queries of any field as double precision does", "[output_properties]") {
  LogSoftmaxTopK expander;
  for (std::uint64_t seed = 1; seed <= times(4000u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 1 + below(random, seed % 40 == 0 ? 40000 : seed % 10 == 0 ? 3000 : seed % 3 == 0 ? 300 : 12);
    auto line = normal_numbers(random, static_cast<std::ptrdiff_t>(size), std::vector{0.1, 1., 5., 30.}[seed % 4]);
    if (below(random, 5) == 0)
      for (auto& x : line) x = std::round(x);
    if (below(random, 5) == 0)
      for (auto& x : line) x += below(random, 3) == 0 ? none : 0;
    if (below(random, 9) == 0)
      for (auto& x : line) x -= below(random, 2) == 0 ? 150.0f : 0.0f;
    auto const kind = below(random, 4) == 0 ? Kind::log_probs : Kind::logits;
    RandomQuery const made(random, size);
    auto query = made.query;
    if (kind == Kind::log_probs) {  // masses are of probabilities
      double sum = 0;
      for (auto const x : line) sum += std::exp(static_cast<double>(x));
      if (sum > 0)
        for (auto& x : line) x = static_cast<float>(static_cast<double>(x) - std::log(sum));
    }
    INFO("seed " << seed << ", V = " << size << ", log_probs " << (kind == Kind::log_probs) << ", " << text(query));
    auto const answer =
        expander.expand(view(line.data(), 1, std::ssize(line), std::ssize(line), kind), std::span(&query, 1), {})[0];
    auto const expected = expected_line<float>(line, kind, query);
    for (auto const& c : answer.best) CHECK(std::isfinite(c.log_prob));
    if (query.noise == 0 || !query.selects()) {
      check_line(answer, expected, query);
    } else if (!expected.doubtful) {  // together, the order is that of log-probabilities
      std::vector<Token> got, wanted = expected.list;
      for (auto const& c : answer.best) got.push_back(c.token);
      if (query.best > 0)
        for (std::size_t i = 1; i < answer.best.size(); ++i)
          CHECK(answer.best[i - 1].log_prob >= answer.best[i].log_prob);
      std::sort(got.begin(), got.end()), std::sort(wanted.begin(), wanted.end());
      CHECK(got == wanted);
    }
  }
}

TEST_CASE("one pass and several give the same list", "[output_properties]") {
  LogSoftmaxTopK one, several;
  for (std::uint64_t seed = 1; seed <= times(1500u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 1 + below(random, seed % 10 == 0 ? 3000 : 30);
    auto line = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 2);
    if (seed % 2 == 0)
      for (auto& x : line) x = std::round(x);  // ties
    RandomQuery const made(random, size, {.selection = false});
    auto query = made.query;
    INFO("seed " << seed << ", V = " << size << ", " << text(query));
    auto const scores = view(line.data(), 1, std::ssize(line), std::ssize(line));
    auto const a = one.expand(scores, std::span(&query, 1), {})[0];
    query.entropy = true;  // needs a second pass, and changes nothing else
    auto b = several.expand(scores, std::span(&query, 1), {})[0];
    b.entropy = 0;
    CHECK(same_line(a, b));
    // Equal log-probabilities come in ascending order of tokens, edited or not.
    if (seed % 2 == 0)
      for (std::size_t i = 1; i < a.best.size(); ++i)
        if (a.best[i - 1].log_prob == a.best[i].log_prob) CHECK(a.best[i - 1].token < a.best[i].token);
  }
}

TEST_CASE("an edit that changes nothing does not change the order of equal tokens", "[output_properties]") {
  LogSoftmaxTopK expander;
  std::vector<std::size_t> wrong;
  for (std::size_t size = 2; size < 60; ++size) {
    std::vector<float> const line(size, 2.0f);
    std::vector<Edit> const edits{{static_cast<Token>(size / 2), 0, 1}};
    Query const query{.best = static_cast<std::int32_t>(size), .edits = edits, .stage = Stage::after_softmax};
    auto const answer = expander.expand(scores(line.data(), 1, std::ssize(line)), std::span(&query, 1), {})[0];
    REQUIRE(answer.best.size() == size);
    if (!std::ranges::is_sorted(answer.best, {}, &Candidate::token)) wrong.push_back(size);
  }
  CHECK(wrong == std::vector<std::size_t>{});
}

TEST_CASE("a bias is what adding it beforehand is, bit for bit", "[output_properties]") {
  for (std::uint64_t seed = 1; seed <= times(60u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = static_cast<std::ptrdiff_t>(1 + below(random, seed % 8 == 0 ? 40000 : 3000));
    std::ptrdiff_t const rows = 12;
    auto const stride = size + static_cast<std::ptrdiff_t>(below(random, 20));
    auto const bias = normal_numbers(random, size, 2);
    auto const lines = normal_numbers(random, rows * stride, 3);
    auto added = lines;
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      for (std::ptrdiff_t v = 0; v < size; ++v)
        added[static_cast<std::size_t>(r * stride + v)] += bias[static_cast<std::size_t>(v)];
    auto const made = random_queries(random, rows, static_cast<std::size_t>(size));
    auto const queries = views(made);
    LogSoftmaxTopK with(bias), without;
    auto const a = with.expand(view(lines.data(), rows, size, stride), queries, {});
    auto const b = without.expand(view(added.data(), rows, size, stride), queries, {});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      INFO("seed " << seed << ", V = " << size << ", line " << i << ", " << text(queries[i]));
      CHECK(same_line(a[i], b[i]));
    }
  }
}

TEST_CASE("a line that is processed is that line processed beforehand", "[output_properties]") {
  LogSoftmaxTopK expander;
  for (std::uint64_t seed = 1; seed <= times(2000u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 1 + below(random, seed % 10 == 0 ? 3000 : seed % 3 == 0 ? 300 : 12);
    auto const line = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 3);
    RandomQuery const made(random, size, {.selection = seed % 2 == 0, .edits = false, .only = false});
    Added adds;
    adds.numbers = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 3);
    auto query = made.query;
    auto const after = query.stage == Stage::after_softmax;
    INFO("seed " << seed << ", " << text(query));
    if (after && seed % 2 == 0) continue;  // ranked by log-probabilities then, which rounding may make equal
    auto processed = line;
    if (after) {  // the log-probabilities are the scores
      auto const plain = expander.expand(scores(line.data(), 1, static_cast<std::ptrdiff_t>(size)),
                                         std::vector<Query>{{.best = static_cast<std::int32_t>(size),
                                                             .temperature = query.temperature,
                                                             .normalise = query.normalise}},
                                         {});
      for (auto const& one : plain[0].best) processed[static_cast<std::size_t>(one.token)] = one.log_prob;
    }
    adds.process(processed);
    auto direct = query;
    if (after) direct.normalise = false, direct.temperature = 1;
    auto const expected =
        kept(expander.expand(scores(processed.data(), 1, static_cast<std::ptrdiff_t>(size)), std::vector{direct}, {}));
    query.process = &adds;
    auto const answer =
        expander.expand(scores(line.data(), 1, static_cast<std::ptrdiff_t>(size)), std::vector{query}, {});
    auto wanted = expected.at(0).view();
    if (after) wanted.log_sum_exp = answer[0].log_sum_exp;  // of the line itself
    CHECK(same_line(answer[0], wanted));
  }
}

TEST_CASE("an expander that takes another's place takes its bias, or that it has none", "[output_properties]") {
  std::mt19937_64 random(3);
  std::ptrdiff_t const size = 100, rows = 40;
  auto const bias = normal_numbers(random, size, 2), lines = normal_numbers(random, rows * size, 3);
  auto const made = random_queries(random, rows, static_cast<std::size_t>(size));
  auto const queries = views(made);
  LogSoftmaxTopK const with(bias), without;
  for (auto const* from : {&with, &without}) {
    LogSoftmaxTopK to = from == &with ? without : with, plain = *from;
    to = *from;
    auto const a = to.expand(scores(lines.data(), rows, size), queries, {});
    auto const b = plain.expand(scores(lines.data(), rows, size), queries, {});
    std::vector<std::size_t> different;
    for (std::size_t i = 0; i < queries.size(); ++i)
      if (!same_line(a[i], b[i])) different.push_back(i);
    CHECK(different == std::vector<std::size_t>{});
  }
}

TEMPLATE_TEST_CASE("scores of another type are their floats, bit for bit", "[output_properties]", Eigen::bfloat16,
                   Eigen::half, double, Fixed) {
  for (std::uint64_t seed = 1; seed <= times(40u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = static_cast<std::ptrdiff_t>(1 + below(random, seed % 8 == 0 ? 40000 : 3000));
    std::ptrdiff_t const rows = 10;
    auto const stride = size + static_cast<std::ptrdiff_t>(below(random, 8));
    auto const bias = seed % 2 == 0 ? normal_numbers(random, size) : std::vector<float>();
    std::vector<TestType> lines(static_cast<std::size_t>(rows * stride));
    for (auto& x : lines) {
      auto const number = std::normal_distribution<double>(0, 3)(random);
      if constexpr (std::is_same_v<TestType, Fixed>) x.thousandths = static_cast<std::int32_t>(number * 1000);
      else x = static_cast<TestType>(below(random, 50) == 0 ? -std::numeric_limits<double>::infinity() : number);
    }
    std::vector<float> floats;
    for (auto const x : lines) floats.push_back(static_cast<float>(x));
    auto const made = random_queries(random, rows, static_cast<std::size_t>(size));
    auto const queries = views(made);
    auto const kind = seed % 3 == 0 ? Kind::log_probs : Kind::logits;
    LogSoftmaxTopK a(bias), b(bias);
    auto const got = a.expand(view(lines.data(), rows, size, stride, kind), queries, {});
    auto const expected = b.expand(view(floats.data(), rows, size, stride, kind), queries, {});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      INFO("seed " << seed << ", V = " << size << ", line " << i << ", " << text(queries[i]));
      CHECK(same_line(got[i], expected[i]));
    }
  }
}

TEMPLATE_TEST_CASE("nothing beyond a row is read", "[output_properties]", float, Eigen::bfloat16, Eigen::half, double) {
  for (std::ptrdiff_t const size : {1, 7, 31, 63, 1000, 1023, 1025, 8191, 8195, 32769, 33001})
    for (auto const at_end : {true, false})
      for (auto const biased : {true, false}) {
        std::mt19937_64 random(static_cast<std::uint64_t>(size));
        std::vector<TestType> lines;
        for (auto const x : normal_numbers(random, 3 * size)) lines.push_back(static_cast<TestType>(x));
        auto const bias = biased ? normal_numbers(random, size) : std::vector<float>();
        Fenced<TestType> const fenced(lines, at_end);
        auto const made = random_queries(random, 3, static_cast<std::size_t>(size));
        auto queries = views(made);
        queries[2] = {.best = 5};  // the plainest, in place
        LogSoftmaxTopK a(bias), b(bias);
        auto const got = a.expand(view(fenced.data(), 3, size, size), queries, {});
        auto const expected = b.expand(view(lines.data(), 3, size, size), queries, {});
        INFO("V = " << size << ", at the end " << at_end << ", bias " << biased);
        for (std::size_t i = 0; i < 3; ++i) CHECK(same_line(got[i], expected[i]));
      }
}

TEST_CASE("dense_projection reads no weight, bias or hidden number beyond its own", "[output_properties]") {
  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (std::ptrdiff_t const size : {1, 31, 33, 1025})
      for (std::ptrdiff_t const d : {1, 7, 33})
        for (std::ptrdiff_t const rows : {1, 5, 97})
          for (auto const at_end : {true, false}) {
            std::mt19937_64 random(9);
            auto const weights = normal_numbers(random, size * d), bias = normal_numbers(random, size);
            auto const h = normal_numbers(random, rows * d);
            Fenced<float> const w(weights, at_end), b(bias, at_end), x(h, at_end);
            DenseProjection fenced({w.data(), size, d, d}, {b.data(), static_cast<std::size_t>(size)}, precision);
            DenseProjection plain({weights.data(), size, d, d}, bias, precision);
            std::vector<Query> const queries(static_cast<std::size_t>(rows), Query{.best = 4});
            auto const got = fenced.expand(hidden(x.data(), rows, d), queries, {});
            auto const expected = plain.expand(hidden(h.data(), rows, d), queries, {});
            auto same = true;
            for (std::size_t i = 0; i < queries.size(); ++i) same = same && same_line(got[i], expected[i]);
            CHECK(same);
          }
}

TEST_CASE("dense_projection answers any query as log_softmax_top_k from its logits, whatever the batch",
          "[output_properties]") {
  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (std::uint64_t seed = 1 + static_cast<std::uint64_t>(precision) % slowed; seed <= 14; seed += slowed) {
      std::mt19937_64 random(seed);
      auto const size = static_cast<std::ptrdiff_t>(1 + below(random, seed % 7 == 0 ? 20000 : 3000));
      auto const d = static_cast<std::ptrdiff_t>(1 + below(random, 20));
      auto const rows = std::vector<std::ptrdiff_t>{1, 2, 3, 5, 8, 13, 31, 64, 95, 96, 97, 150, 193, 200}[seed - 1];
      auto const stride = d + static_cast<std::ptrdiff_t>(below(random, 5));
      auto const weights = normal_numbers(random, size * d), bias = normal_numbers(random, size);
      auto const h = normal_numbers(random, rows * stride);
      auto const made = random_queries(random, static_cast<std::size_t>(rows), static_cast<std::size_t>(size));
      auto queries = views(made);
      Added adds;
      adds.numbers = normal_numbers(random, size);
      for (auto& query : queries)
        if (below(random, 4) == 0) query.process = &adds;
      DenseProjection projection({weights.data(), size, d, d}, bias, precision);
      LogSoftmaxTopK selection;
      Hidden<float> vectors{{h.data(), rows, d, stride}};
      auto const logits = projection.logits(vectors);
      auto const expected = selection.expand(logits, queries, {});
      auto const got = kept(projection.expand(vectors, queries, {}));
      REQUIRE(got.size() == queries.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("precision " << static_cast<int>(precision) << ", seed " << seed << ", V = " << size << ", d = " << d
                          << ", line " << i << " of " << rows << ", " << text(queries[i]));
        CHECK(same_line(got[i].view(), expected[i]));
        if (i % 7 == 0) {  // alone
          vectors.data = h.data() + static_cast<std::ptrdiff_t>(i) * stride, vectors.rows = 1;
          CHECK(same_line(projection.expand(vectors, std::span(queries).subspan(i, 1), {})[0], got[i].view()));
        }
      }
    }
}

TEST_CASE("random queries allocate nothing once warm", "[output_properties]") {
  std::mt19937_64 random(12);
  std::ptrdiff_t const size = 3001, d = 9, rows = 120;
  auto const weights = normal_numbers(random, size * d), lines = normal_numbers(random, rows * size);
  auto const bias = normal_numbers(random, size);
  auto const made = random_queries(random, static_cast<std::size_t>(rows), static_cast<std::size_t>(size));
  auto const queries = views(made);
  LogSoftmaxTopK expander(bias);
  DenseProjection projection({weights.data(), size, d, d}, bias),
      int8({weights.data(), size, d, d}, bias, Precision::int8);
  std::vector<Eigen::bfloat16> halves;
  for (auto const x : lines) halves.push_back(static_cast<Eigen::bfloat16>(x));
  auto const run = [&](std::ptrdiff_t count) {
    auto const some = std::span(queries).first(static_cast<std::size_t>(count));
    expander.expand(scores(lines.data(), count, size), some, {});
    expander.expand(scores(halves.data(), count, size), some, {});
    projection.expand(hidden(lines.data(), count, d), some, {});
    int8.expand(hidden(lines.data(), count, d), some, {});
  };
  run(rows);
  auto const before = allocations();
  run(rows);
  run(rows / 2);
  run(1);
  run(0);
  run(rows);
  CHECK(allocations() == before);
}
