// SPDX-License-Identifier: Apache-2.0
// Rows that branch over llama.cpp, against contexts that read every path from its beginning.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/llama_models.hpp>
#include <support/slow_llama.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using TreeTokens = std::vector<Token>;

/// A text for a slot, and a tree that goes on behind it.
struct DrawnTree {
  TreeTokens held, tokens;
  std::vector<std::int32_t> depths;
  std::int32_t lines = 1;
  Row row(Slot slot) const {
    return {slot, slot, static_cast<std::int32_t>(held.size()), tokens, lines, depths.data()};
  }
};
DrawnTree draw_tree(std::mt19937_64& random) {
  auto const below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  auto const token = [&] { return static_cast<Token>(6 + below(53)); };
  DrawnTree tree;
  for (auto n = below(6); n > 0; --n) tree.held.push_back(token());
  for (std::size_t i = 0, n = 1 + below(14); i < n; ++i) {
    tree.tokens.push_back(token());
    auto const most = i == 0 ? 0 : tree.depths.back() + 1;
    tree.depths.push_back(below(2) == 0 ? most : static_cast<std::int32_t>(below(static_cast<std::size_t>(most) + 1)));
  }
  tree.lines = static_cast<std::int32_t>(1 + below(tree.tokens.size()));
  return tree;
}

/// The path to a token, behind what the slot holds.
TreeTokens path(DrawnTree const& tree, std::size_t last) {
  auto result = tree.held;
  for (std::size_t i = 0; i <= last; ++i)
    result.resize(tree.held.size() + static_cast<std::size_t>(tree.depths[i])), result.push_back(tree.tokens[i]);
  return result;
}

/// The line behind a text, read from its beginning.
std::vector<float> line_behind(SlowLlama& slow, TreeTokens const& text) {
  std::monostate const source;
  auto const* const pointer = &source;
  Slot const slot = 0;
  slow.start(std::span(&pointer, 1), std::span(&slot, 1));
  Row const row{0, 0, 0, text};
  auto const answer = slow.step(std::span(&row, 1));
  return {answer.data, answer.data + answer.columns};
}

void check_line(Scores<float> const& answer, std::ptrdiff_t line, std::vector<float> const& expected) {
  for (std::size_t v = 0; v < expected.size(); ++v)
    REQUIRE_THAT(answer.data[line * answer.columns + static_cast<std::ptrdiff_t>(v)], WithinAbs(expected[v], 1e-4));
}

/// Three trees of three slots in a step, and what the slots hold behind it.
void check_trees(Llama& adapter, SlowLlama& slow, std::mt19937_64& random) {
  std::vector<DrawnTree> trees;
  std::vector<Row> before, rows, after;
  for (int i = 0; i < 3; ++i) trees.push_back(draw_tree(random));
  for (Slot slot = 0; auto const& tree : trees) {
    adapter.release(std::span(&slot, 1));
    if (!tree.held.empty()) before.push_back({slot, slot, 0, tree.held});
    rows.push_back(tree.row(slot++));
  }
  if (!before.empty()) adapter.step(before);
  auto const answer = adapter.step(rows);
  std::ptrdiff_t line = 0;
  for (auto const& tree : trees)
    for (auto i = tree.tokens.size() - static_cast<std::size_t>(tree.lines); i < tree.tokens.size(); ++i)
      check_line(answer, line++, line_behind(slow, path(tree, i)));
  REQUIRE(answer.rows == line);

  Token const next = 9;
  for (auto const& row : rows)
    after.push_back({row.to, row.to, row.length + static_cast<std::int32_t>(row.kept()), {&next, 1}});
  auto const rest = adapter.step(after);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    auto text = path(trees[i], rows[i].kept() - 1);
    text.push_back(next);
    check_line(rest, static_cast<std::ptrdiff_t>(i), line_behind(slow, text));
  }
}

/// No sequence but the slots' holds anything.
bool left_behind(llama_context* context, Slot slots) {
  for (auto i = slots; i < static_cast<Slot>(llama_n_seq_max(context)); ++i)
    if (llama_memory_seq_pos_max(llama_get_memory(context), i) >= 0) return true;
  return false;
}

std::vector<Request<std::monostate, Blockwise<>>> tree_requests(std::vector<TreeTokens> const& prompts) {
  std::vector<Request<std::monostate, Blockwise<>>> all;
  for (auto const& prompt : prompts) all.push_back({.prompt = prompt});
  return all;
}
std::vector<TreeTokens> tree_prompts() {
  std::vector<TreeTokens> all(8);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k <= i * 7 % 24; ++k)
      all[i].push_back(static_cast<Token>(k == 0 ? 1 : 6 + (i + k % 5) % 53));  // some of it comes again
  return all;
}
template <class M>
void check_greedy(M& model, std::vector<TreeTokens> const& expected, Blockwise<> const& search) {
  for (std::size_t const size : {1u, 3u, 8u}) {
    auto const results =
        decode(model, tree_requests(tree_prompts()), search, Streaming{.size = size, .refill_below = 1});
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("request " << i << ", batch " << size << ": " << results[i].message);
      REQUIRE(results[i].ok());
      CHECK(results[i].hypotheses.at(0).tokens == expected[i]);
    }
  }
}

}  // namespace

