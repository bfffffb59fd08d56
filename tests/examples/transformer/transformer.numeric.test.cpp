// SPDX-License-Identifier: Apache-2.0
#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <transformer/transformer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::example;

namespace {

static_assert(Model<Transformer> && ReleasingModel<Transformer> && EncodingModel<Transformer>);

std::shared_ptr<Weights const> weights(Precision layers = Precision::float32) {
  static auto const load = [](Precision precision) {
    return Weights::load(std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/apps/translate/model/model.safetensors",
                         precision);
  };
  static std::shared_ptr<Weights const> const shared[] = {load(Precision::float32), load(Precision::bfloat16),
                                                          load(Precision::int8)};
  return shared[static_cast<std::size_t>(layers)];
}

std::vector<Token> random_tokens(std::mt19937& random, std::size_t size) {
  std::vector<Token> tokens(size);
  for (auto& token : tokens) token = static_cast<Token>(3 + random() % 7997);
  return tokens;
}

void start(Transformer& model, std::vector<Token> const& source, Slot slot) {
  std::vector<Token> const* const sources[] = {&source};
  Slot const slots[] = {slot};
  model.start(sources, slots);
}

using Vectors = std::vector<std::vector<float>>;

Vectors step(Transformer& model, std::vector<Row> const& rows) {
  auto const answer = model.step(rows);
  Vectors vectors;
  for (std::ptrdiff_t i = 0; i < answer.rows; ++i) vectors.emplace_back(answer[i].begin(), answer[i].end());
  return vectors;
}

/// One sentence on its own, token by token.
Vectors alone(std::vector<Token> const& source, std::vector<Token> const& tokens,
              Precision layers = Precision::float32) {
  Transformer model(weights(layers));
  start(model, source, 0);
  Vectors vectors;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    vectors.push_back(step(model, {{0, 0, static_cast<std::int32_t>(i), std::span(tokens).subspan(i, 1)}}).at(0));
  return vectors;
}

std::span<Token const> part(std::vector<Token> const& tokens, std::size_t first, std::size_t count) {
  return std::span(tokens).subspan(first, count);
}

}  // namespace

TEST_CASE("a hidden vector depends on its own sentence only, bit for bit", "[transformer]") {
  auto const layers = GENERATE(Precision::float32, Precision::bfloat16, Precision::int8);
  std::mt19937 random(1);
  constexpr std::size_t sentences = 64, steps = 19;
  std::vector<std::vector<Token>> sources, tokens;
  std::vector<Vectors> expected;
  for (std::size_t i = 0; i < sentences; ++i) {
    sources.push_back(random_tokens(random, i % 23));
    tokens.push_back(random_tokens(random, steps));
    expected.push_back(alone(sources[i], tokens[i], layers));
  }
  for (std::size_t const count : {1u, 2u, 3u, 5u, 13u, 64u}) {
    // In a new order each time; the slots' numbers have nothing to do with it.
    std::vector<std::size_t> order(sentences);
    for (std::size_t i = 0; i < sentences; ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    Transformer model(weights(layers));
    std::vector<std::vector<Token> const*> batch;
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < count; ++i)
      batch.push_back(&sources[order[i]]), slots.push_back(static_cast<Slot>(2 * i));
    model.start(batch, slots);
    bool same = true;
    for (std::size_t s = 0; s < steps; ++s) {
      std::vector<Row> rows;
      for (std::size_t i = 0; i < count; ++i)
        rows.push_back({slots[i], slots[i], static_cast<std::int32_t>(s), part(tokens[order[i]], s, 1)});
      auto const vectors = step(model, rows);
      for (std::size_t i = 0; i < count; ++i) same = same && vectors[i] == expected[order[i]][s];
    }
    INFO(count << " sentences");
    CHECK(same);
  }
}

TEST_CASE("layers of fewer bits give hidden vectors near the same", "[transformer]") {
  std::mt19937 random(7);
  for (int i = 0; i < 8; ++i) {
    auto const source = random_tokens(random, 12), tokens = random_tokens(random, 20);
    auto const expected = alone(source, tokens);
    for (auto const& [layers, bound] : {std::pair{Precision::bfloat16, 0.01}, std::pair{Precision::int8, 0.04}}) {
      auto const vectors = alone(source, tokens, layers);
      double error = 0, size = 0;
      for (std::size_t t = 0; t < tokens.size(); ++t)
        for (std::size_t k = 0; k < expected[t].size(); ++k) {
          error += std::pow(double{vectors[t][k]} - expected[t][k], 2);
          size += std::pow(double{expected[t][k]}, 2);
        }
      INFO("precision " << static_cast<int>(layers));
      CHECK(std::sqrt(error / size) < bound);
      CHECK(error > 0);
    }
  }
}

