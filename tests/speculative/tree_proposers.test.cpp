// SPDX-License-Identifier: Apache-2.0
// Proposers of trees: a draft's beam, drawn sequences, prompt lookup.
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/branching.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>
#include <support/faulty_model.hpp>
#include <support/looking.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Target = CheckedModel<TableModel<with_trees>>;
using Small = CheckedModel<TableModel<everything>>;

/// A model that is never run.
struct ToldSource {
  using Source = std::vector<Token>;
  static constexpr Abilities abilities = with_trees;
  Vocabulary vocabulary() const { return {.size = 12, .bos = bos, .eos = {eos}, .never = {pad, bos}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};

/// The slots that a caller must still release, whatever happened to the steps that used them.
struct Occupied : FaultyModel<> {
  using FaultyModel<>::FaultyModel;
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    held.insert(slots.begin(), slots.end());
    FaultyModel<>::start(sources, slots);
  }
  Scores<float> step(std::span<Row const> rows) {
    for (auto const& row : rows) held.insert(row.to);
    return FaultyModel<>::step(rows);
  }
  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) held.erase(slot);
  }
  std::set<Slot> held{};
};

/// [guess]: its depth; 1 directly after the last token.
std::vector<std::int32_t> depths_of(DraftTree const& tree, std::size_t guesses) {
  std::vector<std::int32_t> depths;
  for (std::size_t i = 0; i < guesses; ++i)
    depths.push_back(tree.parents.at(i) < 0 ? 1 : depths.at(static_cast<std::size_t>(tree.parents[i])) + 1);
  return depths;
}

}  // namespace

TEST_CASE("a beam of the draft guesses trees: greedy's output in fewer rounds than its chain", "[blockwise]") {
  std::mt19937_64 random(1);
  std::size_t chain_blocks = 0, tree_blocks = 0;
  for (int round = 0; round < 12; ++round) {
    Table const table{.size = 10, .scale = 4, .eos_bias = -2, .eos_slope = 0.2, .order = 2};
    Table draft = table;
    draft.scale = 3.9, draft.levels = static_cast<std::int32_t>(2 + random() % 4);  // nearly the same table
    std::vector<std::uint64_t> sources(7);
    for (auto& source : sources) source = random();
    auto const branches = static_cast<std::int32_t>(2 + random() % 4);
    auto const nodes = static_cast<std::int32_t>(random() % 2 == 0 ? 0 : 3 + random() % 9);
    LengthLimits const length{.max = 24};
    for (auto const claimed : {everything, with_trees, Abilities{.blocks = true, .roll_back = true}}) {
      Target model(TableModel<with_trees>(table), claimed);
      Small small(TableModel<everything>(draft), everything);
      Speculated drafted(model, DraftModel(small));
      auto const look = [&](Draft const& one, auto const&...) {
        if (one.tree == nullptr) return;
        auto const depths = depths_of(*one.tree, one.tokens->size());
        CHECK(std::ssize(*one.tokens) <= one.tree->nodes);
        std::set<std::pair<std::int32_t, Token>> seen;
        for (std::size_t i = 0; i < depths.size(); ++i) {
          CHECK(depths[i] <= one.count);
          CHECK(seen.insert({one.tree->parents[i], (*one.tokens)[i]}).second);
        }
      };
      Looking looking(drafted, look);
      for (auto const& search : {Blockwise<>{.block = 4, .length = length},
                                 Blockwise<>{.block = 4, .length = length, .branches = branches, .nodes = nodes}})
        for (std::size_t const size : {1u, 4u}) {
          auto const found = decode(looking, sources, search, Streaming{.size = size});
          for (std::size_t i = 0; i < found.size(); ++i) {
            CHECK(same_outputs(found[i], run_one<everything>(table, sources[i], Greedy{.length = length})));
            (search.branches > 1 ? tree_blocks : chain_blocks) += found[i].hypotheses.at(0).blocks.size();
          }
        }
      CHECK(model.report() == "");
      CHECK(small.report() == "");
    }
  }
  CHECK(tree_blocks * 10 < chain_blocks * 9);
}

