// SPDX-License-Identifier: Apache-2.0
// Processed around a search with arbitrary results: settled tokens and results do not include the eos that stands for a
// stop.
#include <sluice/processor/processed.hpp>

#include <support/catch.hpp>
#include <support/hashed_rules.hpp>
#include <support/scripted_search.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

LogitsProcessorList const both_stop(Stopping<30>{}, Editing<1>{}, Stopping<40>{});

Hypothesis random_output(std::mt19937_64& random) {
  Hypothesis h;
  for (auto n = random() % 5; n > 0; --n) h.tokens.push_back(static_cast<Token>(1 + random() % 7));
  if (random() % 2 == 0) h.tokens.push_back(1);
  for (std::size_t i = 0; i < h.tokens.size(); ++i) h.log_probs.push_back(-static_cast<float>(i));
  for (auto left = static_cast<std::int32_t>(h.tokens.size()); left > 0;) {
    h.blocks.push_back(1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(left)));
    left -= h.blocks.back();
  }
  if (random() % 3 == 0) h.blocks.clear();
  if (random() % 4 == 0) h.stop = random() % 2 == 0 ? 0 : 7;  // set by an inner rule
  return h;
}

/// The expected result: without the eos that stands for a stop.
Hypothesis told_stop(Hypothesis h, std::vector<Token> output, Vocabulary const& vocabulary) {
  if (h.stop >= 0) return h;
  auto const ended = !h.tokens.empty() && vocabulary.ends(h.tokens.back());
  if (h.tokens.size() == (ended ? 1u : 0u)) return h;
  output.insert(output.end(), h.tokens.begin(), h.tokens.end() - (ended ? 1 : 0));
  h.stop = hashed_stop(output);
  if (h.stop < 0) return h;
  h.finished = true;
  if (!ended) return h;
  h.tokens.pop_back(), h.log_probs.pop_back();
  if (!h.blocks.empty()) --h.blocks.back();
  std::erase(h.blocks, 0);
  return h;
}

template <bool Takes>
void check_outputs(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Script script;
  using Stopped = Processed<Scripted<false, Takes>>;
  Stopped const search{{&script}, both_stop};
  typename Stopped::State state;
  Result result;
  std::size_t stopped = 0;
  for (int round = 0; round < 1500; ++round) {
    INFO("round " << round);
    Vocabulary vocabulary{.size = 9, .bos = 0, .eos = {1}};
    if (random() % 2 == 0) vocabulary.eos.push_back(7);
    std::vector<Token> const prompt{0, 3};
    std::vector<Token> prefix;
    while (random() % 2 == 0) prefix.push_back(static_cast<Token>(2 + random() % 5));
    auto const held = static_cast<std::int32_t>(1 + (Takes ? 0 : prefix.size()));
    search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt, .prefix = prefix, .held = held});
    auto shown = random_output(random);
    script.settled = shown.tokens, shown.stop = -1;
    std::vector<Token> settled;
    search.settled(state, settled);
    auto const ended = !shown.tokens.empty() && vocabulary.ends(shown.tokens.back());
    CHECK(settled == (Takes || !ended ? shown.tokens : told_stop(shown, prefix, vocabulary).tokens));
    script.hypotheses.clear();
    for (auto n = random() % 4; n > 0; --n) script.hypotheses.push_back(random_output(random));
    search.finish(state, result);
    REQUIRE(result.hypotheses.size() == script.hypotheses.size());
    for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
      auto const& h = result.hypotheses[i];
      auto const e = Takes ? script.hypotheses[i] : told_stop(script.hypotheses[i], prefix, vocabulary);
      CHECK((h.tokens == e.tokens && h.log_probs == e.log_probs && h.stop == e.stop));
      CHECK((h.finished == e.finished && h.blocks == e.blocks));
      stopped += h.stop >= 0 && script.hypotheses[i].stop < 0;
    }
  }
  CHECK((stopped > 300) == !Takes);
}

}  // namespace

TEST_CASE("outputs do not hold the end that stands for a stop, and say which it is", "[rules]") {
  check_outputs<false>(1);
  check_outputs<true>(2);
}

TEST_CASE("a plan with questions of no row is left as it is, for the loop to refuse", "[rules]") {
  Script script;
  using Stopped = Processed<Scripted<>>;
  Stopped const search{{&script}, both_stop};
  Stopped::State state;
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  std::vector<Token> const prompt{0};
  Token stops = 2;
  while (hashed_stop({stops}) < 0) ++stops;
  for (std::size_t const surplus : {0u, 1u}) {
    script.rows = {{.tokens = {0, stops}, .lines = {{}}}}, script.surplus = surplus;
    search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt});
    StepPlan step;
    Plan plan(step, 0);
    search.plan(state, plan);
    CHECK((plan.rows().size() == surplus && plan.queries().size() == 2 * surplus));
  }
}

TEST_CASE("outputs that are over cost no memory that grows", "[rules]") {
  detail::KnownEnds ends;
  Vocabulary const vocabulary{.size = 9, .bos = 0, .eos = {1}};
  std::vector<Token> const probes{1, 2};
  std::vector<Candidate> const best{{3, -1}};
  std::vector<float> const told{-1};
  std::vector<Expansion::Entry> const entries{{.best_count = 1, .probe_count = 1}, {.best_count = 1}};
  ends.reset(vocabulary);
  auto const step = [&] {
    ends.clear();
    ends.add({}, false), ends.add({.probes = probes}, true);
    return ends.complete(Expansion(entries, best, told))[1];
  };
  step();
  auto const first = step();
  for (int i = 0; i < 20; ++i) {
    auto const line = step();
    CHECK((line.best.data() == first.best.data() && line.probes.data() == first.probes.data()));
    CHECK((line.best.size() == 1 && line.probes.size() == 2));
  }
}

namespace {

/// A search with an option and required tokens.
struct Particular : Scripted<> {
  bool sensible = true;
  void check() const { require(sensible, "sensible", "no", "must be yes"); }
  void insert_into(TokenSet& set) const { set.insert(4); }
};

}  // namespace

TEST_CASE("a search under a rule is checked, and has the tokens that it must have", "[rules]") {
  Processed<Particular> search;
  CHECK_NOTHROW(search.check());
  TokenSet set(9);
  search.insert_into(set);
  CHECK(set.only() == 4);
  search.search.sensible = false;
  CHECK_THROWS_AS(search.check(), std::invalid_argument);
}

TEST_CASE("a rule that ends outputs needs an end to tell the search", "[rules]") {
  Script script;
  using Stopped = Processed<Scripted<>>;
  Stopped const search{{&script}, both_stop};
  Stopped::State state;
  Vocabulary const vocabulary{.size = 9, .bos = 0};
  std::vector<Token> const prompt{0};
  search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt});
  auto const planned = [&](Token token) {
    script.rows = {{.tokens = {0, token}, .lines = {{}}}};
    StepPlan step;
    Plan plan(step, 0);
    search.plan(state, plan);
    return plan.rows().size();
  };
  Token goes_on = 2, stops = 2;
  while (hashed_stop({goes_on}) >= 0) ++goes_on;
  while (hashed_stop({stops}) < 0) ++stops;
  CHECK(planned(goes_on) == 1);
  CHECK_THROWS_WITH(planned(stops),
                    "sluice: vocabulary.eos = none: a processor ends an output, and there is no end to tell");
}
