// SPDX-License-Identifier: Apache-2.0
// Best-first search without a decoder, against a beam of whole lists. No row is run that could not have been returned.
#include <sluice/search/best_first_beam.hpp>

#include <support/catch.hpp>
#include <support/drawn_beam.hpp>
#include <support/drawn_lines.hpp>
#include <support/naive_beam.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Hypotheses requested early: correct numbers; finished ones first, then those that wait after what was run, each best
/// first.
void check_early(Result const& result, DrawnSentence const& sentence, BestFirstBeam const& search,
                 std::set<std::vector<Token>> const& run) {
  CHECK(std::ssize(result.hypotheses) <= search.n_best);
  int rises = 0;
  std::set<std::vector<Token>> all;
  for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
    auto const& h = result.hypotheses[i];
    REQUIRE((!h.tokens.empty() && h.log_probs.size() == h.tokens.size()));
    CHECK(all.insert(h.tokens).second);
    rises += i > 0 && h.score > result.hypotheses[i - 1].score;
    auto log_prob = search.prefix_scored ? sentence.before : 0;
    for (auto const x : h.log_probs) log_prob += static_cast<double>(x);
    CHECK((h.log_prob == log_prob && !(run.contains(sentence.context(h.tokens)))));
    CHECK(h.score ==
          search.penalty.score(log_prob, static_cast<std::int32_t>(sentence.prefix.size() + h.tokens.size())));
    auto parent = h.tokens;
    parent.pop_back();
    auto const free = h.log_probs.back() == 0 && search.at_maximum == AtMaximum::force_eos_free;  // its row was not run
    CHECK((run.contains(sentence.context(parent)) || free));
    auto const line = sentence.lines(sentence.context(parent));
    CHECK((line[static_cast<std::size_t>(h.tokens.back())] == h.log_probs.back() || free));
  }
  CHECK(rises <= 1);
}

}  // namespace