TEST_CASE("a draft that throws in the middle of a tree keeps no slot of it", "[blockwise]") {
  Table const table{.size = 9, .scale = 4, .has_eos = false};
  std::uint64_t const source = 3;
  auto const* const pointer = &source;
  Slot const slot = 0;
  std::array const pending{bos};
  for (auto const draws : {false, true})
    for (std::size_t bad = 0; bad < 4; ++bad) {  // the first step continues in the sentence's own slot, the others fork
      INFO((draws ? "drawn" : "a beam") << ", step " << bad);
      TableModel<with_trees> model(table);
      CheckedModel<Occupied> small(Occupied(table, {.no_room = {bad}}), everything);
      Speculated drafted(model, DraftModel(small));
      drafted.start(std::span(&pointer, 1), std::span(&slot, 1));
      std::vector<Token> tokens;
      DraftTree tree{.nodes = 16, .leaves = 4, .draws = draws};
      Draft const draft{.pending = pending, .count = 4, .tokens = &tokens, .seed = 5, .tree = &tree};
      CHECK_THROWS_AS(drafted.propose(std::span(&draft, 1)), NoRoom);
      drafted.release(std::span(&slot, 1));
      CHECK(small.model().held.empty());
      CHECK(small.report() == "");
    }
}

TEST_CASE("a draft's tree holds the most probable paths", "[blockwise]") {
  Table const table{.size = 9, .scale = 3, .order = 1, .has_eos = false};  // depends only on the last token
  for (std::uint64_t source = 0; source < 10; ++source) {
    TableModel<with_trees> model(table);
    TableModel<everything> small(table);
    Speculated drafted(model, DraftModel(small));
    std::size_t looked = 0;
    // Six tokens are possible, and the beam is wide enough for all paths of two.
    Looking looking(drafted, [&](Draft const& one, auto const&...) {
      if (one.tree == nullptr || one.count < 2 || one.tree->nodes < 7) return;
      ++looked;
      auto const next = [&](Token last) {
        std::vector<double> line(9);
        table.log_probs(source, std::vector<Token>{last}, line);
        return line;
      };
      std::vector<std::pair<double, std::vector<Token>>> paths;
      auto const first = next(one.pending.back());
      for (Token a = 3; a < 9; ++a) {
        auto const log_prob = first[static_cast<std::size_t>(a)];
        paths.push_back({log_prob, {a}});
        auto const second = next(a);
        for (Token b = 3; b < 9; ++b) paths.push_back({log_prob + second[static_cast<std::size_t>(b)], {a, b}});
      }
      std::ranges::sort(paths, std::greater<>());
      std::set<std::vector<Token>> expected, found;
      for (std::size_t i = 0; i < 7; ++i) expected.insert(paths[i].second);
      for (std::size_t i = 0; i < one.tokens->size(); ++i) {
        std::vector<Token> path;
        for (auto node = static_cast<std::int32_t>(i); node >= 0;
             node = one.tree->parents[static_cast<std::size_t>(node)])
          path.insert(path.begin(), (*one.tokens)[static_cast<std::size_t>(node)]);
        found.insert(path);
      }
      CHECK(found == expected);
    });
    decode(looking, std::vector<std::uint64_t>{source},
           Blockwise<>{.block = 3, .length = {.max = 20}, .branches = 7, .nodes = 7});
    CHECK(looked > 3);
  }
}

TEST_CASE("look-up guesses what came behind every place, as one trie", "[blockwise]") {
  // Worked out by hand: 4 5 was followed by 6 7, 6 8 and 9; 5 alone also by 3.
  ToldSource reader;
  Speculated lookup(reader, PromptLookup());
  std::vector<Token> const source{4, 5, 6, 7, 4, 5, 6, 8, 4, 5, 9, 5, 3};
  auto const* const pointer = &source;
  Slot const slot = 0;
  lookup.start(std::span(&pointer, 1), std::span(&slot, 1));
  auto const guess = [&](std::int32_t count, std::int32_t nodes, std::int32_t leaves) {
    std::vector<Token> const pending{bos, 4, 5};
    std::vector<Token> tokens;
    DraftTree tree{.nodes = nodes, .leaves = leaves};
    Draft const draft{.pending = pending, .count = count, .tokens = &tokens, .tree = &tree};
    lookup.propose(std::span(&draft, 1));
    if (leaves > 1) REQUIRE(tree.parents.size() == tokens.size());  // a single path needs none
    return std::pair(tokens, tree.parents);
  };
  using Found = std::pair<std::vector<Token>, std::vector<std::int32_t>>;
  // The nearest to the output's position (3 words) comes first: place 2, then 6, then 10; then, after 5 alone, 12.
  CHECK(guess(2, 9, 9) == Found{{6, 7, 8, 9, 5, 3}, {-1, 0, 0, -1, 3, -1}});
  CHECK(guess(1, 9, 9) == Found{{6, 9, 3}, {-1, -1, -1}});
  CHECK(guess(2, 3, 9) == Found{{6, 7, 8}, {-1, 0, 0}});
  CHECK(guess(2, 9, 2) == Found{{6, 7, 8}, {-1, 0, 0}});
  CHECK(guess(3, 9, 1).first == std::vector<Token>{6, 7, 4});
}

