// SPDX-License-Identifier: Apache-2.0
// Trees of guesses: as one row and as forks, with any proposer.
#include <sluice/decode/schedule.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/branching.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using TreeTable = TableModel<with_trees>;

/// The claims that a model with blocks and roll-back may make in addition.
constexpr std::array shapes{Abilities{.blocks = true, .roll_back = true},
                            Abilities{.ragged = true, .blocks = true, .roll_back = true},
                            Abilities{.blocks = true, .roll_back = true, .trees = true}, with_trees};
constexpr std::array kinds{Branches::best, Branches::mixed, Branches::nonsense, Branches::chain};

Table table_of(std::mt19937_64& random) { return any_table(random, 10, 5); }

/// After an even token only 3, 4 and eos are allowed; after others all but 6.
struct NowAndThen {
  struct State {
    Token last;
    std::int32_t size;  // vocabulary size
  };
  State initial(Sentence const& sentence) const { return {-1, sentence.vocabulary->size}; }
  State next(State const& state, Token token) const { return {token, state.size}; }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t) const {
    if (state.last < 0) return nullptr;
    TokenSet set(state.size);
    for (Token token = eos; token < state.size; ++token)
      if (state.last % 2 == 0 ? token <= 4 : token != 6) set.insert(token);
    return std::make_shared<TokenSet const>(std::move(set));
  }
  void require_possible(State const&, Output const&, std::int32_t) const {}
};

template <class S>
std::vector<TableRequest<S>> tree_requests(std::uint64_t seed, Table const& table, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<TableRequest<S>> requests(count);
  for (auto& request : requests) {
    request.source = random(), request.seed = random();
    if (random() % 3 == 0)
      for (auto n = random() % 4; n > 0; --n)
        request.prefix.push_back(static_cast<Token>(3 + random() % static_cast<std::uint64_t>(table.size - 3)));
    if (random() % 4 == 0) request.prompt = {bos, 3, 4};
  }
  return requests;
}

template <class S, class P>
std::vector<Result> branched(Abilities claimed, Table const& table, Table const& guesses, Branches kind,
                             std::vector<TableRequest<S>> const& requests, S const& search, P const& schedule,
                             Counters* counters = nullptr, Limits const& limits = {}) {
  CheckedModel<TreeTable> model(TreeTable(table, {.limits = limits}), claimed);
  Branching guessing(model, guesses, kind, 5);
  auto results = decode(guessing, requests, search, schedule);
  CHECK(model.report() == "");
  if (counters != nullptr) *counters = model.counters();
  return results;
}

}  // namespace

TEST_CASE("trees of guesses give greedy's output, bit for bit, as rows and as forks", "[blockwise]") {
  std::mt19937_64 random(1);
  std::size_t blocks = 0, tokens = 0;
  for (int round = 0; round < 60; ++round) {
    auto const table = table_of(random);
    auto guesses = random() % 2 == 0 ? table : table_of(random);
    guesses.size = table.size, guesses.has_eos = table.has_eos;
    LengthLimits const length{.min = static_cast<std::int32_t>(random() % 5),
                              .max = static_cast<std::int32_t>(5 + random() % 20)};
    auto const seed = random();
    auto const greedy = run<everything>(table, tree_requests<Greedy>(seed, table, 8), Greedy{.length = length});
    auto const requests = tree_requests<Blockwise<>>(seed, table, 8);
    Blockwise<> const search{.block = static_cast<std::int32_t>(1 + random() % 6),
                             .length = length,
                             .adaptive = random() % 4 == 0,
                             .cost = 0.02,
                             .branches = static_cast<std::int32_t>(1 + random() % 6),
                             .nodes = static_cast<std::int32_t>(random() % 12)};
    for (auto const kind : kinds) {
      std::vector<Result> first;
      for (auto const claimed : shapes) {
        auto const check = [&](std::vector<Result> const& found) {
          REQUIRE(found.size() == greedy.size());
          for (std::size_t i = 0; i < found.size(); ++i) {
            CHECK(same_outputs(found[i], greedy[i]));
            if (!first.empty()) CHECK(identical(found[i], first[i]));  // the same blocks, however they are verified
            if (!found[i].ok()) continue;
            auto const& h = found[i].hypotheses.at(0);
            auto const settled = std::accumulate(h.blocks.begin(), h.blocks.end(), 0);
            CHECK(settled == static_cast<std::int32_t>(h.tokens.size() - requests[i].prefix.size()));
            for (auto const block : h.blocks) CHECK((block >= 1 && block <= search.block));
            if (kind != Branches::nonsense) blocks += h.blocks.size(), tokens += h.tokens.size();
          }
        };
        auto const found = branched(claimed, table, guesses, kind, requests, search, Batched{.size = 1 + random() % 8});
        check(found);
        if (first.empty()) first = found;
        check(branched(claimed, table, guesses, kind, requests, search, Streaming{.size = 1 + random() % 5}));
      }
    }
  }
  CHECK(tokens > blocks * 5 / 4);
}

