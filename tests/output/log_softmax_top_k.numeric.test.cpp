// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/line_reference.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();
constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

static_assert(Expander<LogSoftmaxTopK, Scores<float>>);
static_assert(Expander<LogSoftmaxTopK, Scores<double>>);
static_assert(!Expander<LogSoftmaxTopK, Hidden<float>>);

/// The answer to one query of one line.
Line ask(LogSoftmaxTopK& expander, std::vector<float> const& line, Query const& query, Kind kind = Kind::logits) {
  Group const group{.lines = 1};
  return expander.expand(scores(line.data(), 1, std::ssize(line), kind), std::span(&query, 1), std::span(&group, 1))[0];
}

std::vector<Token> tokens(Line const& line) {
  std::vector<Token> result;
  for (auto const& candidate : line.best) result.push_back(candidate.token);
  return result;
}

std::vector<float> random_line(std::mt19937_64& random, std::size_t size, double deviation) {
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> line(size);
  for (auto& x : line) x = static_cast<float>(normal(random));
  return line;
}

void check(LogSoftmaxTopK& expander, std::vector<float> const& line, Query const& query, Kind kind = Kind::logits) {
  check_line(ask(expander, line, query, kind), expected_line<float>(line, kind, query), query);
}

/// A number below n.
std::size_t below(std::mt19937_64& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

/// A random query and the memory that it points to.
struct RandomQuery {
  RandomQuery(std::mt19937_64& random, std::size_t size, Kind kind) {
    auto const one_of = [&](std::size_t n) { return below(random, n) == 0; };
    auto const part = [&] { return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53); };
    auto const token = [&] { return static_cast<Token>(below(random, size)); };
    query.best = one_of(4) ? 0 : static_cast<std::int32_t>(one_of(4) ? below(random, size + 3) : 1 + below(random, 8));
    if (one_of(4)) query.mass = part();
    if (one_of(4)) query.within = part() * part();
    if (one_of(5)) query.typical = part();
    if (one_of(6)) query.deviations = 3 * part();
    if (one_of(6)) query.at_least = part() * part();
    if (one_of(3))
      for (std::size_t i = 0; i < 5; ++i) probes.push_back(token());
    if (one_of(2))
      for (std::size_t i = one_of(4) ? 40 : below(random, 6); i > 0; --i)
        edits.push_back({token(), one_of(3) ? none : one_of(2) ? 0 : 6 * part() - 3, one_of(2) ? 1 : 0.5f + part()});
    if (one_of(2)) query.stage = Stage::after_softmax;
    if (one_of(4)) {
      only = TokenSet(static_cast<std::int32_t>(size));
      for (std::size_t v = 0; v < size; ++v)
        if (!one_of(3)) only.insert(static_cast<Token>(v));
      query.only = &only;
    }
    if (one_of(4)) query.temperature = 0.25f + 2 * part();
    if (one_of(8)) query.normalise = false, query.mass = query.typical = query.at_least = 0;
    if (one_of(4)) query.noise = random() | 1;
    query.entropy = one_of(3) && query.normalise;
    if (kind == Kind::log_probs && !query.normalise) query.entropy = false;
    query.probes = probes, query.edits = edits;
  }
  RandomQuery(RandomQuery const&) = delete;
  RandomQuery& operator=(RandomQuery const&) = delete;

  Query query{};
  std::vector<Token> probes;
  std::vector<Edit> edits;
  TokenSet only;
};

}  // namespace

