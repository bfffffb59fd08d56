// SPDX-License-Identifier: Apache-2.0
// Searches of one row without a decoder: what begin() and check() refuse, and reuse of a state.
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>

#include <array>
#include <span>
#include <stdexcept>
#include <vector>

using namespace sluice;

TEST_CASE("searches of one row need one slot, and refuse a penalty that is none", "[greedy][forced_score]") {
  CHECK(Greedy{}.slot_count() == 1);
  CHECK(ForcedScore{}.slot_count() == 1);
  auto const refused = "sluice: penalty.beta = -1.000000: must be more than -1";
  CHECK_THROWS_WITH(Greedy{.penalty = {.beta = -1}}.check(), refused);
  CHECK_THROWS_WITH(ForcedScore{.penalty = {.beta = -1}}.check(), refused);
  CHECK(presets::ctranslate2_greedy(-1).penalty.score(-3, 5) == -15);  // times the length, as pow(length, -1) divides
}

TEST_CASE("a target that begins with an end of sentence is refused", "[forced_score]") {
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  std::vector<Token> const prompt{0}, target{1, 4};
  ForcedScore const search;
  ForcedScore::State state;
  CHECK_THROWS_AS(search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt, .prefix = target}),
                  std::invalid_argument);
}

TEST_CASE("a forced score fills the model's slots to the last place", "[forced_score]") {
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  std::vector<Token> const prompt{0, 2}, target{3, 4, 5, 1};
  Sentence sentence{.vocabulary = &vocabulary, .prompt = prompt, .prefix = target, .last = 2};
  ForcedScore const search;
  ForcedScore::State state;
  sentence.limits.length = 5;  // the last token is never fed
  CHECK_NOTHROW(search.begin(state, sentence));
  sentence.limits.length = 4;
  CHECK_THROWS_WITH(search.begin(state, sentence), "sluice: prefix = 4 tokens: longer than the model's limit");
  sentence.limits.length = 0;  // not even bos
  sentence.prompt = std::span(prompt).first(1), sentence.prefix = std::span(target).first(1);
  CHECK_THROWS_AS(search.begin(state, sentence), std::invalid_argument);
  sentence.prefix = {};
  CHECK_NOTHROW(search.begin(state, sentence));  // nothing is fed
}

TEST_CASE("greedy's state begins again, and counts its prefix", "[greedy]") {
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  std::vector<Token> const prompt{0}, prefix{3};
  double const before = -4;
  Sentence const sentence{
      .vocabulary = &vocabulary, .prompt = prompt, .prefix = prefix, .last = 3, .held = 1, .prefix_log_prob = &before};
  Greedy const search;
  Greedy::State state;
  for (int round = 0; round < 2; ++round) {
    search.begin(state, sentence);
    CHECK((!state.ended && !state.finished && state.last == 3 && state.held == 1));
    Result result;
    result.hypotheses.resize(2);
    for (Token const token : {5, 1}) {
      std::array<Candidate, 1> const best{{{token, -0.5f}}};
      std::array<Expansion::Entry, 1> const entries{{{.best_count = 1}}};
      CHECK(search.advance(state, Expansion(entries, best, {})) == (token == 1));
    }
    search.finish(state, result);
    REQUIRE(result.hypotheses.size() == 1);
    CHECK(result.hypotheses[0].tokens == std::vector<Token>{5, 1});
    CHECK((result.hypotheses[0].finished && result.hypotheses[0].log_prob == -5));
  }
}