TEST_CASE("a tree that does not branch is a chain, call for call", "[blockwise]") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 30; ++round) {
    auto const table = table_of(random);
    auto const requests = tree_requests<Blockwise<>>(random(), table, 6);
    Blockwise<> search{.block = 5, .length = {.max = 20}};
    Counters chain, tree;
    auto const expected = branched(with_trees, table, table, Branches::chain, requests, search, Batched{3}, &chain);
    for (auto const claimed : {everything, with_trees}) {
      search.branches = 4;
      auto const found = branched(claimed, table, table, Branches::chain, requests, search, Batched{3}, &tree);
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(identical(found[i], expected[i]));
      CHECK(tree.steps == chain.steps);
      CHECK(tree.rows == chain.rows);
      CHECK(tree.tokens == chain.tokens);
      CHECK(tree.lines == chain.lines);
      CHECK(tree.forks == 0);
    }
  }
}

TEST_CASE("nodes bound a chain too", "[blockwise]") {
  std::mt19937_64 random(5);
  for (std::int32_t nodes = 1; nodes <= 4; ++nodes) {
    auto const table = table_of(random);
    auto const requests = tree_requests<Blockwise<>>(random(), table, 5);
    Blockwise<> const shorter{.block = nodes + 1, .length = {.max = 20}};
    Blockwise<> const bounded{.block = 6, .length = {.max = 20}, .nodes = nodes};
    Counters fewer, counted;
    auto const expected = branched(everything, table, table, Branches::chain, requests, shorter, Batched{3}, &fewer);
    auto const found = branched(everything, table, table, Branches::chain, requests, bounded, Batched{3}, &counted);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(identical(found[i], expected[i]));
    CHECK(counted.tokens == fewer.tokens);
    CHECK(counted.steps == fewer.steps);
  }
}

TEST_CASE("a tree takes no more slots, tokens and room than it may", "[blockwise]") {
  std::mt19937_64 random(3);
  std::size_t forks = 0;
  for (int round = 0; round < 40; ++round) {
    auto const table = table_of(random);
    Blockwise<> const search{.block = static_cast<std::int32_t>(2 + random() % 5),
                             .length = {.max = 30},
                             .branches = static_cast<std::int32_t>(2 + random() % 4),
                             .nodes = static_cast<std::int32_t>(1 + random() % 12)};
    auto const longest = static_cast<std::int32_t>(8 + random() % 20);
    auto const kind = kinds[random() % kinds.size()];
    Limits const limits{.slot_count = search.branches + static_cast<std::int32_t>(random() % 9), .length = longest};
    auto const requests = tree_requests<Blockwise<>>(random(), table, 7);
    for (auto const claimed : shapes) {
      Counters counters;
      auto const found = branched(claimed, table, table, kind, requests, search, Batched{.size = 4}, &counters, limits);
      CheckedModel<TreeTable> alone(TreeTable(table, {.limits = limits}), claimed);
      std::vector<TableRequest<Greedy>> same(requests.size());
      for (std::size_t i = 0; i < same.size(); ++i)
        same[i].source = requests[i].source, same[i].prefix = requests[i].prefix, same[i].prompt = requests[i].prompt;
      auto const expected = decode(alone, same, Greedy{.length = {.max = 30}});
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
      CHECK(counters.most_slots <= static_cast<std::size_t>(limits.slot_count));
      if (claimed.trees) CHECK(counters.forks == 0);
      forks += counters.forks;
    }
    // Little room for tokens: sentences wait, and none fails. Tokens that a tree feeds but does not keep count too.
    Limits const tight{.length = 40, .tokens = 150};
    for (auto const claimed : {everything, with_trees}) {
      auto const found = branched(claimed, table, table, kind, requests, search, Batched{.size = 4}, nullptr, tight);
      for (auto const& result : found) CHECK(result.ok());
    }
  }
  CHECK(forks > 100);
}

