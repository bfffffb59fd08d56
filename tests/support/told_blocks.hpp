// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random inputs of a blockwise search for a sentence, and comparison of its plans.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/search.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::test {

/// A sentence and everything it refers to.
struct ToldBlocks {
  Vocabulary vocabulary{.size = 9, .bos = 0, .never = {0, 8}};
  std::vector<Token> prompt{0}, prefix{};
  double before = 0;
  Sentence sentence{};

  explicit ToldBlocks(std::mt19937_64& random) {
    if (random() % 4 != 0) vocabulary.eos = {1};
    while (random() % 2 == 0) prompt.push_back(static_cast<Token>(2 + random() % 6));
    while (random() % 3 == 0) prefix.push_back(static_cast<Token>(2 + random() % 6));
    before = -static_cast<double>(random() % 16) / 4;
    sentence = {
        .vocabulary = &vocabulary,
        .prompt = prompt,
        .prefix = prefix,
        .last = prefix.empty() ? prompt.back() : prefix.back(),
        .held = static_cast<std::int32_t>(prompt.size() + prefix.size()) - 1,
        .prefix_log_prob = &before,
        .seed = random(),
        .abilities = {.ragged = random() % 2 == 0, .blocks = true, .roll_back = true, .trees = random() % 2 == 0}};
  }
};

/// Totals over all sentences.
struct SeenBlocks {
  std::size_t ended = 0, full = 0, stuck = 0, left = 0;
  std::size_t kept = 0, forked = 0, forced = 0, measured = 0, lost = 0;
};

/// Makes `count` guesses, some of them invalid; if `drawn`, with the distributions they were drawn from.
inline void make_guesses(std::mt19937_64& random, std::int32_t count, bool branch, bool drawn,
                         std::vector<Token>& guesses, DraftTree& tree) {
  auto const below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (std::int32_t i = 0; i < count; ++i) {
    guesses.push_back(below(20) == 0 ? 9 : below(8) == 0 ? 1 : 2 + below(4));
    if (branch) tree.parents.push_back(below(2) == 0 ? below(i + 1) - 1 : i - 1);
    if (!drawn) continue;
    tree.drawn.push_back({static_cast<std::int32_t>(tree.candidates.size()), 2});
    tree.candidates.push_back({guesses.back(), -0.5f});
    tree.candidates.push_back({below(9) == 0 ? -1 + 10 * below(2) : 2 + below(6), -1.0f});
  }
}

/// Checks that rows and queries are the same.
inline void check_same_plans(StepPlan const& wants, StepPlan const& expects) {
  REQUIRE((wants.rows.size() == expects.rows.size() && wants.queries.size() == expects.queries.size()));
  for (std::size_t i = 0; i < wants.rows.size(); ++i) {
    auto const &a = wants.rows[i], &b = expects.rows[i];
    CHECK((a.from == b.from && a.to == b.to && a.length == b.length && a.lines == b.lines));
    CHECK((std::ranges::equal(a.tokens, b.tokens) && (a.depths == nullptr) == (b.depths == nullptr)));
    if (a.depths != nullptr) CHECK(std::equal(a.depths, a.depths + a.tokens.size(), b.depths));
  }
  for (std::size_t i = 0; i < wants.queries.size(); ++i) {
    auto const &a = wants.queries[i], &b = expects.queries[i];
    CHECK((a.best == b.best && a.mass == b.mass && a.noise == b.noise && a.temperature == b.temperature));
    CHECK((a.stage == b.stage && a.normalise == b.normalise && std::ranges::equal(a.probes, b.probes)));
    CHECK(std::ranges::equal(a.edits, b.edits, [](Edit const& x, Edit const& y) { return x.token == y.token; }));
  }
}

}  // namespace sluice::test
