// SPDX-License-Identifier: Apache-2.0
// Rejection without a search: its queries for drawn guesses, how often it keeps them, and the resulting tokens.
#include <sluice/core/model.hpp>
#include <sluice/speculative/acceptance.hpp>

#include <support/catch.hpp>
#include <support/chi_squared.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

using acceptance::Rejection;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

Token draw_from(std::vector<double> const& weights, std::mt19937_64& random) {
  double sum = 0;
  for (auto const w : weights) sum += w;
  auto u = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
  Token last = -1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = static_cast<Token>(i);
    if ((u -= weights[i]) < 0) return last;
  }
  return last;
}

/// A distribution in which some tokens are impossible.
std::vector<double> random_weights(std::mt19937_64& random, std::size_t size) {
  std::vector<double> weights(size);
  for (auto& w : weights) w = random() % 4 == 0 ? 0 : 1 + static_cast<double>(random() % 8);
  weights[random() % size] += 3;
  return weights;
}
std::vector<double> normalised(std::vector<double> weights) {
  double sum = 0;
  for (auto const w : weights) sum += w;
  for (auto& w : weights) w /= sum;
  return weights;
}
Line line_of(std::span<Candidate const> best, std::span<float const> probes = {}) {
  Line line;
  line.best = best, line.probes = probes;
  return line;
}
float log_of(double p) { return p > 0 ? static_cast<float>(std::log(p)) : none; }

}  // namespace

TEST_CASE("names are the guesses and what they were drawn from, as far as it makes sense", "[rejection]") {
  std::vector<Token> const tokens{5, 2, 5, 7};
  DraftTree const told{.drawn = {{0, 2}, {2, 1}, {-1, 2}}, .candidates = {{4, -1}, {2, -1}, {9, -1}}};
  auto const names = [&](DraftTree const& tree, std::vector<std::int32_t> const& guesses) {
    std::vector<Token> found{8, 8};
    Rejection::name(guesses, tokens, tree, found);
    return found;
  };
  using List = std::vector<Token>;
  CHECK(names(told, {}) == List{});
  CHECK(names(told, {0}) == List{2, 4, 5});
  CHECK(names(told, {0, 1}) == List{2, 4, 5, 9});
  CHECK(names(told, {2, 3}) == List{5, 7});  // a range with an invalid beginning; none
  for (auto const range :
       {DraftTree::Range{0, 0}, DraftTree::Range{0, -1}, DraftTree::Range{2, 2}, DraftTree::Range{4, 1}})
    CHECK(names({.drawn = {range}, .candidates = told.candidates}, {0}) == List{5});
  CHECK(names({.drawn = {{0, 3}}, .candidates = told.candidates}, {0}) == List{2, 4, 5, 9});
  for (std::int32_t vocabulary = 3; vocabulary < 12; ++vocabulary) {
    auto tree = told;
    Rejection::drop_nonsense(tree, vocabulary);
    CHECK(names(tree, {0}) == (vocabulary > 4 ? List{2, 4, 5} : List{5}));
    CHECK(names(tree, {1}) == (vocabulary > 9 ? List{2, 9} : List{2}));
  }
  DraftTree negative{.drawn = {{0, 1}, {1, 1}}, .candidates = {{-1, 0}, {0, 0}}};
  Rejection::drop_nonsense(negative, 9);
  CHECK((names(negative, {0}) == List{5} && names(negative, {1}) == List{0, 2}));

  Query query{.noise = 77};
  std::vector<Token> const three{1, 2, 3};
  Rejection::ask(query, three);
  CHECK((query.best == 4 && std::ranges::equal(query.probes, three) && query.noise != 77 && query.noise != 0));
  Query plain{.noise = 77};
  Rejection::ask(plain, {});
  CHECK((plain.best == 1 && plain.probes.empty() && plain.noise == 77));
}

