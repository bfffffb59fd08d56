// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/heads.hpp>

#include <support/decoding.hpp>
#include <support/hidden_model.hpp>
#include <support/looking.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::ptrdiff_t d = 12, inner = 20;
constexpr std::int32_t size = 30;
using Base = HiddenModel<everything>;

std::vector<float> numbers(std::mt19937_64& random, std::ptrdiff_t n, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (auto& x : out) x = normal(random);
  return out;
}

/// Heads and their plain weights.
struct Net {
  struct Plain {
    std::vector<float> up, up_bias, down, down_bias;
  };
  std::vector<Plain> plain;
  ResidualHeads heads;

  Net(std::mt19937_64& random, int count) {
    std::vector<ResidualHeads::Head> packed;
    for (int i = 0; i < count; ++i) {
      plain.push_back({numbers(random, inner * d, 0.4f), numbers(random, inner, 0.4f), numbers(random, d * inner, 0.4f),
                       numbers(random, d, 0.4f)});
      auto const& p = plain.back();
      packed.push_back({PackedMatrix({p.up.data(), inner, d, d}, p.up_bias),
                        PackedMatrix({p.down.data(), d, inner, inner}, p.down_bias)});
    }
    heads = ResidualHeads(std::move(packed));
  }
  std::vector<double> apply(std::size_t head, std::span<float const> h) const {
    auto const& p = plain[head];
    std::vector<double> middle(p.up_bias.begin(), p.up_bias.end()), z(p.down_bias.begin(), p.down_bias.end());
    for (std::size_t j = 0; j < middle.size(); ++j) {
      for (std::size_t k = 0; k < h.size(); ++k) middle[j] += static_cast<double>(p.up[j * h.size() + k]) * h[k];
      middle[j] = std::max(middle[j], 0.0);
    }
    for (std::size_t j = 0; j < z.size(); ++j) {
      for (std::size_t k = 0; k < middle.size(); ++k)
        z[j] += static_cast<double>(p.down[j * middle.size() + k]) * middle[k];
      z[j] += h[j];
    }
    return z;
  }
};

/// Compares every guess with what the heads say of a hidden vector computed afresh.
struct Comparison {
  Net const& net;
  std::vector<float> const& weights;
  std::vector<float> const& bias;
  std::size_t guesses = 0;

  void operator()(Draft const& draft, std::span<Token const> held, std::uint64_t const& source) {
    Base fresh(size, d);
    auto const* const from = &source;
    Slot const slot = 0;
    fresh.start({&from, 1}, {&slot, 1});
    Row const row{0, 0, 0, held.first(static_cast<std::size_t>(draft.length)), 1};
    auto const h = fresh.step({&row, 1})[0];
    CHECK(static_cast<std::int32_t>(draft.tokens->size()) == std::min(draft.count, net.heads.size()));
    for (std::size_t i = 0; i < draft.tokens->size(); ++i) {
      auto const z = net.apply(i, h);
      std::vector<double> score(size, -1e30);
      for (Token v = eos; v < size; ++v) {
        auto& x = score[static_cast<std::size_t>(v)];
        x = bias[static_cast<std::size_t>(v)];
        for (std::size_t k = 0; k < z.size(); ++k)
          x += z[k] * static_cast<double>(weights[static_cast<std::size_t>(v) * z.size() + k]);
      }
      auto const guess = (*draft.tokens)[i];
      CHECK(score[static_cast<std::size_t>(guess)] >= *std::ranges::max_element(score) - 1e-4);
      ++guesses;
    }
  }
};

}  // namespace

