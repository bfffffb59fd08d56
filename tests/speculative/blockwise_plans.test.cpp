// SPDX-License-Identifier: Apache-2.0
// Blocks without a decoder: every draft, plan and result against a plain account, with one state and one result for all
// sentences. Trees and acceptance rules are taken from the library; guess_trees and acceptance test them.
#include <sluice/speculative/blockwise.hpp>

#include <support/block_account.hpp>
#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

using namespace sluice;
using namespace sluice::test;

namespace {

template <class A>
SeenBlocks run_all(std::uint64_t key, auto&& rule) {
  std::mt19937_64 random(key);
  typename Blockwise<A>::State state;
  Result result;
  SeenBlocks seen;
  for (int round = 0; round < 1200; ++round) {
    ToldBlocks const told(random);
    auto const below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
    auto const prefix = static_cast<std::int32_t>(told.prefix.size());
    auto const max = prefix + (prefix == 0 ? below(16) : 1 + below(16));
    Blockwise<A> search{.block = 1 + below(5), .accept = rule(random)};
    search.length = {.min = below(4) == 0 ? std::min(max, below(9)) : 0, .max = max};
    if (!A::lossless) search.minimum = 1 + below(static_cast<std::uint64_t>(search.block));
    search.adaptive = below(3) == 0;
    if (search.cost == 0) search.cost = below(2) == 0 ? 0 : 0.05;
    if (below(3) != 0) search.branches = 2 + below(3);
    if (below(2) == 0) search.nodes = 1 + below(7);
    search.check();
    CHECK(search.slot_count() == search.branches);
    INFO("round " << round << ", block " << search.block << ", branches " << search.branches << ", max " << max);
    BlockAccount<A> account{search, told, random, state, seen, search.length.min, max};
    search.begin(state, told.sentence);
    if (max == 0) {
      StepPlan wants;
      Plan plan(wants, 0);
      search.plan(state, plan);
      CHECK((wants.rows.empty() && wants.queries.empty()));
      CHECK(search.advance(state, Expansion()));
      account.ended = true;
    }
    for (auto steps = 1 + below(16); steps > 0 && !account.ended; --steps)
      if (!account.step() && below(6) != 0) account.draft();
    Draft draft;
    if (account.ended && below(2) == 0) CHECK_FALSE(search.draft(state, draft));
    if (Draft none; account.size() == max) CHECK((!search.draft(state, none) && none.count == 0));
    account.check(result);
  }
  CHECK((seen.kept > 300 && seen.forked > 100 && seen.lost > 100));
  return seen;
}

}  // namespace

TEST_CASE("blocks draft, plan and answer as told, whatever state and result held before", "[blockwise_plans]") {
  CHECK(run_all<acceptance::Exact>(1, [](auto&) { return acceptance::Exact{}; }).measured > 0);
  CHECK(run_all<acceptance::TopK>(2, [](auto& random) {
          return acceptance::TopK{1 + static_cast<std::int32_t>(random() % 3)};
        }).forced > 50);
  CHECK(run_all<acceptance::Distance>(3, [](auto& random) {
          return acceptance::Distance{static_cast<std::int32_t>(random() % 3)};
        }).forced > 50);
  run_all<acceptance::Sampling>(4, [](auto& random) {
    return acceptance::Sampling{{.temperature = 0.5f, .top_k = static_cast<std::int32_t>(random() % 4)}};
  });
  run_all<acceptance::Rejection>(5, [](auto&) { return acceptance::Rejection{}; });
}

TEST_CASE("who has not been asked for long is asked for one guess", "[blockwise_plans]") {
  Vocabulary const vocabulary{.size = 4, .bos = 3, .never = {3}};
  std::vector<Token> const prompt{3};
  Blockwise<> const search{.length = {.max = 200}, .adaptive = true, .cost = 10};  // guesses never pay
  Blockwise<>::State state;
  search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt, .last = 3});
  for (int round = 0; round < 140; ++round) {
    StepPlan step;
    Plan plan(step, 0);
    search.plan(state, plan);
    std::vector<Candidate> const best{{1, -1}};
    std::vector<Expansion::Entry> const entries{{.best_count = 1}};
    REQUIRE_FALSE(search.advance(state, Expansion(entries, best, {})));
    Draft draft;
    CHECK(search.draft(state, draft) == (round % 65 == 64));
    CHECK(draft.count == (round % 65 == 64 ? 1 : 0));
  }
}