TEST_CASE("trees are claimed where sequences are left and share their cells") {
  auto const abilities_of = [](LlamaShape const& shape, bool unified, std::int32_t leaves) {
    auto const model = draw_llama(shape);
    auto params = exact_params(4, 1024);
    params.kv_unified = unified, params.swa_full = true;
    auto const context = make_context(model.get(), params);
    Llama const adapter(context.get(), {.leaves = leaves});
    CHECK(adapter.limits().slot_count == (adapter.abilities().trees ? 4 - leaves : 4));
    return adapter.abilities().trees;
  };
  CHECK(abilities_of({}, true, 1));
  CHECK(abilities_of({}, true, 3));
  CHECK(!abilities_of({}, true, 0));
  CHECK(!abilities_of({}, false, 2));
  CHECK(!abilities_of({.architecture = "mamba"}, true, 2));
  CHECK(!abilities_of({.architecture = "gemma2", .window = 16}, true, 2));

  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(4, 256));
  CHECK_THROWS_WITH(Llama(context.get(), {.leaves = 4}), "sluice: leaves = 4: must be in [0, n_seq_max - 1 = 3]");
  CHECK_THROWS_WITH(Llama(context.get(), {.leaves = -1}), "sluice: leaves = -1: must be in [0, n_seq_max - 1 = 3]");
  Llama adapter(context.get());
  TreeTokens const tokens{1, 7, 8};
  std::vector<std::int32_t> const depths{0, 1, 1};
  Row const row{0, 0, 0, tokens, 1, depths.data()};
  CHECK_THROWS_AS(adapter.step(std::span(&row, 1)), std::invalid_argument);
}

TEST_CASE("lines of a tree are those of its paths, with few leaves and small batches of llama.cpp's") {
  auto const model = draw_llama();
  std::mt19937_64 random(5);
  for (auto const& [leaves, n_batch] : {std::pair{1, 512u}, {2, 512u}, {3, 8u}, {24, 512u}, {24, 32u}}) {
    INFO(leaves << " leaves, n_batch " << n_batch);
    auto params = exact_params(3 + static_cast<std::uint32_t>(leaves), 256);
    params.n_batch = n_batch, params.n_ubatch = n_batch / 2;
    auto const context = make_context(model.get(), params);
    Llama adapter(context.get(), {.leaves = leaves});
    REQUIRE(adapter.abilities().trees);
    SlowLlama slow(model.get(), adapter.vocabulary());
    for (int i = 0; i < 6; ++i) {
      check_trees(adapter, slow, random);
      REQUIRE(!left_behind(context.get(), 3));
    }
  }
}

TEST_CASE("a tree that finds no cells leaves nothing behind") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(4, 256));
  Llama adapter(context.get(), {.leaves = 3});
  TreeTokens const text(250, 7), tokens(8, 9);
  std::vector<std::int32_t> const depths{0, 1, 1, 1, 1, 1, 1, 1};
  Row const first{0, 0, 0, text};
  adapter.step(std::span(&first, 1));
  Row const row{0, 0, 250, tokens, 8, depths.data()};
  // 6 cells are free. Of 7 paths one is the slot's and three are lent at a time: 5 tokens, then 3 where 3 have gone.
  CHECK(adapter.step(std::span(&row, 1)).rows == 8);
  CHECK(!left_behind(context.get(), 1));
  std::vector<std::int32_t> const deep{0, 1, 2, 3, 4, 4, 4, 3};
  Row const more{0, 0, 250, tokens, 8, deep.data()};
  CHECK_THROWS_AS(adapter.step(std::span(&more, 1)), NoRoom);
  CHECK(!left_behind(context.get(), 1));
}

TEST_CASE("blockwise with branches over llama.cpp is greedy") {
  auto const model = draw_llama();
  auto const weak = draw_llama({.layers = 1, .seed = 1});
  std::vector<TreeTokens> expected;
  for (auto const& prompt : tree_prompts()) expected.push_back(own_greedy(model.get(), prompt, 40));
  Blockwise<> const search{.block = 4, .length = {.max = 40}, .branches = 3, .nodes = 8};
  for (std::int32_t const leaves : {1, 6, 16}) {
    auto const context = make_context(model.get(), exact_params(24 + static_cast<std::uint32_t>(leaves), 4096));
    Llama adapter(context.get(), {.leaves = leaves});
    Speculated lookup(adapter, PromptLookup());
    check_greedy(lookup, expected, search);
    auto const other = make_context(weak.get(), exact_params(64, 4096));
    Llama draft(other.get());
    Speculated guessed(adapter, DraftModel(draft));
    check_greedy(guessed, expected, search);
  }
  // Few cells: sentences wait, and start again.
  auto const context = make_context(model.get(), exact_params(32, 256));
  Llama adapter(context.get(), {.leaves = 8});
  Speculated lookup(adapter, PromptLookup());
  check_greedy(lookup, expected, search);
}

TEST_CASE("Checked finds nothing in rows that branch") {
  auto const model = draw_llama();
  auto const weak = draw_llama({.layers = 1, .seed = 1});
  auto const context = make_context(model.get(), exact_params(32, 4096));
  auto const other = make_context(weak.get(), exact_params(64, 4096));
  Llama adapter(context.get(), {.leaves = 6}), draft(other.get());
  Checked checked(adapter, {.every = 3, .rows = 4});
  Speculated guessed(checked, DraftModel(draft));
  auto const found =
      decode(guessed, tree_requests(tree_prompts()),
             Blockwise<>{.block = 4, .length = {.max = 24}, .branches = 3, .nodes = 8}, Batched{.size = 4});
  for (auto const& result : found) CHECK(result.ok());
  CHECK(checked.report() == "");
}