TEST_CASE("tokens may come one by one or in blocks, beside rows of other lengths", "[transformer]") {
  std::mt19937 random(2);
  auto const source = random_tokens(random, 9), other = random_tokens(random, 30);
  auto const tokens = random_tokens(random, 40), others = random_tokens(random, 40);
  auto const expected = alone(source, tokens), expected_other = alone(other, others);
  for (std::size_t const block : {2u, 7u, 16u, 17u, 40u}) {
    INFO("blocks of " << block);
    Transformer model(weights());
    start(model, source, 1);
    start(model, other, 0);
    for (std::size_t i = 0; i < tokens.size(); i += block) {
      auto const size = std::min(block, tokens.size() - i);
      auto const lines = static_cast<std::int32_t>((size + 1) / 2);
      auto const at = i / block;
      auto const vectors = step(model, {{0, 0, static_cast<std::int32_t>(at), part(others, at, 1)},
                                        {1, 1, static_cast<std::int32_t>(i), part(tokens, i, size), lines}});
      REQUIRE(std::ssize(vectors) == 1 + lines);
      CHECK(vectors[0] == expected_other[at]);
      for (std::size_t l = 0; l < static_cast<std::size_t>(lines); ++l)
        CHECK(vectors[1 + l] == expected[i + size - static_cast<std::size_t>(lines) + l]);
    }
  }
}

TEST_CASE("tokens that branch see what they follow, bit for bit, and the first path stays", "[transformer]") {
  std::mt19937 random(6);
  auto const source = random_tokens(random, 9);
  for (auto const precision : {Precision::float32, Precision::int8})
    for (int round = 0; round < 5; ++round) {
      Transformer model(weights(precision));
      start(model, source, 0), start(model, source, 1);
      auto const text = random_tokens(random, 1 + random() % 6);
      step(model, {{0, 0, 0, text}, {1, 1, 0, text}});
      auto const tree = random_tokens(random, 2 + random() % 12);
      std::vector<std::int32_t> depths{0};
      while (depths.size() < tree.size())
        depths.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(depths.back() + 2)));
      auto const length = static_cast<std::int32_t>(text.size());
      Row const row{0, 0, length, tree, static_cast<std::int32_t>(tree.size()), depths.data()};
      Row const beside{1, 1, length, {tree.data(), 1}};
      auto const found = step(model, {row, beside});
      REQUIRE(found.size() == tree.size() + 1);
      auto path = text;
      for (std::size_t i = 0; i < tree.size(); ++i) {
        path.resize(text.size() + static_cast<std::size_t>(depths[i]));
        path.push_back(tree[i]);
        CHECK(found[i] == alone(source, path, precision).back());
      }
      CHECK(found.back() == found.front());
      auto kept = text;
      kept.insert(kept.end(), tree.begin(), tree.begin() + static_cast<std::ptrdiff_t>(row.kept()));
      auto const next = random_tokens(random, 1);
      auto const after = step(model, {{0, 0, static_cast<std::int32_t>(kept.size()), next}});
      kept.push_back(next[0]);
      CHECK(after.at(0) == alone(source, kept, precision).back());
      CHECK_THROWS_AS(step(model, {{0, 0, static_cast<std::int32_t>(kept.size()) + 1, next}}), std::invalid_argument);
      std::vector<std::int32_t> const wrong{0, 2};
      auto const two = random_tokens(random, 2);
      CHECK_THROWS_AS(step(model, {{0, 0, 0, two, 1, wrong.data()}}), std::invalid_argument);
    }
}

TEST_CASE("slots fork and roll back", "[transformer]") {
  std::mt19937 random(3);
  auto const source = random_tokens(random, 5), tokens = random_tokens(random, 36);
  auto changed = tokens;  // another end after 17 tokens
  for (std::size_t i = 17; i < changed.size(); ++i) changed[i] = static_cast<Token>(3 + random() % 7997);
  auto const expected = alone(source, tokens), expected_changed = alone(source, changed);
  Transformer model(weights());
  start(model, source, 0);
  step(model, {{0, 0, 0, part(tokens, 0, 20)}});
  // The fork cuts three tokens off, its parent goes on in the same step.
  auto vectors = step(model, {{0, 0, 20, part(tokens, 20, 1)}, {0, 3, 17, part(changed, 17, 5), 5}});
  CHECK(vectors[0] == expected[20]);
  for (std::size_t i = 0; i < 5; ++i) CHECK(vectors[1 + i] == expected_changed[17 + i]);
  // Forks of forks over occupied slots, then the parents' slots are given back.
  vectors = step(model, {{3, 1, 22, part(changed, 22, 1)}, {0, 2, 21, part(tokens, 21, 1)}});
  CHECK(vectors[0] == expected_changed[22]);
  CHECK(vectors[1] == expected[21]);
  Slot const gone[] = {0, 3};
  model.release(gone);
  vectors =
      step(model, {{1, 1, 17, part(tokens, 17, 1)}, {1, 5, 17, part(changed, 17, 1)}, {2, 2, 22, part(tokens, 22, 1)}});
  CHECK(vectors[0] == expected[17]);
  CHECK(vectors[1] == expected_changed[17]);
  CHECK(vectors[2] == expected[22]);
  // Back to the start, without any token.
  vectors = step(model, {{1, 1, 0, part(tokens, 0, 36), 36}});
  CHECK(vectors == expected);
  Slot const all[] = {1, 2, 5};
  model.release(all);
  CHECK(model.cache_use().pages == 0);
}