TEST_CASE("log_softmax_top_k answers every field of a query as double precision does", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  for (std::uint64_t seed = 0; seed < times(6000u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 1 + below(random, seed % 10 == 0 ? 3000 : seed % 3 == 0 ? 200 : 12);
    auto line = random_line(random, size, std::vector<double>{0.1, 1, 5, 30}[below(random, 4)]);
    if (below(random, 4) == 0)
      for (auto& x : line)
        if (below(random, 3) == 0) x = none;
    if (below(random, 6) == 0)
      for (auto& x : line) x = std::round(x);  // ties
    auto const kind = below(random, 4) == 0 ? Kind::log_probs : Kind::logits;
    if (kind == Kind::log_probs) {
      double sum = 0;
      for (auto x : line) sum += std::exp(static_cast<double>(x));
      if (sum > 0)
        for (auto& x : line) x = static_cast<float>(static_cast<double>(x) - std::log(sum));
    }
    RandomQuery const made(random, size, kind);
    auto const& q = made.query;
    INFO("seed " << seed << ", V = " << size << ", best " << q.best << ", mass " << q.mass << ", within " << q.within
                 << ", typical " << q.typical << ", deviations " << q.deviations << ", at_least " << q.at_least << ", "
                 << q.edits.size() << " edits " << (q.stage == Stage::before_softmax ? "before" : "after") << ", only "
                 << (q.only != nullptr) << ", temperature " << q.temperature << ", normalise " << q.normalise
                 << ", noise " << q.noise << ", log_probs " << (kind == Kind::log_probs));
    if (q.noise != 0 && q.selects()) continue;  // has a test of its own
    check(expander, line, q, kind);
  }
}

TEST_CASE(
    "scores that leave the range of floats when they are divided by a temperature keep their order and probability",
    "[log_softmax_top_k]") {
  constexpr auto most = static_cast<double>(std::numeric_limits<float>::max());
  LogSoftmaxTopK expander;
  std::size_t near = 0;
  for (std::uint64_t seed = 0; seed < times(400u); ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 2 + below(random, seed % 5 == 0 ? 3000 : 30);
    auto const temperature = std::vector<float>{0.1f, 0.9f, 1e-30f, 1e-45f}[seed % 4];
    auto const top = seed % 4 < 2 ? 3.3e38f : seed % 4 == 2 ? 1e9f : 1.0f;
    std::vector<float> line(size);
    for (auto& x : line) x = top * (1 - static_cast<float>(below(random, 50)) / 1000);
    if (seed % 4 < 2)
      for (auto& x : line) x = below(random, 3) == 0 ? 3 : x;
    line[below(random, size)] = top;
    auto const holes = seed % 8 < 4;  // products of theirs would be NaN
    if (holes) line[below(random, size)] = none;
    line[below(random, size)] = top;
    if (seed % 3 == 0)
      for (auto& x : line) x = x > 0 ? x - top - top : x;  // all far below 0
    std::vector<Token> order;
    for (std::size_t v = 0; v < size; ++v)
      if (line[v] > none) order.push_back(static_cast<Token>(v));
    auto const score = [&](Token v) { return static_cast<double>(line[static_cast<std::size_t>(v)]); };
    std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) { return score(a) > score(b); });
    auto const below_best = [&](Token v) { return (score(v) - score(order[0])) / static_cast<double>(temperature); };
    double sum = 0;
    for (auto const v : order) sum += std::exp(below_best(v));
    INFO("seed " << seed << ", V = " << size << ", temperature " << temperature);
    std::vector<float> const weights = line;
    DenseProjection layer(MatrixView<float const>{weights.data(), static_cast<std::ptrdiff_t>(size), 1, 1});
    std::vector<float> const one{1};
    std::vector<Token> const probes{order[0], order.back()};
    for (auto const& query : {Query{.best = 5, .probes = probes, .temperature = temperature},
                              Query{.best = 5, .mass = 0.01f, .probes = probes, .temperature = temperature}}) {
      auto const check = [&](Line const& answer) {
        REQUIRE(answer.valid);
        REQUIRE(answer.best.size() >= std::min<std::size_t>(5, order.size()));
        auto const close = [&](float x, Token token) {
          auto const exact = std::max(-most, below_best(token) - std::log(sum));
          CHECK(std::abs(static_cast<double>(x) - exact) <= 1e-5 + 1e-6 * std::abs(exact));
          near += exact > -100 ? 1 : 0;
        };
        for (std::size_t i = 0; i < 5 && i < order.size(); ++i) {
          auto const token = answer.best[i].token;  // what no float tells apart is in any order
          if (below_best(order[i]) > -most) CHECK(score(token) == score(order[i]));
          else CHECK(below_best(token) <= -most);
          close(answer.best[i].log_prob, answer.best[i].token);
        }
        for (std::size_t i = 0; i < 2; ++i) close(answer.probes[i], probes[i]);
      };
      check(ask(expander, line, query));
      auto const hidden = sluice::hidden(one.data(), 1, 1);
      if (!holes) check(layer.expand(hidden, {&query, 1}, {})[0]);
      auto spoiled = line;
      spoiled[below(random, size)] = seed % 2 == 0 ? not_a_number : infinite;
      CHECK(!ask(expander, spoiled, query).valid);
    }
  }
  CHECK(near > times(1000u));
}

