// SPDX-License-Identifier: Apache-2.0
// Searches of one row without a decoder: every plan and every result against a plain account, with one state and one
// result for all sentences.
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace sluice;

namespace {

/// A sentence and everything it refers to.
struct Told {
  Vocabulary vocabulary{.size = 9, .bos = 0, .never = {0, 8}};
  std::vector<Token> prompt{0}, prefix{};
  double before = 0;

  explicit Told(std::mt19937_64& random) {
    if (random() % 4 != 0) vocabulary.eos = {1};
    while (random() % 2 == 0) prompt.push_back(static_cast<Token>(2 + random() % 6));
    while (random() % 2 == 0) prefix.push_back(static_cast<Token>(2 + random() % 6));
    before = -static_cast<double>(random() % 16) / 4;
  }
};

/// Runs a sentence for at most `most` steps; returns whether it has ended. Every answer is random: `answered` adds it
/// to the three lists, after `look` has seen the plan.
template <class S, class Look, class Answered>
bool follow(S const& search, typename S::State& state, Sentence const& sentence, int most, Look&& look,
            Answered&& answered) {
  search.begin(state, sentence);
  for (int step = 0; step < most; ++step) {
    StepPlan all;
    Plan plan(all, 0);
    auto const progress = search.progress(state);
    search.plan(state, plan);
    look(all, progress);
    std::vector<Expansion::Entry> entries;
    std::vector<Candidate> best;
    std::vector<float> probes;
    for (auto const& query : all.queries) answered(query, entries, best, probes);
    if (search.advance(state, Expansion(entries, best, probes))) return true;
  }
  return false;
}

/// Exact in any sum.
float some_log_prob(std::mt19937_64& random) { return -static_cast<float>(random() % 64) / 8; }

}  // namespace

TEST_CASE("greedy plans and answers as told, whatever its state and result held before", "[greedy]") {
  Greedy::State state;
  Result result;
  std::mt19937_64 random(1);
  std::array<int, 4> seen{};
  for (int round = 0; round < 1000; ++round) {
    Told const told(random);
    auto const first = static_cast<std::int32_t>(told.prefix.size());
    auto const max = first + static_cast<std::int32_t>(first == 0 ? random() % 6 : 1 + random() % 6);
    auto const min = std::min(max, static_cast<std::int32_t>(random() % 6));
    Greedy const search{.length = {.min = min, .max = max},
                        .stage = random() % 2 == 0 ? Stage::before_softmax : Stage::after_softmax};
    auto const held = static_cast<std::int32_t>(told.prompt.size() + told.prefix.size()) - 1;
    Sentence const sentence{.vocabulary = &told.vocabulary,
                            .prompt = told.prompt,
                            .prefix = told.prefix,
                            .last = first == 0 ? told.prompt.back() : told.prefix.back(),
                            .held = held,
                            .prefix_log_prob = &told.before};
    std::vector<Token> tokens;
    std::vector<float> log_probs;
    bool nothing_left = false;
    auto const size = [&] { return first + static_cast<std::int32_t>(tokens.size()); };
    INFO("round " << round << ", prefix " << first << ", min " << min << ", max " << max);
    auto const look = [&](StepPlan const& plan, Progress const& progress) {
      std::vector<Token> settled{7, 7, 7};
      search.settled(state, settled);
      CHECK(settled == tokens);
      if (max == 0) {
        CHECK((plan.rows.empty() && plan.queries.empty()));
        return;
      }
      auto const length = held + static_cast<std::int32_t>(tokens.size());
      CHECK((progress.length == length && progress.width == 1 && progress.rows == 1 && progress.block == 1));
      REQUIRE((plan.rows.size() == 1 && plan.queries.size() == 1));
      auto const& row = plan.rows[0];
      CHECK((row.from == 0 && row.to == 0 && row.length == length && row.lines == 1 && row.tokens.size() == 1));
      CHECK(row.tokens[0] == (tokens.empty() ? sentence.last : tokens.back()));
      auto const& query = plan.queries[0];
      CHECK((query.best == 1 && !query.selects() && query.probes.empty() && query.normalise &&
             query.stage == search.stage));
      std::vector<Token> forbidden, expected = told.vocabulary.never;
      if (size() < min) expected.insert(expected.end(), told.vocabulary.eos.begin(), told.vocabulary.eos.end());
      for (auto const& edit : query.edits) forbidden.push_back(edit.token);
      CHECK(forbidden == expected);
    };
    auto const answered = [&](Query const&, auto& entries, auto& best, auto&) {
      nothing_left = random() % 16 == 0;
      entries.push_back({.best_count = nothing_left ? 0u : 1u});
      if (nothing_left) return;
      auto const token = random() % 6 == 0 && size() >= min ? 1 : static_cast<Token>(2 + random() % 6);
      best.push_back({token, some_log_prob(random)});
      tokens.push_back(token), log_probs.push_back(best[0].log_prob);
    };
    auto const ended = follow(search, state, sentence, 1 + static_cast<int>(random() % 8), look, answered);
    result.failure = Failure::none;  // set by the decoding loop
    search.finish(state, result);
    auto const eos = !tokens.empty() && told.vocabulary.ends(tokens.back()), full = size() == max;
    CHECK(ended == (eos || full || nothing_left));
    ++seen[eos ? 0 : full ? 1 : nothing_left ? 2 : 3];
    CHECK((result.failure == Failure::no_token_left) == (nothing_left && !full));
    REQUIRE(result.hypotheses.size() == (result.ok() ? 1 : 0));
    if (!result.ok()) continue;
    auto const& h = result.hypotheses[0];
    CHECK((h.tokens == tokens && h.log_probs == log_probs));
    auto log_prob = told.before;
    for (auto const x : log_probs) log_prob += static_cast<double>(x);
    CHECK((h.log_prob == log_prob && h.score == log_prob));
    CHECK(h.finished == (eos || (full && max > 0 && told.vocabulary.eos.empty())));
  }
  for (auto const count : seen) CHECK(count > 50);
}