TEST_CASE("best first finds what a plain account of a beam finds, and runs nothing that is hopeless", "[best_first]") {
  std::mt19937_64 random(33);
  BestFirstBeam::State state;
  std::size_t again = 0, useless = 0;
  for (int round = 0; round < times(8000); ++round) {
    DrawnSentence const sentence(random);
    auto const first = static_cast<std::int32_t>(sentence.prefix.size());
    auto beam = any_beam(random, first);
    beam.finished = FinishedHypotheses::set_aside, beam.early_stopping = {.rule = EarlyStopping::Rule::exact},
    beam.sibling_penalty = 0, beam.one_end = false;
    beam.n_best = std::min(beam.n_best, beam.width);
    beam.pruning.relative_local_threshold = 0, beam.pruning.below_finished = Pruning::off;
    auto search = BestFirstBeam::as_beam(beam);
    auto const states = static_cast<std::int32_t>(random() % 6);
    search.states = states == 0 ? 300 : states == 1 ? 0 : states;
    NaiveBeam naive(sentence, beam);
    while (!naive.over) naive.step();
    auto const expected = naive.told();
    auto const bar =
        std::ssize(expected) < beam.n_best ? -std::numeric_limits<double>::infinity() : naive.score(expected.back());

    Abilities const abilities{.blocks = random() % 2 == 0, .roll_back = random() % 2 == 0};
    DrivenSlots slots(sentence.lines, sentence.held(), abilities);
    auto const told = sentence.told(abilities);
    INFO("round " << round << ", states " << search.states << ", at maximum " << static_cast<int>(beam.at_maximum));
    search.begin(state, told);
    CHECK(state.history.size() == 0);
    std::set<std::vector<Token>> run, let_go;  // the contexts requested, and those of released slots
    std::vector<Token> before;
    auto whole = true;  // the last row was not one of several
    std::vector<Token> settled;
    auto const empty = beam.length.max == 0;
    auto const size = [&](std::vector<Token> const& context) {
      return static_cast<std::int32_t>(context.size() - sentence.prompt.size());
    };
    auto over = false;
    while (!over) {
      StepPlan planned;
      Plan plan(planned, 0);
      auto const progress = search.progress(state);
      search.plan(state, plan);
      CHECK(plan.prefix_scored() == (!run.empty() || empty || beam.prefix_scored));
      for (auto const slot : planned.released) let_go.insert(slots.held().at(slot));
      auto const answer = slots.run(planned);
      if (!empty) CHECK(slots.contexts[0] != before);
      if (!empty) before = slots.contexts[0];
      REQUIRE(planned.rows.size() == (empty ? 0 : 1));
      CHECK(slots.held().size() <= static_cast<std::size_t>(search.slot_count()));
      if (!empty) {
        auto const& row = planned.rows[0];
        auto const block = static_cast<std::int32_t>(row.tokens.size());
        CHECK((progress.length == row.length && progress.width == 1 && progress.rows == block &&
               progress.block == block));
        auto const& query = planned.queries[0];
        CHECK((row.to >= 0 && row.to < search.slot_count()));
        if (query.lists() || !query.probes.empty()) {
          auto const& context = slots.contexts[0];
          CHECK(run.insert(context).second);  // each only once
          auto const length = size(context);
          if (run.size() > 1) CHECK(!let_go.contains({context.begin(), context.end() - 1}));
          std::set<std::vector<Token>> parents;  // of everything that may still enter a beam, or be run
          for (auto const& one : state.queue) {
            auto const level = std::as_const(state).level(one.length);
            if (!one.taken && level.alive >= level.room) continue;
            std::vector<Token> output;
            state.history.write(state.at(one.parent).node, output);
            parents.insert(sentence.context(output));
          }
          for (auto const& [slot, tokens] : slots.held())
            if (whole && slot != row.from && slot != row.to && (slot > 0 || abilities.roll_back))
              CHECK(parents.contains(tokens));
          whole = true;
          auto const fewest = sentence.vocabulary.eos.empty() ? beam.length.max : length + 1;
          auto const forced = length + 1 >= beam.length.max && !sentence.vocabulary.eos.empty() &&
                              (beam.at_maximum == AtMaximum::force_eos || beam.at_maximum == AtMaximum::force_eos_free);
          CHECK(query.best == (forced ? 0 : static_cast<std::int32_t>(naive.longest_list())));
          CHECK((query.stage == beam.stage && query.normalise && (run.size() == 1 || query.base < 1)));
          if (run.size() > 1 && beam.penalty.bound(query.base, fewest, beam.length.max) < bar) ++useless;
          if (search.states == 300) CHECK(block == 1);
        } else {
          CHECK(!query.normalise);
          ++again, whole = false;
        }
        again += block > 1;
      }
      over = search.advance(state, answer);
      if (over && expected.empty()) break;  // nothing was found
      std::vector<Token> now{3};
      search.settled(state, now);
      REQUIRE(now.size() >= settled.size());
      CHECK(std::equal(settled.begin(), settled.end(), now.begin()));
      settled = std::move(now);
      if (!over) {
        Result early;
        search.finish(state, early);
        check_early(early, sentence, search, run);
      }
      if (random() % 64 == 0) break;  // it may be cancelled
    }
    if (!over) continue;
    Result result;
    result.hypotheses.resize(2);
    search.finish(state, result);
    REQUIRE(result.hypotheses.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      auto const& h = result.hypotheses[i];
      auto const& one = expected[i];
      CHECK((h.tokens == one.tokens && h.log_probs == one.log_probs && h.finished == one.finished));
      CHECK((h.log_prob == one.log_prob && h.score == (empty ? 0 : naive.score(one))));
      CHECK(std::ranges::mismatch(settled, h.tokens).in1 == settled.end());
    }
    CHECK((result.failure == Failure::no_token_left) == (expected.empty() && beam.at_maximum != AtMaximum::drop));
  }
  CHECK(useless == 0);
  CHECK(again > times(500u));
}
