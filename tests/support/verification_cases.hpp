// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random blocks to verify, and Blockwise's results for them.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/cuda/verify/verification.cuh>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace sluice::test {

/// Blocks of several sentences with everything that may occur in a round: guesses outside the vocabulary, eos, ties,
/// lines without a possible token, invalid lines.
class VerificationCase {
 public:
  explicit VerificationCase(std::uint64_t seed) : random_(seed) {
    task.sentences = 1 + below(9);
    task.block = below(6) == 0 ? 1 + below(80) : 1 + below(9);
    task.k = 1 + below(6);
    task.accept = static_cast<cuda::Accept>(below(3));
    task.n = task.accept == cuda::Accept::top_k ? 1 + below(task.k) : below(3);
    if (task.accept != cuda::Accept::exact && below(2) == 0) task.minimum = 1 + below(task.block);
    task.vocabulary_size = 4 + below(20);
    for (auto n = below(3); n > 0; --n) eos.push_back(below(task.vocabulary_size));
    task.eos_count = static_cast<std::int32_t>(eos.size());

    // An order of lines with gaps.
    std::vector<std::int32_t> order(static_cast<std::size_t>(task.sentences));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    named = below(2) == 0;
    if (named) std::shuffle(order.begin(), order.end(), random_);
    first_lines.resize(order.size());
    std::int32_t lines = 0;
    for (auto const sentence : order) {
      if (named) lines += below(3);
      first_lines[static_cast<std::size_t>(sentence)] = lines;
      lines += task.block;
    }
    auto const count = static_cast<std::size_t>(lines);
    auto const good = task.block > 9 ? 1 : 0.5 + 0.5 * static_cast<double>(below(100)) / 100;
    best.resize(count * static_cast<std::size_t>(task.k), {7, 7});
    results.resize(count), guess_log_probs.resize(count, 7);
    for (std::size_t i = 0; i < count; ++i) make_line(i);

    task.guess_stride = task.block - 1 + below(3);
    guesses.resize(static_cast<std::size_t>(task.guess_stride) * order.size() + 1, 3);
    counted = below(2) == 0;
    for (std::int32_t s = 0; s < task.sentences; ++s) {
      counts.push_back(counted ? below(task.block) : task.block - 1);
      for (std::int32_t i = 0; i + 1 < task.block; ++i) make_guess(s, i, good);
    }
    told = task.accept == cuda::Accept::distance || task.minimum > 1 || below(2) == 0;
  }

  /// Verifies one sentence's round with the host's search.
  void check(std::int32_t sentence, std::span<Candidate const> tokens, cuda::Verdict const& verdict) const {
    switch (task.accept) {
      case cuda::Accept::exact: return check(sentence, acceptance::Exact{}, tokens, verdict);
      case cuda::Accept::top_k: return check(sentence, acceptance::TopK{task.n}, tokens, verdict);
      default: return check(sentence, acceptance::Distance{task.n}, tokens, verdict);
    }
  }

  cuda::Verification task;  ///< without pointers
  std::vector<Candidate> best;
  std::vector<cuda::LineResult> results;
  std::vector<float> guess_log_probs;
  std::vector<std::int32_t> first_lines, counts;
  std::vector<Token> guesses, eos;
  bool named, counted, told;  ///< whether first_lines, counts and guess_log_probs are given

