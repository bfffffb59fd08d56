// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 12, .scale = 3, .eos_bias = -2, .eos_slope = 0.3};

DiverseBeamSearch diverse(std::int32_t width, std::int32_t groups, double penalty) {
  return {.search = {.width = width, .n_best = width, .length = {.max = 12}},
          .groups = groups,
          .penalty = penalty,
          .n_best = width * groups};
}

/// Groups of one hypothesis each, restated: one greedy search after another, with each step's tokens penalised in later
/// groups.
std::vector<std::vector<Token>> greedy_groups(std::uint64_t seed, int groups, double penalty, std::size_t longest) {
  std::vector<std::vector<Token>> outputs(static_cast<std::size_t>(groups));
  std::vector<bool> over(outputs.size());
  std::vector<double> line(static_cast<std::size_t>(table.size));
  for (std::size_t step = 0; step < longest; ++step) {
    std::vector<Token> taken;
    for (std::size_t g = 0; g < outputs.size(); ++g) {
      if (over[g]) continue;
      table.log_probs(seed, outputs[g], line);
      Token best = eos, second = -1;  // second: the best that is no end
      auto most = -1e9, most_of_others = -1e9;
      for (Token v = eos; v < table.size; ++v) {
        if (step + 1 == longest && v != eos) continue;
        auto const cost =
            step + 1 == longest ? 0.0 : penalty * static_cast<double>(std::count(taken.begin(), taken.end(), v));
        auto const value = line[static_cast<std::size_t>(v)] - cost;
        if (value > most) most = value, best = v;
        if (v != eos && value > most_of_others) most_of_others = value, second = v;
      }
      outputs[g].push_back(best);
      over[g] = best == eos;
      if (second >= 0) taken.push_back(second);  // what goes on, if the group does
    }
  }
  return outputs;
}

}  // namespace

TEST_CASE("one group, or no penalty, is plain beam search", "[diverse]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto const plain_result =
        run_one<everything>(table, seed, BeamSearch{.width = 3, .n_best = 3, .length = {.max = 12}});
    CHECK(identical(run_one<everything>(table, seed, diverse(3, 1, 0.7)), plain_result));
    auto const twice = run_one<everything>(table, seed, diverse(3, 2, 0));
    REQUIRE(twice.hypotheses.size() == 2 * plain_result.hypotheses.size());
    for (std::size_t i = 0; i < plain_result.hypotheses.size(); ++i) {
      CHECK(twice.hypotheses[2 * i].tokens == plain_result.hypotheses[i].tokens);
      CHECK(twice.hypotheses[2 * i + 1].score == plain_result.hypotheses[i].score);
    }
  }
}

TEST_CASE("groups of one hypothesis are greedy searches that avoid each other", "[diverse]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto const result = run_one<everything>(table, seed, diverse(1, 4, 0.9));
    REQUIRE(result.ok());
    std::multiset<std::vector<Token>> found;
    for (auto const& h : result.hypotheses) found.insert(h.tokens);
    auto const expected = greedy_groups(seed, 4, 0.9, 12);
    CHECK(found == std::multiset<std::vector<Token>>(expected.begin(), expected.end()));
  }
}

TEST_CASE("a penalty makes the list more diverse", "[diverse]") {
  std::size_t plain_distinct = 0, distinct = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const count = [](Result const& result) {
      std::set<Token> first;
      for (auto const& h : result.hypotheses) first.insert(h.tokens[0]);
      return first.size();
    };
    plain_distinct +=
        count(run_one<everything>(table, seed, BeamSearch{.width = 6, .n_best = 6, .length = {.max = 12}}));
    distinct += count(run_one<everything>(table, seed, diverse(2, 3, 2)));
  }
  CHECK(distinct > plain_distinct);
}

TEST_CASE("diverse groups do not depend on batch or abilities", "[diverse]") {
  auto const search = diverse(2, 3, 0.6);
  auto const all = [&]<Abilities A>(std::size_t batch) {
    std::vector<TableRequest<DiverseBeamSearch>> requests;
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      requests.push_back({.source = seed, .prefix = seed % 3 == 0 ? std::vector<Token>{4, 5} : std::vector<Token>{}});
    return run<A>(table, requests, search, Batched{.size = batch});
  };
  auto const expected = all.operator()<everything>(1);
  for_pairs_of_abilities([&]<Abilities A>() {
    for (std::size_t const batch : {1u, 6u, 20u}) {
      auto const found = all.template operator()<A>(batch);
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(identical(found[i], expected[i]));
    }
  });
}

TEST_CASE("the first group is the plain search of its width, whatever that search's options", "[diverse]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (auto search : {presets::huggingface(3), presets::varstream(4, 1.5, 2), presets::ctranslate2(3)}) {
      search.n_best = search.width, search.length.max = 6;
      DiverseBeamSearch const one{.search = search, .groups = 1, .n_best = search.width};
      CHECK(identical(run_one<everything>(table, seed, one), run_one<everything>(table, seed, search)));
      auto const plain_result = run_one<everything>(table, seed, search);
      DiverseBeamSearch const two{.search = search, .groups = 2, .penalty = 1, .n_best = 2 * search.width};
      auto const both = run_one<everything>(table, seed, two);
      for (auto const& h : plain_result.hypotheses)
        CHECK(std::any_of(both.hypotheses.begin(), both.hypotheses.end(),
                          [&](Hypothesis const& other) { return other.tokens == h.tokens && other.score == h.score; }));
    }
}

TEST_CASE("diverse groups refuse what makes no sense", "[diverse]") {
  CHECK_THROWS_AS(diverse(2, 0, 1).check(), std::invalid_argument);
  CHECK_THROWS_AS(diverse(2, 2, -1).check(), std::invalid_argument);
  auto search = diverse(2, 2, 1);
  search.n_best = 5;
  CHECK_THROWS_AS(search.check(), std::invalid_argument);
}
