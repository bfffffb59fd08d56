// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/detail/line/line_allowed.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/catch.hpp>
#include <support/random_query.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

/// A line under a set of tokens: few, many, all, none.
struct AllowedCase {
  explicit AllowedCase(std::uint64_t seed) : random(seed) {
    auto const sizes = std::array<std::size_t, 5>{12, 700, 1024, 5000, 40'000};
    size = sizes[seed % sizes.size()] + below(random, 70);
    line = normal_numbers(random, static_cast<std::ptrdiff_t>(size),
                          seed % 11 == 0  ? 1e-6
                          : seed % 3 == 0 ? 0.001
                                          : 3);  // 1e-6: rounding makes ties
    if (seed % 4 == 0)
      for (auto& x : line) x = std::round(x) + 0.0f;  // ties, and no -0
    if (seed % 7 == 0)
      for (auto& x : line) x += 5000.0f;
    if (seed % 5 == 0)
      for (auto& x : line) x = below(random, 3) == 0 ? lowest : x;
    auto const every = std::array<std::size_t, 6>{1, 2, 7, 30, 900, 1'000'000}[below(random, 6)];
    for (std::size_t v = 0; v < size; ++v)
      if (below(random, every) == 0) only.insert(static_cast<Token>(v));
    if (seed % 6 == 0) only.insert(static_cast<Token>(size + 3));
    if (seed % 9 == 0 && below(random, 2) == 0)
      for (Token v = 0; v < static_cast<Token>(size); v += 2) only.erase(v);
    for (auto i = below(random, 4); i > 0; --i)
      edits.push_back({static_cast<Token>(below(random, size)), below(random, 2) == 0 ? lowest : 1.5f, 1.25f});
    for (int i = 0; i < 3; ++i) probes.push_back(static_cast<Token>(below(random, size)));
    if (!edits.empty()) probes.push_back(edits[0].token);
    query = {.best = static_cast<std::int32_t>(below(random, 3) == 0 ? below(random, size) : below(random, 12)),
             .probes = probes,
             .edits = edits,
             .stage = Stage::after_softmax,
             .only = &only};
    query.normalise = seed % 8 != 0;
  }
  Scores<float> view(std::vector<float> const& from) const {
    return scores(from.data(), 1, static_cast<std::ptrdiff_t>(size));
  }

  std::mt19937_64 random;
  std::size_t size;
  std::vector<float> line;
  TokenSet only;
  std::vector<Edit> edits;
  std::vector<Token> probes;
  Query query;
};

/// The list by its definition: the scores of all, edited one by one and compared before they become log-probabilities.
std::vector<Candidate> by_definition(std::span<float const> line, detail::LineNorm norm, Query const& query) {
  std::vector<Candidate> all;
  for (std::size_t v = 0; v < line.size(); ++v) {
    auto const token = static_cast<Token>(v);
    auto x = line[v];
    for (auto const& e : query.edits)
      if (e.token == token) {
        auto const log_prob = norm.rounded(x);
        x = norm.score((log_prob > 0 ? log_prob / e.penalty : log_prob * e.penalty) + e.add);
      }
    if (query.only->contains(token) && x > lowest) all.push_back({token, x});
  }
  std::stable_sort(all.begin(), all.end(), [](Candidate a, Candidate b) { return a.log_prob > b.log_prob; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(query.best)));
  for (auto& one : all) one.log_prob = norm.rounded(one.log_prob);
  return all;
}

detail::LineNorm norm_of(std::span<float const> line, bool normalise) {
  detail::LineScan scan;
  scan.begin(0, true);
  scan.run(line);
  if (!normalise || !(scan.maximum() > lowest)) return {};
  return {static_cast<double>(scan.maximum()), scan.log_sum()};
}

}  // namespace