TEST_CASE("log_softmax_top_k is exact to 1e-5 for the largest vocabularies", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  auto const size = GENERATE(std::size_t{32000}, std::size_t{65537}, std::size_t{262144});
  auto const deviation = slowed > 1 && size > 65537 ? 1.0 : GENERATE(0.01, 1.0, 8.0);
  std::mt19937_64 random(size);
  auto const line = random_line(random, size, deviation);
  std::vector<Token> const probes{0, 1, static_cast<Token>(size - 1), static_cast<Token>(size / 2)};
  std::vector<Edit> const edits{{7, none, 1}, {static_cast<Token>(size - 1), 3, 1}};
  INFO("V = " << size << ", deviation " << deviation);
  check(expander, line, {.best = 10, .probes = probes});
  check(expander, line, {.best = 1000, .probes = probes, .edits = edits, .entropy = true});
  check(expander, line, {.best = 10, .probes = probes, .edits = edits, .stage = Stage::after_softmax});
  check(expander, line, {.best = 4, .mass = 0.3f});
  check(expander, line, {.best = 5, .noise = 4711});
  check(expander, line, {.best = 0, .within = 0.7f, .temperature = 0.5f});
}

TEST_CASE("log_softmax_top_k lists scores in any order they come in", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::size_t const size = 5000;
  auto const k = GENERATE(1, 2, 17, 64, 65, 1000, 5000, 6000);
  std::vector<float> line(size);
  SECTION("ascending") {
    for (std::size_t v = 0; v < size; ++v) line[v] = static_cast<float>(v) / 100;
  }
  SECTION("descending") {
    for (std::size_t v = 0; v < size; ++v) line[v] = -static_cast<float>(v) / 100;
  }
  SECTION("all equal: lower tokens first") { std::fill(line.begin(), line.end(), 3.0f); }
  SECTION("the best in one cache line") {
    for (std::size_t v = 0; v < size; ++v) line[v] = v >= 1024 && v < 1104 ? 9 + static_cast<float>(v % 7) : 0;
  }
  SECTION("the best one stride apart") {
    for (std::size_t v = 0; v < size; ++v) line[v] = v % 64 == 3 ? 9 + static_cast<float>(v % 5) : 0;
  }
  SECTION("mostly impossible") {
    for (std::size_t v = 0; v < size; ++v) line[v] = v % 911 == 5 ? 1 : none;
  }
  INFO("k = " << k);
  check(expander, line, {.best = k});
  auto const listed = tokens(ask(expander, line, {.best = k}));
  CHECK(listed == expected_line<float>(line, Kind::logits, {.best = k}).list);  // the order of ties is exact here
}

TEST_CASE("log_softmax_top_k breaks ties by the lower token, with edits as without", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<float> const line{1, 2, 2, 1, 2, 0};
  CHECK(tokens(ask(expander, line, {.best = 1})) == std::vector<Token>{1});
  CHECK(tokens(ask(expander, line, {.best = 2})) == std::vector<Token>{1, 2});
  CHECK(tokens(ask(expander, line, {.best = 4})) == std::vector<Token>{1, 2, 4, 0});
  std::vector<Edit> const forbid{{1, none, 1}};
  for (auto const stage : {Stage::before_softmax, Stage::after_softmax}) {
    CHECK(tokens(ask(expander, line, {.best = 2, .edits = forbid, .stage = stage})) == std::vector<Token>{2, 4});
    CHECK(tokens(ask(expander, line, {.best = 9, .edits = forbid, .stage = stage})) ==
          std::vector<Token>{2, 4, 0, 3, 5});
  }
}