TEST_CASE("heads guess from the vector behind the last token that stays", "[with_heads]") {
  std::mt19937_64 random(1);
  auto const weights = numbers(random, size * d, 1), bias = numbers(random, size, 1);
  DenseProjection const projection({weights.data(), size, d, d}, bias);
  std::vector<std::uint64_t> const seeds{1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (int heads = 1; heads <= 4; ++heads) {
    Net net(random, heads);
    Base model(size, d);
    Speculated with(model, DraftHeads(net.heads, projection));
    Comparison compared{net, weights, bias};
    Looking watching(with, std::ref(compared));
    auto const expected = decode(model, seeds, Greedy{.length = {.max = 25}}, Batched{}, projection);
    for (std::size_t batch : {1u, 4u, 9u}) {
      auto const found =
          decode(watching, seeds, Blockwise<>{.block = 4, .length = {.max = 25}}, Streaming{.size = batch}, projection);
      for (std::size_t i = 0; i < seeds.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
    }
    CHECK(compared.guesses > 100);
  }
}

TEST_CASE("heads of shapes that do not fit are refused", "[with_heads]") {
  std::mt19937_64 random(2);
  auto const up = numbers(random, inner * d, 1), down = numbers(random, d * inner, 1);
  PackedMatrix const good_up({up.data(), inner, d, d}), good_down({down.data(), d, inner, inner});
  PackedMatrix const bad({up.data(), 10, d, d});
  CHECK_THROWS_AS(ResidualHeads({{good_up, bad}}), std::invalid_argument);
  CHECK_THROWS_AS(ResidualHeads({{bad, good_down}}), std::invalid_argument);
  CHECK_NOTHROW(ResidualHeads({{good_up, good_down}}));
  Base model(size + 1, d);
  ResidualHeads heads({{good_up, good_down}});
  auto const weights = numbers(random, size * d, 1);
  CHECK_THROWS_AS((Speculated(model, DraftHeads(heads, DenseProjection({weights.data(), size, d, d})))),
                  std::invalid_argument);
}

namespace {

/// Compares trees by confidence with all products of the heads' probabilities, or with a given shape.
struct TreeComparison {
  Net const& net;
  std::vector<float> const& weights;
  std::vector<float> const& bias;
  HeadTrees const& trees;
  std::size_t guesses = 0, later = 0;

  using Ranked = std::vector<std::pair<double, Token>>;
  /// The best guesses of a head behind h.
  Ranked best_of(std::size_t head, std::span<float const> h) const {
    auto const z = net.apply(head, h);
    Ranked all;
    double sum = 0;
    for (Token v = 0; v < size; ++v) {
      double x = bias[static_cast<std::size_t>(v)];
      for (std::size_t k = 0; k < z.size(); ++k)
        x += z[k] * static_cast<double>(weights[static_cast<std::size_t>(v) * z.size() + k]);
      sum += std::exp(x);
      if (v >= eos) all.push_back({x, v});
    }
    for (auto& one : all) one.first -= std::log(sum);
    std::ranges::sort(all, std::greater<>());
    all.resize(static_cast<std::size_t>(trees.best));
    return all;
  }
  void operator()(Draft const& draft, std::span<Token const> held, std::uint64_t const& source) {
    Base fresh(size, d);
    auto const* const from = &source;
    Slot const slot = 0;
    fresh.start({&from, 1}, {&slot, 1});
    auto const kept = held.first(static_cast<std::size_t>(draft.length));
    std::vector<Token> text(kept.begin(), kept.end());
    text.insert(text.end(), draft.pending.begin(), draft.pending.end() - 1);  // the last was chosen from what they give
    later += draft.pending.size() > 1;
    Row const row{0, 0, 0, text, 1};
    auto const h = fresh.step({&row, 1})[0];
    auto const depth = static_cast<std::size_t>(std::min(draft.count, net.heads.size()));
    std::vector<Ranked> places;
    for (std::size_t i = 0; i < depth; ++i) places.push_back(best_of(i, h));
    // Every path of the tree, by ranks, and how probable it is.
    std::map<std::vector<std::size_t>, double> found;
    std::vector<std::vector<std::size_t>> paths;
    for (std::size_t i = 0; i < draft.tokens->size(); ++i) {
      auto const parent = draft.tree->parents.at(i);
      auto path = parent < 0 ? std::vector<std::size_t>{} : paths.at(static_cast<std::size_t>(parent));
      REQUIRE(path.size() < depth);
      auto const& place = places[path.size()];
      auto const rank = static_cast<std::size_t>(
          std::ranges::find(place, (*draft.tokens)[i], &std::pair<double, Token>::second) - place.begin());
      REQUIRE(rank < place.size());
      path.push_back(rank);
      double log_prob = 0;
      for (std::size_t j = 0; j < path.size(); ++j) log_prob += places[j][path[j]].first;
      paths.push_back(path);
      CHECK(found.emplace(path, log_prob).second);
      ++guesses;
    }
    if (!trees.shape.nodes.empty()) {
      std::size_t fit = 0;
      for (auto const& node : trees.shape.nodes) fit += static_cast<std::size_t>(node.depth) < depth;
      CHECK(found.size() == std::min(fit, static_cast<std::size_t>(draft.tree->nodes)));
      return;
    }
    std::vector<double> all, taken;
    for (auto const& [path, log_prob] : found) taken.push_back(log_prob);
    std::vector<std::size_t> ranks;
    auto const walk = [&](auto const& self, double before) -> void {
      if (ranks.size() == depth) return;
      for (std::size_t r = 0; r < places[ranks.size()].size(); ++r) {
        auto const log_prob = before + places[ranks.size()][r].first;
        all.push_back(log_prob), ranks.push_back(r);
        self(self, log_prob);
        ranks.pop_back();
      }
    };
    walk(walk, 0);
    std::ranges::sort(all, std::greater<>()), std::ranges::sort(taken, std::greater<>());
    REQUIRE(taken.size() == std::min(all.size(), static_cast<std::size_t>(draft.tree->nodes)));
    for (std::size_t i = 0; i < taken.size(); ++i) CHECK(std::abs(taken[i] - all[i]) < 1e-4);
  }
};

}  // namespace

TEST_CASE("heads guess the most probable trees, or a given one, behind any path", "[with_heads]") {
  std::mt19937_64 random(4);
  auto const weights = numbers(random, size * d, 1), bias = numbers(random, size, 1);
  DenseProjection const projection({weights.data(), size, d, d}, bias);
  std::vector<std::uint64_t> const seeds{1, 2, 3, 4, 5, 6, 7};
  std::array const widths{3, 2};
  std::size_t later = 0;
  for (int round = 0; round < 8; ++round) {
    Net net(random, 3);
    HeadTrees trees{.best = 3};
    if (round % 3 == 2) trees.shape = TreeShape::full(widths);
    Base model(size, d);
    Speculated with(model, DraftHeads(net.heads, projection, trees));
    TreeComparison compared{net, weights, bias, trees};
    Looking watching(with, std::ref(compared));
    auto const expected = decode(model, seeds, Greedy{.length = {.max = 25}}, Batched{}, projection);
    Blockwise<> const search{
        .block = 4, .length = {.max = 25}, .branches = 30, .nodes = static_cast<std::int32_t>(2 + random() % 14)};
    for (std::size_t const batch : {1u, 4u}) {
      auto const found = decode(watching, seeds, search, Streaming{.size = batch}, projection);
      for (std::size_t i = 0; i < seeds.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
    }
    CHECK(compared.guesses > 100);
    later += compared.later;
  }
  CHECK(later > 10);  // paths that were not the first
}

TEST_CASE("of a given tree as much is guessed as the search takes, paths too", "[with_heads]") {
  std::mt19937_64 random(6);
  auto const weights = numbers(random, size * d, 1), bias = numbers(random, size, 1);
  DenseProjection const projection({weights.data(), size, d, d}, bias);
  std::array const widths{4, 1};
  Net net(random, 2);
  Base model(size, d);
  Speculated with(model, DraftHeads(net.heads, projection, {.best = 4, .shape = TreeShape::full(widths)}));
  std::uint64_t const source = 7;
  auto const* const pointer = &source;
  Slot const slot = 0;
  with.start(std::span(&pointer, 1), std::span(&slot, 1));
  std::array const begin{bos}, pending{Token{5}};
  Row const row{0, 0, 0, begin, 1};
  with.step(std::span(&row, 1));
  using Parents = std::vector<std::int32_t>;
  auto const guess = [&](std::int32_t count, std::int32_t nodes, std::int32_t leaves) {
    std::vector<Token> tokens;
    DraftTree tree{.nodes = nodes, .leaves = leaves};
    Draft const draft{.length = 1, .pending = pending, .count = count, .tokens = &tokens, .tree = &tree};
    with.propose(std::span(&draft, 1));
    CHECK(tokens.size() == tree.parents.size());
    return tree.parents;
  };
  CHECK(guess(2, 8, 9) == Parents{-1, -1, -1, -1, 0, 1, 2, 3});
  CHECK(guess(2, 5, 9) == Parents{-1, -1, -1, -1, 0});
  CHECK(guess(2, 4, 2) == Parents{-1, -1, 0, 1});  // the third and fourth would be paths of their own
  CHECK(guess(1, 4, 3) == Parents{-1, -1, -1});
}

TEST_CASE("the first tree behind a forced prefix is guessed from its last vector", "[with_heads]") {
  std::mt19937_64 random(5);
  auto const weights = numbers(random, size * d, 1), bias = numbers(random, size, 1);
  DenseProjection const projection({weights.data(), size, d, d}, bias);
  HeadTrees const trees{.best = 3};
  Net net(random, 3);
  Base model(size, d);
  Speculated with(model, DraftHeads(net.heads, projection, trees));
  TreeComparison compared{net, weights, bias, trees};
  Looking watching(with, std::ref(compared));
  Blockwise<> const search{.block = 4, .length = {.max = 12}, .branches = 4, .nodes = 3};
  std::vector<Request<std::uint64_t, Blockwise<>>> requests(6);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].source = i;
    for (std::size_t j = 0; j < i; ++j) requests[i].prefix.push_back(static_cast<Token>(3 + random() % (size - 3)));
    if (i % 2 == 0) requests[i].prompt = {bos, 7, 8};
  }
  for (std::size_t const batch : {1u, 4u})
    for (auto const& result : decode(watching, requests, search, Streaming{.size = batch}, projection))
      CHECK(result.ok());
  CHECK(compared.guesses > 50);
}

TEST_CASE("shapes of trees", "[with_heads]") {
  using Nodes = std::vector<TreeShape::Node>;
  std::array const widths{2, 1};
  CHECK(TreeShape::full(widths).nodes == Nodes{{-1, 0, 0}, {-1, 0, 1}, {0, 1, 0}, {1, 1, 0}});
  auto const given = TreeShape::of({{0, 1}, {0}, {2}});
  CHECK(given.nodes == Nodes{{-1, 0, 0}, {0, 1, 1}, {-1, 0, 2}});
  CHECK(given.leaves() == 2);
  CHECK(given.depth() == 2);
  // 0.6; then 0.6 * 0.5 = 0.3 and 0.3 * 0.9, 0.2 = the second guess of the first place, 0.1 = that and the first behind it
  std::vector<std::vector<double>> const accuracy{{0.6, 0.2}, {0.5, 0.1}, {0.9}};
  CHECK(TreeShape::learn(accuracy, 4, 9).nodes == Nodes{{-1, 0, 0}, {0, 1, 0}, {1, 2, 0}, {-1, 0, 1}});
  CHECK(TreeShape::learn(accuracy, 9, 1).leaves() == 1);
  CHECK(TreeShape::learn(accuracy, 0, 9).nodes.empty());
  std::vector<std::vector<double>> const wrong{{1.5}};
  CHECK_THROWS_AS(TreeShape::learn(wrong, 1, 1), std::invalid_argument);
  CHECK_THROWS_AS(TreeShape::of({{-1}}), std::invalid_argument);
  std::array const none{0};
  CHECK_THROWS_AS(TreeShape::full(none), std::invalid_argument);
  CHECK_THROWS_AS((HeadTrees{.best = 1, .shape = given}.check()), std::invalid_argument);
}

TEST_CASE("given shapes that are no trees are refused", "[with_heads]") {
  auto const refused = [](std::vector<TreeShape::Node> nodes) -> std::string {
    try {
      HeadTrees{.best = 3, .shape = {std::move(nodes)}}.check();
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refused({{-1, 0, 0}, {0, 1, 2}, {-1, 0, 1}, {1, 2, 0}}).empty());
  struct {
    std::vector<TreeShape::Node> nodes;
    std::string name, value;
  } const wrong[]{
      {{{7, 0, 0}}, "trees.shape: parent", "7"},
      {{{0, 0, 0}}, "trees.shape: parent", "0"},  // itself
      {{{-1, 0, 0}, {-2, 0, 0}}, "trees.shape: parent", "-2"},
      {{{-1, 0, 0}, {2, 1, 0}, {-1, 0, 1}}, "trees.shape: parent", "2"},  // behind it
      {{{-1, -3, 1}}, "trees.shape: depth", "-3"},
      {{{-1, 1, 0}}, "trees.shape: depth", "1"},
      {{{-1, 0, 0}, {0, 5, 0}}, "trees.shape: depth", "5"},
      {{{-1, 0, 0}, {0, 0, 0}}, "trees.shape: depth", "0"},
      {{{-1, 0, -4}}, "trees.shape: rank", "-4"},
      {{{-1, 0, 3}}, "trees.shape: rank", "3"},
  };
  for (auto const& [nodes, name, value] : wrong) {
    auto const said = refused(nodes);
    INFO(said);
    CHECK(said.find(name + " = " + value + ":") != std::string::npos);
  }
}