TEST_CASE("token 0 may be a token like others", "[blockwise_plans]") {
  Vocabulary const vocabulary{.size = 4, .bos = 3, .eos = {2}, .never = {3}};
  std::vector<Token> const prompt{3};
  Blockwise<> const search;
  Blockwise<>::State state;
  search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt, .last = 3});
  for (Token const token : {0, 1, 0, 2}) {
    StepPlan step;
    Plan plan(step, 0);
    search.plan(state, plan);
    std::vector<Candidate> const best{{token, -1}};
    std::vector<Expansion::Entry> const entries{{.best_count = 1}};
    CHECK(search.advance(state, Expansion(entries, best, {})) == (token == 2));
  }
  Result result;
  search.finish(state, result);
  CHECK(result.hypotheses.at(0).tokens == std::vector<Token>{0, 1, 0, 2});
}

TEST_CASE("options of blocks are what their documentation says, and within bounds", "[blockwise_plans]") {
  auto const complaint = [](auto const& search) {
    try {
      search.check();
    } catch (std::invalid_argument const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto const has = [](std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
  };
  Blockwise<> const plain;
  CHECK((plain.block == 4 && plain.minimum == 1 && plain.branches == 1 && plain.nodes == 0 && plain.cost == 0));
  CHECK((Blockwise<acceptance::Sampling>{}.cost == 0 && Blockwise<acceptance::TopK>{}.cost == 0.25 &&
         Blockwise<acceptance::Rejection>{}.cost == 0.25));
  CHECK((acceptance::TopK{}.n == 2 && acceptance::Distance{}.epsilon == 2 && acceptance::Rejection{}.temperature == 1));
  acceptance::Sampling const sampling;
  CHECK((sampling.sample.temperature == 1 && sampling.sample.top_k == 0));
  auto const number = std::numeric_limits<double>::infinity();
  CHECK(complaint(Blockwise<>{.block = 1, .branches = 1, .nodes = 0}).empty());
  CHECK(complaint(Blockwise<acceptance::TopK>{.accept = {1}, .minimum = 4}).empty());
  CHECK(complaint(Blockwise<acceptance::Distance>{.accept = {0}, .cost = 0.01}).empty());
  CHECK(has(complaint(Blockwise<acceptance::TopK>{.minimum = 0}), "minimum = 0"));
  CHECK(has(complaint(Blockwise<acceptance::TopK>{.minimum = 5}), "between 1 and the block"));
  CHECK(has(complaint(Blockwise<>{.minimum = 2}), "choose acceptance::TopK or acceptance::Distance"));
  CHECK(has(complaint(Blockwise<>{.cost = number}), "cost = inf"));
  CHECK(has(complaint(Blockwise<>{.cost = std::nan("")}), "cost = "));
  CHECK(has(complaint(Blockwise<>{.cost = -0.5}), "must be a number >= 0"));
  CHECK(has(complaint(Blockwise<acceptance::TopK>{.cost = 0}), "must be given"));
  CHECK(has(complaint(Blockwise<acceptance::Rejection>{.cost = 0}), "must be given"));
  CHECK(has(complaint(Blockwise<>{.block = 0}), "block = 0"));
  CHECK(has(complaint(Blockwise<>{.branches = 0}), "branches = 0"));
  CHECK(has(complaint(Blockwise<>{.nodes = -1}), "nodes = -1"));
  CHECK(has(complaint(Blockwise<acceptance::TopK>{.accept = {0}}), "accept.n = 0"));
  CHECK(has(complaint(Blockwise<>{.length = {.max = -1}}), "length.max = -1"));
}