TEST_CASE("log_softmax_top_k never lists an impossible token", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<Token> const probes{0, 1};
  SECTION("in the scores") {
    auto const line = ask(expander, {none, 0, none}, {.best = 3, .probes = probes});
    CHECK(line.valid);
    CHECK(tokens(line) == std::vector<Token>{1});
    CHECK_FALSE(line.impossible);
    CHECK(line.probes[0] == none);
    CHECK_THAT(line.probes[1], WithinAbs(0.0, 1e-6));
  }
  SECTION("a line of nothing but -infinity is valid and empty") {
    for (auto const size : {3, 64, 2000})
      for (auto const kind : {Kind::logits, Kind::log_probs}) {
        std::vector<float> const row(static_cast<std::size_t>(size), none);
        auto const line =
            ask(expander, row,
                {.best = 3, .mass = 0.5f, .within = 0.1f, .typical = 0.5f, .probes = probes, .entropy = true}, kind);
        CHECK(line.valid);
        CHECK(line.best.empty());
        CHECK(line.impossible);
        CHECK_FALSE(ask(expander, row, {.best = 0, .probes = probes}, kind).impossible);
        CHECK(ask(expander, row, {.best = 2}, kind).impossible);
        REQUIRE(line.probes.size() == 2);
        CHECK(line.probes[0] == none);
        CHECK(line.probes[1] == none);
        CHECK_FALSE(std::isnan(line.log_sum_exp));
        CHECK_FALSE(std::isnan(line.entropy));
        CHECK(ask(expander, row, {.best = 3, .noise = 5}, kind).best.empty());
      }
  }
  SECTION("by edits") {
    std::vector<Edit> const all{{0, none, 1}, {1, none, 1}, {2, none, 1}};
    TokenSet const nothing(3);
    for (auto const stage : {Stage::before_softmax, Stage::after_softmax}) {
      CHECK(ask(expander, {1, 2, 3}, {.best = 3, .edits = all, .stage = stage}).best.empty());
      CHECK(ask(expander, {1, 2, 3}, {.best = 3, .stage = stage, .only = &nothing}).best.empty());
      CHECK(ask(expander, {1, 2, 3}, {.best = 3, .edits = all, .stage = stage}).valid);
      CHECK(ask(expander, {1, 2, 3}, {.best = 3, .edits = all, .stage = stage}).impossible);
      CHECK(ask(expander, {1, 2, 3}, {.best = 3, .stage = stage, .only = &nothing}).impossible);
    }
  }
}

TEST_CASE("log_softmax_top_k marks a line that holds a NaN or +infinity, and no other", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<Token> const probes{0};
  std::vector<Query> const queries{
      {.best = 2, .probes = probes}, {.best = 2, .probes = probes}, {.best = 2, .probes = probes}};
  std::vector<Group> const groups{{.lines = 3}};
  for (auto const& [bad, size] : std::vector<std::pair<float, std::size_t>>{{not_a_number, 1},
                                                                            {not_a_number, 5},
                                                                            {not_a_number, 64},
                                                                            {not_a_number, 1024},
                                                                            {not_a_number, 1100},
                                                                            {-not_a_number, 7},
                                                                            {-not_a_number, 1100},
                                                                            {infinite, 1},
                                                                            {infinite, 5},
                                                                            {infinite, 64},
                                                                            {infinite, 1100}})
    for (std::size_t at = 0; at < size; at += 1 + size / 50) {
      INFO("V = " << size << ", " << bad << " at " << at);
      std::vector<float> lines(3 * size, 0.5f);
      lines[size + at] = bad;
      auto const answer = expander.expand(scores(lines.data(), 3, static_cast<std::ptrdiff_t>(size)), queries, groups);
      REQUIRE(answer.size() == 3);
      CHECK_FALSE(answer.valid());
      CHECK(answer[0].valid);
      CHECK_FALSE(answer[1].valid);
      CHECK(answer[1].best.empty());
      CHECK(answer[1].probes.empty());
      CHECK(answer[2].valid);
      CHECK(answer[2].probes.size() == 1);
      CHECK(answer[2].best.size() == std::min<std::size_t>(2, size));
    }
}

TEST_CASE("log_softmax_top_k survives scores of any size", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  for (auto const offset : {-3e38f, -1e30f, -1000.0f, 1000.0f, 1e30f, 3e38f}) {
    INFO("offset " << offset);
    auto const line = ask(expander, {offset, offset, offset, offset}, {.best = 4});
    REQUIRE(line.best.size() == 4);
    for (auto const& candidate : line.best) CHECK_THAT(candidate.log_prob, WithinAbs(-std::log(4.0), 1e-6));
  }
  auto const line = ask(expander, {0, -200, -1000}, {.best = 3});
  CHECK_THAT(line.best[1].log_prob, WithinAbs(-200, 1e-4));  // does not underflow
  CHECK_THAT(line.best[2].log_prob, WithinAbs(-1000, 1e-3));
  std::vector<float> rising(5000);
  for (std::size_t v = 0; v < rising.size(); ++v) rising[v] = static_cast<float>(v);  // a new maximum in every chunk
  check(expander, rising, {.best = 5});
  std::reverse(rising.begin(), rising.end());
  check(expander, rising, {.best = 5});
}