TEST_CASE("a forced score plans and answers as told, whatever its state and result held before", "[forced_score]") {
  ForcedScore::State state;
  Result result;
  std::mt19937_64 random(2);
  int cut = 0;
  for (int round = 0; round < 1000; ++round) {
    Told told(random);
    auto& target = told.prefix;
    if (random() % 2 == 0) target.push_back(1);
    auto const n = target.size();
    auto const held = static_cast<std::int32_t>(told.prompt.size()) - 1;
    Abilities const abilities{.ragged = random() % 4 != 0, .blocks = random() % 4 != 0};
    auto const whole = abilities.ragged && abilities.blocks;
    Sentence const sentence{.vocabulary = &told.vocabulary,
                            .prompt = told.prompt,
                            .prefix = target,
                            .last = told.prompt.back(),
                            .held = held,
                            .abilities = abilities};
    ForcedScore const search{.penalty = {.alpha = static_cast<double>(random() % 2)}};
    std::vector<float> log_probs;
    INFO("round " << round << ", target " << n << ", in one " << whole);
    auto const look = [&](StepPlan const& plan, Progress const& progress) {
      if (n == 0) {
        CHECK((plan.rows.empty() && plan.queries.empty()));
        return;
      }
      auto const told_so_far = log_probs.size(), count = whole ? n : 1;
      auto const length = held + static_cast<std::int32_t>(told_so_far), rows = static_cast<std::int32_t>(count);
      CHECK((progress.length == length && progress.width == 1 && progress.rows == rows));
      REQUIRE((plan.rows.size() == 1 && plan.queries.size() == count));
      auto const& row = plan.rows[0];
      CHECK((row.from == 0 && row.to == 0 && row.length == length && row.lines == rows && row.tokens.size() == count));
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        auto const at = told_so_far + i;
        CHECK(row.tokens[i] == (at == 0 ? sentence.last : target[at - 1]));
        auto const& query = plan.queries[i];
        CHECK((query.best == 0 && !query.selects() && query.edits.empty() && query.probes.size() == 1 &&
               query.probes[0] == target[at]));
      }
    };
    auto const answered = [&](Query const&, auto& entries, auto&, auto& probes) {
      entries.push_back({.probes = probes.size(), .probe_count = 1});
      probes.push_back(some_log_prob(random));
      log_probs.push_back(probes.back());
    };
    auto const ended = follow(search, state, sentence, static_cast<int>(random() % 8), look, answered);
    CHECK((!ended || log_probs.size() == n));
    if (n > 0) CHECK(ended == (log_probs.size() == n));
    CHECK(search.progress(state).rows <= static_cast<std::int32_t>(std::max<std::size_t>(1, n)));
    search.finish(state, result);
    CHECK(result.ok());
    cut += !ended;
    REQUIRE(result.hypotheses.size() == (ended ? 1 : 0));  // a partial score is no result
    if (!ended) continue;
    auto const& h = result.hypotheses[0];
    CHECK((h.tokens == target && h.log_probs == log_probs));
    double log_prob = 0;
    for (auto const x : log_probs) log_prob += static_cast<double>(x);
    CHECK(h.log_prob == log_prob);
    CHECK(h.score == (search.penalty.alpha == 0 || n == 0 ? log_prob : log_prob / static_cast<double>(n)));
    CHECK(h.finished == (n > 0 && (told.vocabulary.eos.empty() || target.back() == 1)));
  }
  CHECK((cut > 100 && cut < 500));
}