TEST_CASE("drawn guesses are kept as often as can be, and what comes is distributed as the model", "[rejection]") {
  std::mt19937_64 random(1);
  Rejection::Scratch scratch;
  std::size_t settings_with_rest = 0, certain = 0;
  for (int setting = 0; setting < 60; ++setting) {
    constexpr std::size_t size = 6;
    constexpr int draws = 2000;
    auto const p = normalised(random_weights(random, size));
    auto const q = setting % 10 == 0 ? p : normalised(random_weights(random, size));
    auto const count = 1 + random() % 3;                      // guesses
    auto const odd = setting % 4 == 3;                        // guesses that cannot come from the q reported for them
    auto const silent = setting % 4 == 1;                     // no q reported
    auto const scale = static_cast<float>(random() % 5) - 2;  // candidates need not add up to one
    auto const fixed = draw_from(q, random);
    DraftTree tree;
    for (std::size_t v = 0; v < size; ++v)
      if (q[v] > 0 && !(odd && static_cast<Token>(v) == fixed))
        tree.candidates.push_back({static_cast<Token>(v), log_of(q[v]) + scale});
    for (std::size_t i = 0; i < count && !silent; ++i)
      tree.drawn.push_back({0, static_cast<std::int32_t>(tree.candidates.size())});
    std::vector<std::int64_t> counts(size);
    std::int64_t kept = 0;
    std::set<Token> of_position;
    INFO("setting " << setting << ", guesses " << count << ", silent " << silent);
    for (int i = 0; i < draws; ++i) {
      std::vector<Token> tokens(count, fixed);
      std::vector<std::int32_t> guesses;
      for (std::size_t g = 0; g < count; ++g) {
        guesses.push_back(static_cast<std::int32_t>(g));
        if (!silent && !odd) tokens[g] = draw_from(q, random);
      }
      std::vector<Token> names;
      Rejection::name(guesses, tokens, tree, names);
      std::vector<float> probes;
      auto others = p;
      for (auto const name : names) {
        probes.push_back(log_of(p[static_cast<std::size_t>(name)])), others[static_cast<std::size_t>(name)] = 0;
      }
      std::vector<Candidate> best;  // one of each kind, if there is one
      auto const listed = draw_from(p, random), outside = draw_from(others, random);
      if (listed != outside) best.push_back({listed, log_of(p[static_cast<std::size_t>(listed)])});
      if (outside >= 0) best.push_back({outside, log_of(p[static_cast<std::size_t>(outside)])});
      if (!best.empty() && best.front().token != outside && !std::ranges::binary_search(names, best.front().token))
        best.erase(best.begin());
      auto const seed = static_cast<std::uint64_t>(setting * draws + i);
      auto const found = Rejection{}.choose(line_of(best, probes), names, guesses, tokens, tree, seed, 3, scratch);
      REQUIRE((found.token >= 0 && found.token < static_cast<Token>(size)));
      CHECK(found.log_prob == log_of(p[static_cast<std::size_t>(found.token)]));
      ++counts[static_cast<std::size_t>(found.token)], kept += found.token == tokens[0];
      settings_with_rest += outside >= 0;
    }
    check_distribution(counts, p, 1);
    if (count > 1) continue;  // a single guess is kept with probability 1 - |p - q| / 2
    double agree = 0;
    for (std::size_t v = 0; v < size; ++v) agree += std::min(p[v], q[v]);
    if (silent || odd) agree = p[static_cast<std::size_t>(fixed)];
    certain += agree > 0.999;
    auto const spread = std::sqrt(agree * (1 - agree) * draws) + 1;
    CHECK(std::abs(static_cast<double>(kept) - agree * draws) < 4.5 * spread);
  }
  CHECK(settings_with_rest > 20000);
  CHECK(certain > 0);
}

TEST_CASE("choices of other places and sentences are others", "[rejection]") {
  std::vector<Token> const names{0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<float> const probes(8, std::log(0.125f));
  Rejection::Scratch scratch;
  auto const chosen = [&](std::uint64_t seed, std::int32_t position) {
    return Rejection{}.choose(line_of({}, probes), names, {}, {}, {}, seed, position, scratch).token;
  };
  std::set<Token> seeds, positions;
  for (int i = 0; i < 60; ++i) seeds.insert(chosen(static_cast<std::uint64_t>(i), 2)), positions.insert(chosen(2, i));
  CHECK((seeds.size() == 8 && positions.size() == 8));
}

TEST_CASE("where nothing can come, nothing is chosen; where one thing can, that", "[rejection]") {
  std::vector<Token> const names{2, 4};
  std::vector<Token> const tokens{4, 2};
  std::vector<std::int32_t> const guesses{0, 1};
  std::vector<float> const impossible{none, none}, sure{0, none};
  std::vector<Candidate> const other{{6, 0.0f}}, named{{4, -1.0f}};
  Rejection::Scratch scratch;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto const choose = [&](Line const& line) {
      return Rejection{}.choose(line, names, guesses, tokens, {}, seed, 1, scratch);
    };
    CHECK(choose(line_of({}, impossible)) == Candidate{-1, 0});
    CHECK(choose(line_of(named, impossible)) == Candidate{4, -1});  // contradictory input
    CHECK(choose(line_of(other, impossible)) == Candidate{6, 0});
    CHECK(choose(line_of({}, sure)) == Candidate{2, 0});
    CHECK(Rejection{}.choose(line_of(other), {}, {}, {}, {}, seed, 1, scratch) == Candidate{6, 0});
    CHECK(Rejection{}.choose(line_of({}), {}, {}, {}, {}, seed, 1, scratch) == Candidate{-1, 0});
  }
}