TEST_CASE("drawn guesses are kept so that outputs are distributed as the model", "[blockwise]") {
  // The next token depends only on the last one, so each context has its own counts.
  Table const table{.size = 9, .scale = 3, .order = 1, .has_eos = false};
  std::array const others{Table{.size = 9, .scale = 3, .order = 0, .has_eos = false},
                          Table{.size = 9, .scale = 2, .order = 1, .has_eos = false}, table};
  auto const* const more = std::getenv("SLUICE_DRAWS");
  std::size_t const sentences = more == nullptr ? 150 : static_cast<std::size_t>(std::atoll(more));
  constexpr std::int32_t length = 60;
  auto const count = [&](Table const& guesses, std::int32_t branches, Abilities claimed, float temperature,
                         auto&& with) {
    Target model(TableModel<with_trees>(table), claimed);
    TableModel<everything> small(guesses);
    std::vector<TableRequest<Blockwise<acceptance::Rejection>>> requests(sentences);
    for (std::size_t i = 0; i < sentences; ++i) requests[i] = {.source = 1, .seed = 1000 + i};
    Blockwise<acceptance::Rejection> const search{
        .block = 4, .accept = {temperature}, .length = {.max = length}, .branches = branches};
    auto const results = with(model, small, requests, search);
    CHECK(model.report() == "");
    std::vector<std::vector<std::int64_t>> counts(9, std::vector<std::int64_t>(9));
    std::size_t blocks = 0;
    for (auto const& result : results) {
      Token last = -1;
      blocks += result.hypotheses.at(0).blocks.size();
      for (auto const token : result.hypotheses.at(0).tokens) {
        if (last >= 0) ++counts[static_cast<std::size_t>(last)][static_cast<std::size_t>(token)];
        last = token;
      }
    }
    std::vector<double> line(9), probabilities(9);
    for (Token last = 3; last < 9; ++last) {
      table.logits(1, std::vector<Token>{last}, line);
      double sum = 0;
      for (std::size_t v = 0; v < 9; ++v)
        sum += probabilities[v] = std::exp(line[v] / static_cast<double>(temperature));
      for (auto& p : probabilities) p /= sum;
      auto const test = chi_squared(counts[static_cast<std::size_t>(last)], probabilities);
      INFO("after " << last << ", " << test.cells << " cells, " << branches << " branches");
      CHECK(test.cells >= 5);
      CHECK(std::abs(test.z) < 4.5);
    }
    return static_cast<double>(sentences) * length / static_cast<double>(blocks);
  };
  auto const drawing = [](auto& model, auto& small, auto const& requests, auto const& search) {
    Speculated drafted(model, DraftModel(small, {}, search.accept));
    return decode(drafted, requests, search, Batched{.size = 100});
  };
  for (auto const& guesses : others) {
    auto const chain = count(guesses, 1, everything, 1, drawing);
    auto const tree = count(guesses, 4, with_trees, 1, drawing);
    CHECK(count(guesses, 4, everything, 1, drawing) == tree);
    if (&guesses != &others.back()) CHECK(tree > chain);
    else CHECK(chain == 60.0 / 16);  // a draft that draws from p itself is always right: 1 + 15 * 4 tokens
  }
  count(others[1], 3, with_trees, 0.7f, drawing);
  // Guesses without a reported q, with equal and impossible ones among them.
  for (auto const kind : {Branches::best, Branches::mixed, Branches::nonsense})
    count(table, 4, with_trees, 1, [&](auto& model, auto&, auto const& requests, auto const& search) {
      Branching guessing(model, others[0], kind, 3);
      return decode(guessing, requests, search, Batched{.size = 100});
    });
}