TEST_CASE("sampled trees are what Sample draws; rules hold in every branch", "[blockwise]") {
  std::mt19937_64 random(4);
  std::size_t forks = 0;
  for (int round = 0; round < 25; ++round) {
    auto const table = table_of(random);
    auto const seed = random();
    LengthLimits const length{.min = 2, .max = 16};
    auto const kind = kinds[random() % kinds.size()];
    auto const branches = static_cast<std::int32_t>(2 + random() % 4);
    acceptance::Sampling const rule{{.temperature = 0.7f, .top_k = static_cast<std::int32_t>(random() % 4)}};
    auto const drawn = run<everything>(table, tree_requests<Sample>(seed, table, 6),
                                       Sample{.temperature = 0.7f, .top_k = rule.sample.top_k, .length = length});
    using Now = Processed<Greedy>;
    using NowInBlocks = Processed<Blockwise<>>;
    auto const now = run<everything>(table, tree_requests<Now>(seed, table, 6), Now{Greedy{.length = length}, {}});
    using Never = Processed<Greedy>;
    using NeverInBlocks = Processed<Blockwise<>>;
    auto const kept =
        run<everything>(table, tree_requests<Never>(seed, table, 6), Never{Greedy{.length = length}, NoRepeatNgram{2}});
    for (auto const claimed : {everything, with_trees}) {
      auto const sampled =
          branched(claimed, table, table, kind, tree_requests<Blockwise<acceptance::Sampling>>(seed, table, 6),
                   Blockwise<acceptance::Sampling>{.block = 4, .accept = rule, .length = length, .branches = branches},
                   Streaming{.size = 3});
      auto const ruled =
          branched(claimed, table, table, kind, tree_requests<NeverInBlocks>(seed, table, 6),
                   NeverInBlocks{Blockwise<>{.block = 4, .length = length, .branches = branches}, NoRepeatNgram{2}},
                   Batched{.size = 4});
      Counters counters;
      auto const restricted = branched(claimed, table, table, kind, tree_requests<NowInBlocks>(seed, table, 6),
                                       NowInBlocks{Blockwise<>{.block = 4, .length = length, .branches = branches}, {}},
                                       Batched{.size = 4}, &counters);
      forks += counters.forks;
      for (std::size_t i = 0; i < sampled.size(); ++i) {
        CHECK(same_outputs(restricted[i], now[i]));
        CHECK(same_outputs(sampled[i], drawn[i]));
        CHECK(same_outputs(ruled[i], kept[i]));
      }
    }
  }
  CHECK(forks > 200);  // a rule that restricts always leaves some trees branching
}

namespace {

/// Mistakes in handling trees.
enum class Mistake : std::uint8_t { none, chain, last_path };

/// A table that treats trees as chains, or keeps their last path.
struct Careless {
  using Source = std::uint64_t;
  static constexpr Abilities abilities = with_trees;
  TreeTable model;
  Mistake mistake = Mistake::none;