TEST_CASE("sources may be encoded in another thread, and a slot started twice", "[transformer]") {
  std::mt19937 random(4);
  std::vector<std::vector<Token>> sources;
  for (std::size_t i = 0; i < 6; ++i) sources.push_back(random_tokens(random, 3 * i));
  std::vector<std::vector<Token> const*> pointers;
  for (auto const& source : sources) pointers.push_back(&source);
  auto const tokens = random_tokens(random, 3);
  Transformer model(weights());
  Transformer::Encoded encoded;
  std::thread([&] { encoded = std::as_const(model).encode(pointers); }).join();
  std::int32_t const items[] = {5, 2};
  Slot const slots[] = {0, 1};
  for (int i = 0; i < 2; ++i) {
    model.start(encoded, items, slots);
    auto const vectors = step(model, {{0, 0, 0, tokens, 3}, {1, 1, 0, tokens}});
    auto const expected = alone(sources[5], tokens);
    for (std::size_t t = 0; t < 3; ++t) CHECK(vectors[t] == expected[t]);
    CHECK(vectors[3] == alone(sources[2], tokens)[2]);
  }
}

TEST_CASE("a warm model allocates nothing", "[transformer]") {
  auto const layers = GENERATE(Precision::float32, Precision::int8);
  std::mt19937 random(5);
  auto const source = random_tokens(random, 8), tokens = random_tokens(random, 60);
  Transformer model(weights(layers));
  std::vector<Row> rows;
  auto const run = [&] {
    for (std::size_t i = 0; i < 60; ++i) {
      rows.clear();
      rows.push_back({0, 0, static_cast<std::int32_t>(i), part(tokens, i, 1)});
      rows.push_back({0, 1, static_cast<std::int32_t>(i), part(tokens, i, 1)});
      model.step(rows);
    }
  };
  start(model, source, 0);
  run();
  start(model, source, 0);
  auto const before = test::allocations();
  run();
  CHECK(test::allocations() == before);
}

TEST_CASE("rows that break the contract are refused, and change nothing", "[transformer]") {
  std::mt19937 random(6);
  auto const source = random_tokens(random, 4), tokens = random_tokens(random, 20);
  Transformer model(weights(), {.length = 20});
  CHECK(model.limits().length == 20);
  start(model, source, 0);
  auto const refuse = [&](Row const& row) { CHECK_THROWS_AS(step(model, {row}), std::invalid_argument); };
  refuse({1, 1, 0, part(tokens, 0, 1)});
  refuse({-1, 0, 0, part(tokens, 0, 1)});
  refuse({0, 0, 1, part(tokens, 0, 1)});
  refuse({0, 0, -1, part(tokens, 0, 1)});
  refuse({0, 0, 0, {}});
  refuse({0, 0, 0, part(tokens, 0, 2), 3});
  refuse({0, 0, 0, part(tokens, 0, 2), 0});
  std::vector<Token> const bad{8000}, negative{-1};
  refuse({0, 0, 0, bad});
  refuse({0, 0, 0, negative});
  CHECK_THROWS_AS(start(model, bad, 0), std::invalid_argument);
  CHECK_THROWS_AS(start(model, std::vector<Token>(20, 5), 0), std::invalid_argument);
  CHECK(step(model, {{0, 0, 0, tokens}})[0] == alone(source, tokens)[19]);
  refuse({0, 0, 20, part(tokens, 0, 1)});

  Transformer small(weights(), {.max_pages = 1});
  start(small, source, 0);
  CHECK_THROWS_AS(step(small, {{0, 0, 0, tokens}}), std::length_error);
}

TEST_CASE("the vocabulary is that of the tokeniser", "[transformer]") {
  Transformer const model(weights());
  CHECK(model.vocabulary().size == 8000);
  CHECK(model.vocabulary().bos == 1);
  CHECK(model.vocabulary().eos == std::vector<Token>{2});
  CHECK(model.vocabulary().never == std::vector<Token>{0, 1});
  CHECK(model.weights().projection().rows == 8000);
  CHECK(model.weights().projection().columns == 256);
  CHECK(model.weights().bias.size() == 8000);
}
