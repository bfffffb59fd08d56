// SPDX-License-Identifier: Apache-2.0
// Beam search without a decoder, against a beam of whole lists: every plan, every early result and every final result,
// with one state for all sentences. Answers leave out everything that the plan says it does not need.
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>
#include <support/drawn_beam.hpp>
#include <support/drawn_lines.hpp>
#include <support/naive_beam.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

bool same(Hypothesis const& found, NaiveBeam::One const& expected, double score) {
  return found.tokens == expected.tokens && found.log_probs == expected.log_probs &&
         found.log_prob == expected.log_prob && found.score == score && found.finished == expected.finished;
}

}  // namespace

TEST_CASE("a beam search plans and answers as a plain account of it does", "[beam_search]") {
  std::mt19937_64 random(31);
  BeamSearch::State state;
  std::map<int, int> ended, cut;  // by FinishedHypotheses, by AtMaximum
  for (int round = 0; round < times(12000); ++round) {
    DrawnSentence const sentence(random);
    auto const first = static_cast<std::int32_t>(sentence.prefix.size());
    auto const search = any_beam(random, first);
    auto const& ends = sentence.vocabulary.eos;
    auto const held = sentence.told().held;
    INFO("round " << round << ", finished " << static_cast<int>(search.finished) << ", stop "
                  << static_cast<int>(search.early_stopping.rule) << ", at maximum "
                  << static_cast<int>(search.at_maximum));
    NaiveBeam naive(sentence, search);
    DrivenSlots slots(sentence.lines, sentence.held());
    search.begin(state, sentence.told());
    Result result;
    result.hypotheses.resize(2);
    for (int step = 0;; ++step) {
      auto const over = naive.over;
      if (step > 0) {
        std::vector<Token> settled{3, 3};
        search.settled(state, settled);
        CHECK(settled == naive.settled());
        search.finish(state, result);
        auto const expected = naive.told();
        REQUIRE(result.hypotheses.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          CHECK(same(result.hypotheses[i], expected[i], search.length.max == 0 ? 0 : naive.score(expected[i])));
        CHECK((result.failure == Failure::no_token_left) ==
              (over && expected.empty() && search.at_maximum != AtMaximum::drop));
      }
      if (over || (step > 0 && random() % 16 == 0)) break;  // it may be cancelled

      auto const progress = search.progress(state);
      CHECK(progress.length == held + step);
      CHECK(progress.width == std::ssize(naive.beam));
      StepPlan planned;
      Plan plan(planned, 0);
      search.plan(state, plan);
      CHECK(plan.prefix_scored() == (step > 0 || search.prefix_scored || search.length.max == 0));
      auto const answer = slots.run(planned);
      auto const free = naive.only_eos() && search.at_maximum == AtMaximum::force_eos_free && step > 0;
      auto const live = std::ranges::count(naive.beam, false, &NaiveBeam::One::ended);
      REQUIRE(std::ssize(planned.rows) == (free || search.length.max == 0 ? 0 : live));
      if (!planned.rows.empty()) {
        CHECK(slots.held().size() == planned.rows.size());
        auto const all = search.pruning.relative_local_threshold > 0 || search.sibling_penalty > 0;
        CHECK(planned.groups.at(0).keep == (all ? 0 : static_cast<std::int32_t>(naive.asked())));
      }
      std::set<std::int32_t> ranks;
      for (std::size_t i = 0; i < planned.rows.size(); ++i) {
        auto const& query = planned.queries[i];
        CHECK(ranks.insert(query.rank).second);
        auto const& one = naive.beam.at(static_cast<std::size_t>(query.rank));
        CHECK(slots.contexts[i] == sentence.context(one.tokens));
        CHECK((query.base == one.log_prob || step == 0));
        CHECK((query.stage == search.stage && query.normalise && !query.selects()));
        auto const forced = naive.only_eos();
        CHECK(query.best == (forced ? 0 : static_cast<std::int32_t>(naive.longest_list())));
        CHECK(std::ranges::equal(query.probes, forced ? ends : std::vector<Token>{}));
      }
      naive.step();
      CHECK(search.advance(state, answer) == naive.over);
    }
    ++ended[static_cast<int>(search.finished)], ++cut[static_cast<int>(search.at_maximum)];
  }
  CHECK((ended.size() == 4 && cut.size() == 5));
}
