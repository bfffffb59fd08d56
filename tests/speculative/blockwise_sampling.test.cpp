// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/schedule.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/chi_squared.hpp>
#include <support/decoding.hpp>
#include <support/guessing.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using CheckedGuess = CheckedTable<everything>;
template <class Choice>
using Drafted = Speculated<CheckedGuess, DraftModel<CheckedGuess, LogSoftmaxTopK, Choice>>;

}  // namespace

TEST_CASE("sampled blocks are what Sample draws with the same seed, whoever guesses", "[blockwise]") {
  std::mt19937_64 random(1);
  std::size_t right_twin = 0, right_greedy = 0, rounds_twin = 0, rounds_greedy = 0;
  for (int round = 0; round < 60; ++round) {
    Table const table{.size = 10, .scale = 4, .eos_bias = -2, .eos_slope = 0.1, .order = 2};
    acceptance::Sampling rule{{.temperature = 0.5f + 0.25f * static_cast<float>(random() % 5)}};
    if (random() % 2 == 0) rule.sample.top_k = static_cast<std::int32_t>(1 + random() % 5);
    if (random() % 2 == 0) rule.sample.top_p = 0.8f;
    if (random() % 3 == 0) rule.sample.min_p = 0.1f;
    if (random() % 3 == 0) rule.sample.typical = 0.9f;
    LengthLimits const length{.min = static_cast<std::int32_t>(random() % 4), .max = 20};
    std::vector<std::uint64_t> seeds(9);
    for (auto& seed : seeds) seed = random();
    CheckedGuess model{TableModel<everything>(table)}, draft{TableModel<everything>(table)};
    auto const expected = decode(model, seeds,
                                 Sample{.temperature = rule.sample.temperature,
                                        .top_k = rule.sample.top_k,
                                        .top_p = rule.sample.top_p,
                                        .min_p = rule.sample.min_p,
                                        .typical = rule.sample.typical,
                                        .length = length});
    Blockwise<acceptance::Sampling> const search{
        .block = static_cast<std::int32_t>(1 + random() % 6), .accept = rule, .length = length};
    auto const check = [&](auto& proposing, std::size_t& tokens, std::size_t& rounds) {
      auto const found = decode(proposing, seeds, search, Streaming{.size = 4});
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(same_outputs(found[i], expected[i]));
        tokens += found[i].hypotheses.at(0).tokens.size(), rounds += found[i].hypotheses[0].blocks.size();
      }
    };
    std::size_t unused = 0;
    Drafted<acceptance::Sampling> twin(model, DraftModel(draft, {}, rule));
    Drafted<acceptance::Exact> greedy(model, DraftModel(draft));
    check(twin, right_twin, rounds_twin);
    check(greedy, right_greedy, rounds_greedy);
    Guessing terrible(greedy, Guesses::random, 3);
    check(terrible, unused, unused);
    CHECK(model.report() == "");
    CHECK(draft.report() == "");
  }
  // A draft that draws with the same noise is accepted more often than one that takes its best token.
  CHECK(right_twin * rounds_greedy > right_greedy * rounds_twin);
}

TEST_CASE("sampled blocks are distributed as the model: a million draws", "[blockwise]") {
  Table const table{.size = 9, .scale = 3, .order = 1, .has_eos = false};  // depends only on the last token
  Table const other{.size = 9, .scale = 3, .order = 0, .has_eos = false};
  constexpr std::int32_t length = 100;
  constexpr std::size_t sentences = 5000;
  auto const count = [&](Table const& drafts, Guesses kind) {
    TableModel<everything> model(table), draft(drafts);
    Speculated drafted(model, DraftModel(draft, LogSoftmaxTopK{}, acceptance::Sampling{}));
    Guessing guessing(drafted, kind, 11);
    std::vector<TableRequest<Blockwise<acceptance::Sampling>>> requests(sentences);
    for (std::size_t i = 0; i < sentences; ++i) requests[i] = {.source = 1, .seed = 1000 + i};
    auto const results =
        decode(guessing, requests, Blockwise<acceptance::Sampling>{.block = 4, .length = {.max = length}},
               Batched{.size = 500});
    std::vector<std::vector<std::int64_t>> counts(9, std::vector<std::int64_t>(9));
    for (auto const& result : results) {
      Token last = -1;
      for (auto const token : result.hypotheses.at(0).tokens) {
        if (last >= 0) ++counts[static_cast<std::size_t>(last)][static_cast<std::size_t>(token)];
        last = token;
      }
    }
    std::vector<double> line(9), probabilities(9);
    for (Token last = 3; last < 9; ++last) {
      table.log_probs(1, std::vector<Token>{last}, line);
      for (std::size_t v = 0; v < 9; ++v) probabilities[v] = std::exp(line[v]);
      auto const test = chi_squared(counts[static_cast<std::size_t>(last)], probabilities);
      INFO("after " << last << ", " << test.cells << " cells");
      CHECK(test.cells >= 5);
      CHECK(std::abs(test.z) < 4.5);
    }
  };
  count(table, Guesses::as_they_are);
  count(other, Guesses::corrupted);
}