TEST_CASE("a set after the softmax leaves what it would leave of all log-probabilities, bit for bit",
          "[line_allowed]") {
  LogSoftmaxTopK expander, other;
  std::size_t full = 0;
  for (std::uint64_t seed = 1; seed <= times(400u); ++seed) {
    AllowedCase const c(seed);
    INFO("seed " << seed << ", V = " << c.size << ", best " << c.query.best << ", " << c.edits.size() << " edits");
    std::vector<Token> every(c.size);
    for (std::size_t v = 0; v < c.size; ++v) every[v] = static_cast<Token>(v);
    Query const plain{.best = 0, .probes = every, .normalise = c.query.normalise};
    auto const known = other.expand(c.view(c.line), {&plain, 1}, {})[0];
    auto const answer = expander.expand(c.view(c.line), {&c.query, 1}, {})[0];
    auto const norm = norm_of(c.line, c.query.normalise);
    auto const expected = by_definition(c.line, norm, c.query);
    REQUIRE(answer.best.size() == expected.size());
    full += expected.size() == static_cast<std::size_t>(c.query.best) ? 1 : 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(answer.best[i].token == expected[i].token);
      CHECK(same_bits(answer.best[i].log_prob, expected[i].log_prob));
    }
    CHECK(same_bits(answer.log_sum_exp, known.log_sum_exp));
    for (std::size_t i = 0; i < c.probes.size(); ++i) {
      auto one = c.query;
      one.best = static_cast<std::int32_t>(c.size);
      auto const all = by_definition(c.line, norm, one);
      auto const it = std::ranges::find(all, c.probes[i], &Candidate::token);
      CHECK(same_bits(answer.probes[i], it == all.end() ? lowest : it->log_prob));
    }
  }
  CHECK(full > times(150u));
}

TEST_CASE("a set before the softmax is a line without the others, bit for bit", "[line_allowed]") {
  LogSoftmaxTopK expander, other;
  for (std::uint64_t seed = 1; seed <= times(300u); ++seed) {
    AllowedCase c(seed);
    INFO("seed " << seed << ", V = " << c.size << ", best " << c.query.best << ", " << c.edits.size() << " edits");
    c.query.stage = Stage::before_softmax;
    auto changed = c.line;
    for (std::size_t v = 0; v < c.size; ++v) {
      for (auto const& e : c.edits)
        if (e.token == static_cast<Token>(v))
          changed[v] = (changed[v] > 0 ? changed[v] / e.penalty : changed[v] * e.penalty) + e.add;
      if (!c.only.contains(static_cast<Token>(v))) changed[v] = lowest;
    }
    auto plain = c.query;
    plain.edits = {}, plain.only = nullptr;
    auto const expected = other.expand(c.view(changed), {&plain, 1}, {});
    auto const answer = expander.expand(c.view(c.line), {&c.query, 1}, {});
    CHECK(same_line(answer[0], expected[0]));
    std::vector<float> half(c.size);
    for (std::size_t v = 0; v < c.size; ++v) half[v] = c.line[v] / 2;
    CHECK(same_line(LogSoftmaxTopK(half).expand(c.view(half), {&c.query, 1}, {})[0], answer[0]));
  }
}

TEST_CASE("dense_projection under a set answers as log_softmax_top_k does of its logits", "[line_allowed]") {
  for (std::uint64_t seed = 1; seed <= times(60u); ++seed) {
    AllowedCase c(seed);
    INFO("seed " << seed << ", V = " << c.size);
    if (c.size > 6000) continue;
    constexpr std::ptrdiff_t d = 8;
    auto const rows = static_cast<std::ptrdiff_t>(c.size);
    auto const weights = normal_numbers(c.random, rows * d), vectors = normal_numbers(c.random, d);
    DenseProjection layer(MatrixView<float const>{weights.data(), rows, d, d});
    LogSoftmaxTopK plain;
    for (auto const stage : {Stage::before_softmax, Stage::after_softmax}) {
      c.query.stage = stage;
      auto const answer = kept(layer.expand(hidden(vectors.data(), 1, d), {&c.query, 1}, {}));
      auto const logits = layer.logits(hidden(vectors.data(), 1, d));
      CHECK(same_line(answer[0].view(), plain.expand(logits, {&c.query, 1}, {})[0]));
    }
  }
}