 private:
  std::int32_t below(std::int32_t n) { return static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(n)); }

  void make_line(std::size_t line) {
    std::vector<Token> tokens(static_cast<std::size_t>(task.vocabulary_size));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i);
    std::shuffle(tokens.begin(), tokens.end(), random_);
    auto& result = results[line];
    result.count = std::min(task.k, task.vocabulary_size);
    if (below(task.block > 9 ? 120 : 12) == 0) result.count = below(result.count + 1);
    if (below(task.block > 9 ? 600 : 60) == 0) result = {0, 0, 0};
    auto log_prob = -0.125f * static_cast<float>(below(4));
    for (std::int32_t i = 0; i < result.count; ++i, log_prob -= 0.125f * static_cast<float>(below(3)))
      best[line * static_cast<std::size_t>(task.k) + static_cast<std::size_t>(i)] = {
          tokens[static_cast<std::size_t>(i)], log_prob};
  }

  /// Makes guess i and its line.
  void make_guess(std::int32_t sentence, std::int32_t i, double good) {
    auto const line = static_cast<std::size_t>(first_lines[static_cast<std::size_t>(sentence)] + i);
    auto const listed = results[line].count;
    auto const list =
        std::span(best).subspan(line * static_cast<std::size_t>(task.k), static_cast<std::size_t>(listed));
    auto guess = below(task.block > 9 ? 400 : 40) == 0 ? below(3) * 20 - 20 : below(task.vocabulary_size);
    if (listed > 0 && static_cast<double>(below(1000)) < 1000 * good)
      guess = list[static_cast<std::size_t>(below(task.block > 9 ? 30 : 3) == 0 ? below(listed) : 0)].token;
    guesses[static_cast<std::size_t>(sentence * task.guess_stride + i)] = guess;
    auto const at = std::ranges::find(list, guess, &Candidate::token);
    guess_log_probs[line] = at != list.end() ? at->log_prob : -static_cast<float>(3 + below(5));
    if (at == list.end() && (below(5) == 0 || listed == 0))
      guess_log_probs[line] = -std::numeric_limits<float>::infinity();
  }

  template <class A>
  void check(std::int32_t sentence, A const& rule, std::span<Candidate const> tokens,
             cuda::Verdict const& verdict) const {
    auto const at = static_cast<std::size_t>(sentence);
    Vocabulary const vocabulary{.size = task.vocabulary_size, .bos = 0, .eos = eos};
    Blockwise<A> const search{.block = task.block, .accept = rule, .minimum = task.minimum, .length = {.max = 1000}};
    search.check();
    Token const start = 0;
    typename Blockwise<A>::State state;
    search.begin(state, {.vocabulary = &vocabulary, .prompt = {&start, 1}});
    auto const plan = [&] {
      StepPlan step;
      Plan part(step, 0);
      search.plan(state, part);
      return step.queries.size();
    };
    // The first token may be any except eos.
    REQUIRE(plan() == 1);
    Candidate own{0, -1};
    while (std::ranges::find(eos, own.token) != eos.end()) ++own.token;
    Expansion::Entry const first{.best_count = 1};
    REQUIRE(!search.advance(state, {{&first, 1}, {&own, 1}, {}}));

    auto const* const guess = guesses.data() + sentence * task.guess_stride;
    state.guesses.assign(guess, guess + counts[at]);
    auto const lines = plan();
    std::vector<Expansion::Entry> entries;
    auto const first_line = static_cast<std::size_t>(first_lines[at]);
    auto most = static_cast<std::size_t>(task.accept == cuda::Accept::top_k ? task.n : 1);
    for (std::size_t i = 0; i < lines; ++i) {
      auto const& result = results[first_line + i];
      Expansion::Entry entry;
      entry.best = (first_line + i) * static_cast<std::size_t>(task.k);
      entry.best_count = std::min(most, static_cast<std::size_t>(result.count));
      entry.probes = first_line + i, entry.probe_count = !A::lossless && i + 1 < lines ? 1 : 0;
      entry.valid = result.valid != 0;
      entries.push_back(entry);
    }
    Expansion const answer(entries, best, guess_log_probs);
    CHECK(verdict.valid == (answer.valid() ? 1 : 0));
    if (!answer.valid()) {
      CHECK(verdict.kept + verdict.count + verdict.tried + verdict.right + verdict.finished == 0);
      return;
    }
    auto const held = state.held;
    auto const before = state;
    search.advance(state, answer);
    CHECK(verdict.kept == state.held - held - 1);
    CHECK(verdict.kept + 1 == state.blocks.at(0));
    CHECK(verdict.finished == (state.finished ? 1 : 0));
    auto const looked_at = lines > 1 ? 1.0 : 0.0;  // old rounds decay, starting with the first
    CHECK(verdict.tried == std::lround(state.adapting.tried() - before.adapting.tried() * (1 - 0.1 * looked_at)));
    CHECK(verdict.right == std::lround(state.adapting.right() - before.adapting.right() * (1 - 0.1 * looked_at)));
    REQUIRE(verdict.count == static_cast<std::int32_t>(state.tokens.size() - before.tokens.size()));
    for (std::int32_t i = 0; i < verdict.count; ++i) {
      INFO("token " << i);
      auto const place = before.tokens.size() + static_cast<std::size_t>(i);
      CHECK(tokens[static_cast<std::size_t>(i)] == Candidate{state.tokens[place], state.log_probs[place]});
    }
    CHECK(state.ended == (verdict.finished != 0 || verdict.count == verdict.kept));
  }

  std::mt19937_64 random_;
};

}  // namespace sluice::test