TEST_CASE("log_softmax_top_k with a vocabulary of one", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  auto const line = ask(expander, {-7}, {.best = 5, .mass = 1, .entropy = true});
  REQUIRE(line.best.size() == 1);
  CHECK(line.best[0] == Candidate{0, 0.0f});
  CHECK_THAT(line.log_sum_exp, WithinAbs(-7, 1e-6));
  CHECK_THAT(line.entropy, WithinAbs(0, 1e-6));
  CHECK(ask(expander, {-7}, {.best = 2, .noise = 3}).best.size() == 1);
}

TEST_CASE("log_softmax_top_k gives plain scores where no softmax is wanted", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<Token> const probes{2};
  auto const line = ask(expander, {5, 7, -3}, {.best = 2, .probes = probes, .normalise = false});
  REQUIRE(line.best.size() == 2);
  CHECK(line.best[0] == Candidate{1, 7});
  CHECK(line.best[1] == Candidate{0, 5});
  CHECK(line.probes[0] == -3);
  CHECK(line.log_sum_exp == 0);
}

TEST_CASE("log_softmax_top_k takes log-probabilities as they are", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<float> const line{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  auto const plain = ask(expander, line, {.best = 3}, Kind::log_probs);
  for (std::size_t i = 0; i < 3; ++i) CHECK(plain.best[i].log_prob == line[i]);
  // An edit before the softmax is normalised again, one after it is not.
  std::vector<Edit> const forbid{{0, none, 1}};
  CHECK_THAT(ask(expander, line, {.best = 1, .edits = forbid}, Kind::log_probs).best[0].log_prob,
             WithinAbs(std::log(0.6), 1e-6));
  auto const after = ask(expander, line, {.best = 1, .edits = forbid, .stage = Stage::after_softmax}, Kind::log_probs);
  CHECK(after.best[0] == Candidate{1, line[1]});
}

TEST_CASE("log_softmax_top_k applies an edit's penalty before its addition, and a token's edits one by one",
          "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<Edit> const edits{{0, 1, 2}, {1, 1, 2}, {1, 1, 2}, {3, -0.5f, 0.5f}};
  auto const line = ask(expander, {4, -4, 0, 8}, {.best = 4, .edits = edits, .normalise = false});
  std::vector<Candidate> const expected{{3, 15.5f}, {0, 3}, {2, 0}, {1, -13}};  // -4 * 2 + 1 = -7; -7 * 2 + 1 = -13
  REQUIRE(line.best.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(line.best[i] == expected[i]);
}

TEST_CASE("log_softmax_top_k edits log-probabilities alike, few or many", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::mt19937_64 random(3);
  auto const line = random_line(random, 300, 2);
  std::vector<Token> probes;
  for (Token t = 0; t < 300; ++t) probes.push_back(t);
  for (std::size_t const count : {std::size_t{1}, std::size_t{31}, std::size_t{32}, std::size_t{33}, std::size_t{64}}) {
    std::vector<Edit> edits;
    for (std::size_t i = 0; i < count; ++i)
      edits.push_back({static_cast<Token>(below(random, 300)), i % 3 == 0 ? none : 1, i % 2 == 0 ? 1 : 1.5f});
    INFO(count << " edits");
    check(expander, line, {.best = 300, .probes = probes, .edits = edits, .stage = Stage::after_softmax});
    check(expander, line, {.best = 7, .probes = probes, .edits = edits, .stage = Stage::after_softmax});
  }
}

TEST_CASE("log_softmax_top_k gives one entropy, however an edit after the softmax is written", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<float> const line{1, 2, 3, 4};
  std::vector<Edit> const few{{3, none, 1}};
  std::vector<Edit> const many(40, {3, none, 1});
  TokenSet only(4);
  for (Token t = 0; t < 3; ++t) only.insert(t);
  auto const entropy = [&](Query query) {
    query.stage = Stage::after_softmax, query.entropy = true;
    return ask(expander, line, query).entropy;
  };
  auto const first = entropy({.edits = few});
  CHECK_THAT(entropy({.edits = many}), WithinAbs(first, 1e-6));
  CHECK_THAT(entropy({.only = &only}), WithinAbs(first, 1e-6));
  CHECK_THAT(entropy({.mass = 0.5f, .edits = few}), WithinAbs(first, 1e-6));
}

TEST_CASE("log_softmax_top_k under noise lists by perturbed value, probabilities stay their own",
          "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::mt19937_64 random(11);
  for (std::uint64_t noise = 1; noise < 300; ++noise) {
    auto const line = random_line(random, 1 + below(random, 300), 3);
    INFO("noise " << noise << ", V = " << line.size());
    check(expander, line, {.best = static_cast<std::int32_t>(1 + noise % 9), .noise = noise});

    // Mass, within and typical go by log-probability: the list is the union of what each of them asks alone.
    Query query{.best = 2, .mass = 0.4f, .within = 0.2f, .typical = 0.3f, .noise = noise};
    auto all = tokens(ask(expander, line, query));
    std::vector<Token> expected = expected_line<float>(line, Kind::logits, query).list;
    if (expected_line<float>(line, Kind::logits, query).doubtful) continue;
    std::sort(all.begin(), all.end()), std::sort(expected.begin(), expected.end());
    CHECK(all == expected);
  }
}

TEST_CASE("a draw by noise follows the distribution", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::vector<float> const line{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  std::vector<double> drawn(4);
  int const draws = 40000;
  for (int i = 0; i < draws; ++i) {
    auto const answer = ask(expander, line, {.best = 1, .noise = derive(2026, static_cast<std::uint64_t>(i))});
    REQUIRE(answer.best.size() == 1);
    drawn[static_cast<std::size_t>(answer.best[0].token)] += 1.0 / draws;
  }
  for (std::size_t v = 0; v < 4; ++v)  // 5 standard deviations of a frequency
    CHECK_THAT(drawn[v], WithinAbs(std::exp(static_cast<double>(line[v])), 5 * std::sqrt(0.25 / draws)));
}

TEST_CASE("log_softmax_top_k answers a line the same, bit for bit, in any company", "[log_softmax_top_k]") {
  std::mt19937_64 random(5);
  std::size_t const size = 1500, count = 40, stride = 1511;
  std::vector<float> lines(count * stride, not_a_number);  // what lies between the lines is nobody's
  std::vector<std::vector<float>> alone;
  std::vector<std::unique_ptr<RandomQuery>> made;
  std::vector<Query> queries;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < count; ++i) {
    alone.push_back(random_line(random, size, 4));
    std::copy(alone[i].begin(), alone[i].end(), lines.begin() + static_cast<std::ptrdiff_t>(i * stride));
    made.push_back(std::make_unique<RandomQuery>(random, size, Kind::logits));
    queries.push_back(made[i]->query);
    groups.push_back({.lines = 1});
  }
  Scores<float> view;
  view.data = lines.data(), view.rows = count, view.columns = size, view.stride = stride;
  LogSoftmaxTopK together, single;
  auto const answer = together.expand(view, queries, groups);
  auto const no_groups = LogSoftmaxTopK().expand(view, queries, {});
  REQUIRE(answer.size() == count);
  CHECK(no_groups.size() == count);
  for (std::size_t i = 0; i < count; ++i) {
    auto const one = ask(single, alone[i], queries[i]);
    auto const line = answer[i];
    INFO("line " << i);
    CHECK(line.log_sum_exp == one.log_sum_exp);
    CHECK(line.entropy == one.entropy);
    CHECK(std::equal(line.best.begin(), line.best.end(), one.best.begin(), one.best.end()));
    CHECK(std::equal(line.probes.begin(), line.probes.end(), one.probes.begin(), one.probes.end()));
  }
  auto const window = answer.window(3, 2);
  REQUIRE(window.size() == 2);
  CHECK(window[1].best.data() == answer[4].best.data());
  CHECK(window.back().best.data() == answer[4].best.data());
}

TEST_CASE("log_softmax_top_k takes scores of any type that converts to float", "[log_softmax_top_k]") {
  struct Half {
    std::int16_t quarter;
    explicit operator float() const { return static_cast<float>(quarter) / 4; }
  };
  std::vector<Half> const halves{{4}, {-8}, {12}};
  std::vector<double> const doubles{1, -2, 3};
  Query const query{.best = 3};
  LogSoftmaxTopK expander, reference;
  auto const expected = ask(reference, {1, -2, 3}, query);
  auto const a = expander.expand(scores(halves.data(), 1, 3), std::span(&query, 1), {})[0];
  CHECK(std::equal(a.best.begin(), a.best.end(), expected.best.begin(), expected.best.end()));
  auto const b = expander.expand(scores(doubles.data(), 1, 3), std::span(&query, 1), {})[0];
  CHECK(std::equal(b.best.begin(), b.best.end(), expected.best.begin(), expected.best.end()));
}

TEST_CASE("log_softmax_top_k leaves out only what its group has enough better ones of", "[log_softmax_top_k]") {
  LogSoftmaxTopK cut, complete;
  for (std::uint64_t seed = 0; seed < times(500u); ++seed) {
    std::mt19937_64 random(seed);
    std::size_t const size = 3 + below(random, 30);
    std::vector<float> lines;
    std::vector<Query> queries;
    std::vector<Group> groups, all;
    for (std::size_t g = 0; g < 3; ++g) {
      auto const count = 1 + below(random, 4);
      groups.push_back(
          {.lines = static_cast<std::int32_t>(count), .keep = static_cast<std::int32_t>(below(random, 12))});
      all.push_back({.lines = static_cast<std::int32_t>(count)});
      for (std::size_t i = 0; i < count; ++i) {
        auto const line = random_line(random, size, 2);
        for (auto x : line) lines.push_back(seed % 4 == 0 ? std::round(x) : x);
        queries.push_back({.base = seed % 4 == 0 ? -static_cast<double>(below(random, 3))
                                                 : -3e-8 * static_cast<double>(random() >> 40),
                           .best = static_cast<std::int32_t>(below(random, 8)),
                           .noise = seed % 5 == 0 ? random() | 1 : 0});
      }
    }
    auto const view = scores(lines.data(), std::ssize(queries), static_cast<std::ptrdiff_t>(size));
    auto const some = cut.expand(view, queries, groups);
    auto const every = complete.expand(view, queries, all);
    REQUIRE(some.size() == queries.size());
    std::size_t first = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      auto const count = static_cast<std::size_t>(groups[g].lines);
      auto const total = [&](std::size_t i, Candidate c) {
        auto const value = queries[i].base + static_cast<double>(c.log_prob);
        return queries[i].noise != 0 ? value + gumbel(queries[i].noise, c.token) : value;
      };
      for (std::size_t i = first; i < first + count; ++i) {
        INFO("seed " << seed << ", line " << i);
        auto const got = some[i].best, full = every[i].best;
        REQUIRE(got.size() <= full.size());
        CHECK(std::equal(got.begin(), got.end(), full.begin()));  // what stays is what it was
        for (auto j = got.size(); j < full.size(); ++j) {
          REQUIRE(groups[g].keep > 0);
          std::int32_t better = 0;
          for (auto k = first; k < first + count; ++k)
            for (auto const other : every[k].best) better += total(k, other) > total(i, full[j]) ? 1 : 0;
          CHECK(better >= groups[g].keep);
        }
      }
      first += count;
    }
  }
}

TEST_CASE("log_softmax_top_k allocates nothing once warm", "[log_softmax_top_k]") {
  LogSoftmaxTopK expander;
  std::mt19937_64 random(8);
  auto const line = random_line(random, 3000, 2);
  std::vector<Token> const probes{1, 2};
  std::vector<Edit> const edits{{1, none, 1}, {5, 1, 1}};
  std::vector<Query> const queries{
      {.best = 20, .probes = probes},
      {.best = 20, .probes = probes, .edits = edits},
      {.best = 20, .edits = edits, .stage = Stage::after_softmax},
      {.best = 5, .mass = 0.5f, .within = 0.5f, .typical = 0.5f, .edits = edits, .stage = Stage::after_softmax},
      {.best = 5, .noise = 9}};
  std::vector<Group> const groups{{.lines = 1, .keep = 3}};
  auto const run = [&] {
    std::size_t listed = 0;
    for (auto const& query : queries)
      listed += expander.expand(scores(line.data(), 1, std::ssize(line)), std::span(&query, 1), groups)[0].best.size();
    return listed;
  };
  auto const listed = run();
  auto const before = allocations();
  auto const again = run();
  auto const after = allocations();
  CHECK(after == before);
  CHECK(again == listed);
}