  Vocabulary vocabulary() const { return model.vocabulary(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) { model.start(sources, slots); }
  Scores<float> step(std::span<Row const> rows) {
    std::vector<Row> changed(rows.begin(), rows.end());
    for (auto& row : changed)
      if (mistake == Mistake::chain) row.depths = nullptr;
    auto answer = model.step(changed);
    if (mistake != Mistake::last_path) return answer;
    lines.assign(answer.data, answer.data + answer.rows * answer.columns);
    for (auto const& row : rows) {
      if (row.depths == nullptr) continue;
      std::vector<Token> path;
      for (std::size_t i = 0; i < row.tokens.size(); ++i)
        path.resize(static_cast<std::size_t>(row.depths[i])), path.push_back(row.tokens[i]);
      Row const again{row.to, row.to, row.length, path};
      static_cast<void>(model.step(std::span(&again, 1)));
    }
    return scores(lines.data(), answer.rows, answer.columns);
  }
  std::vector<float> lines{};
};

bool says(std::string const& text, std::vector<std::string> const& parts) {
  return std::ranges::all_of(parts, [&](auto const& part) { return text.find(part) != std::string::npos; });
}
template <class F>
std::string error(F&& f) {
  try {
    f();
  } catch (std::exception const& thrown) {
    return thrown.what();
  }
  return {};
}

std::string checked_trees(Mistake mistake) {
  Table const table{.size = 9, .scale = 4, .eos_bias = -3};
  Careless model{TreeTable(table), mistake};
  Checked checked(model, {.every = 2, .tolerance = 0});
  Branching guessing(checked, table, Branches::best, 3);
  auto const results = decode(guessing, std::vector<std::uint64_t>{1, 2, 3, 4},
                              Blockwise<>{.block = 4, .length = {.max = 12}, .branches = 4}, Batched{.size = 3});
  if (mistake == Mistake::none)
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(same_outputs(results[i], run_one<everything>(table, i + 1, Greedy{.length = {.max = 12}})));
  return checked.violations().empty() ? "" : checked.violations().front();
}

}  // namespace

TEST_CASE("Checked knows rows that branch", "[blockwise]") {
  CHECK(checked_trees(Mistake::none) == "");
  CHECK(says(checked_trees(Mistake::chain), {"clause 12: a tree gives other lines"}));
  CHECK(says(checked_trees(Mistake::last_path), {"clause 12: a slot does not hold the first path"}));
}

TEST_CASE("rows that branch are refused where they make no sense", "[blockwise]") {
  std::uint64_t const source = 1;
  auto const* const pointer = &source;
  Slot const slot = 0;
  std::vector<Token> const tokens{bos, 3, 4};
  auto const refused = [&](Abilities claimed, std::vector<std::int32_t> const& depths) {
    CheckedModel<TreeTable> model(TreeTable(Table{}), claimed);
    model.start(std::span(&pointer, 1), std::span(&slot, 1));
    Row const row{0, 0, 0, tokens, 1, depths.data()};
    try {
      static_cast<void>(model.step(std::span(&row, 1)));
    } catch (std::logic_error const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(with_trees, {0, 1, 1}) == "");
  CHECK(refused(with_trees, {0, 0, 1}) == "");
  CHECK(says(refused(everything, {0, 1, 1}), {"clause 12", "takes no trees"}));
  CHECK(says(refused(with_trees, {1, 1, 2}), {"depth 1 behind depth -1"}));
  CHECK(says(refused(with_trees, {0, 1, 3}), {"depth 3 behind depth 1"}));
  CHECK(says(refused(with_trees, {0, -1, 0}), {"depth -1 behind depth 0"}));
}

TEST_CASE("options of trees are checked", "[blockwise]") {
  CHECK(says(error([] { Blockwise<>{.branches = 0}.check(); }), {"branches", "0"}));
  CHECK(says(error([] { Blockwise<>{.nodes = -2}.check(); }), {"nodes", "-2"}));
  CHECK(says(error([] { Blockwise<acceptance::Rejection>{.accept = {-1}}.check(); }), {"accept.temperature"}));
}
