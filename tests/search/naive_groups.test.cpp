// SPDX-License-Identifier: Apache-2.0
// Diverse groups without a decoder, against beams of whole lists, one after another.
#include <sluice/search/diverse_beam_search.hpp>

#include <support/catch.hpp>
#include <support/drawn_beam.hpp>
#include <support/drawn_lines.hpp>
#include <support/naive_beam.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

struct NaiveGroups {
  DiverseBeamSearch const& search;
  std::vector<NaiveBeam> groups;

  bool over() const { return std::ranges::all_of(groups, &NaiveBeam::over); }
  /// Steps each group in turn; a token costs what the live hypotheses of earlier groups have just taken, or, of groups that were over,
  /// the padding.
  void step() {
    std::vector<Token> taken;
    for (auto& group : groups) {
      if (group.over) {
        taken.insert(taken.end(), static_cast<std::size_t>(search.search.width), search.padding);
        continue;
      }
      group.cost = [&](Token token) {
        return static_cast<float>(search.penalty * static_cast<double>(std::ranges::count(taken, token)));
      };
      group.step();
      for (auto const& one : group.went_on)
        if (!one.ended) taken.push_back(one.tokens.back());
    }
  }
  /// With scores, best first; until all groups are over, live ones come last.
  std::vector<std::pair<NaiveBeam::One, double>> told() const {
    std::vector<std::pair<NaiveBeam::One, double>> all;
    for (auto const& group : groups)
      for (auto const& one : group.told()) all.emplace_back(one, search.search.length.max == 0 ? 0 : group.score(one));
    std::ranges::stable_sort(all, [&](auto const& a, auto const& b) {
      if (!over() && a.first.finished != b.first.finished) return a.first.finished;
      return a.second > b.second;
    });
    all.resize(std::min(all.size(), static_cast<std::size_t>(search.n_best)));
    return all;
  }
  std::vector<Token> settled() const {
    std::vector<std::vector<Token>> all;
    for (auto const& group : groups)
      if (!group.over || !group.out.empty()) all.push_back(group.settled());
    if (all.empty()) return {};
    for (auto const& one : all) all[0].erase(std::ranges::mismatch(all[0], one).in1, all[0].end());
    return all[0];
  }
};

}  // namespace

TEST_CASE("diverse groups plan and answer as plain accounts of their beams do", "[diverse]") {
  std::mt19937_64 random(32);
  DiverseBeamSearch::State state;
  std::size_t ended_alone = 0;
  for (int round = 0; round < times(5000); ++round) {
    DrawnSentence const sentence(random);
    DiverseBeamSearch search{.search = any_beam(random, static_cast<std::int32_t>(sentence.prefix.size())),
                             .groups = 1 + static_cast<std::int32_t>(random() % 4),
                             .penalty = static_cast<double>(random() % 5) / 4};
    search.search.n_best = search.search.width;
    if (random() % 2 == 0) search.padding = static_cast<Token>(random() % 4);
    search.n_best = 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(search.slot_count()));
    search.check();
    auto const first = sentence.told();
    INFO("round " << round << ", groups " << search.groups << " of " << search.search.width);
    NaiveGroups naive{search, {static_cast<std::size_t>(search.groups), NaiveBeam(sentence, search.search)}};
    DrivenSlots slots(sentence.lines, sentence.held());
    search.begin(state, first);
    auto const empty = search.search.length.max == 0;
    for (int step = 0;; ++step) {
      auto const over = naive.over();
      if (step > 0) {
        std::vector<Token> settled{3, 3};
        search.settled(state, settled);
        CHECK(settled == naive.settled());
        Result result{.id = 7};
        result.hypotheses.resize(2);
        search.finish(state, result);
        auto const expected = naive.told();
        CHECK(result.id == 7);
        REQUIRE(result.hypotheses.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          auto const& [one, score] = expected[i];
          auto const& h = result.hypotheses[i];
          CHECK((h.tokens == one.tokens && h.log_probs == one.log_probs && h.finished == one.finished));
          CHECK((h.log_prob == one.log_prob && h.score == score));
        }
        auto const lost = std::ranges::any_of(naive.groups, [](NaiveBeam const& group) {
          return group.over && group.out.empty() && group.options.at_maximum != AtMaximum::drop;
        });
        CHECK((result.failure == Failure::no_token_left) == (expected.empty() && lost));
        CHECK(result.message.empty() == !result.hypotheses.empty());
      }
      if (over || (step > 0 && random() % 16 == 0)) break;  // it may be cancelled

      StepPlan planned;
      Plan plan(planned, 0);
      auto const progress = search.progress(state);
      search.plan(state, plan);
      auto const answer = slots.run(planned);
      std::vector<std::int32_t> best;  // for each row
      std::int32_t width = 0;
      for (std::size_t g = 0; g < naive.groups.size(); ++g) {
        auto const& group = naive.groups[g];
        if (group.over || (step == 0 && g > 0) || empty) continue;
        width += static_cast<std::int32_t>(group.beam.size());
        if (group.only_eos() && step > 0 && group.options.at_maximum == AtMaximum::force_eos_free) continue;
        auto const others = step == 0 ? naive.groups.size() - 1 : g;  // groups whose tokens may be penalised
        for (auto const& one : group.beam)
          if (!one.ended)
            best.push_back(group.only_eos() ? 0
                                            : static_cast<std::int32_t>(group.longest_list()) +
                                                  static_cast<std::int32_t>(others) * search.search.width);
      }
      CHECK((progress.length == first.held + step && (progress.width == width || empty)));
      REQUIRE(planned.rows.size() == best.size());
      for (auto const& [slot, tokens] : slots.held()) {  // a group that is over leaves its slots as they are
        auto const used = std::ranges::count(planned.rows, slot, &Row::to) > 0;
        auto const& group = naive.groups.at(static_cast<std::size_t>(slot / search.search.width));
        CHECK((used || group.over || planned.rows.empty() || group.only_eos()));
      }
      auto const& plain = naive.groups[0];
      if (step == 0) CHECK(planned.groups.at(0).keep == 0);
      if (step > 0 && !plain.over && planned.groups.at(1).lines > 0) {
        auto const all = search.search.pruning.relative_local_threshold > 0 || search.search.sibling_penalty > 0;
        CHECK(planned.groups[1].keep == (all ? 0 : static_cast<std::int32_t>(plain.asked())));
        for (auto const& group : std::span(planned.groups).subspan(2)) CHECK(group.keep == 0);
      }
      for (std::size_t i = 0; i < best.size(); ++i) CHECK(planned.queries[i].best == best[i]);
      naive.step();
      CHECK(search.advance(state, answer) == naive.over());
      CHECK((state.candidates.size() <= 7 * best.size() && state.probes.size() <= 2 * best.size()));  // nothing old
      ended_alone += std::ranges::count(naive.groups, true, &NaiveBeam::over) % search.groups != 0;
    }
  }
  CHECK(ended_alone > times(500u));
}
