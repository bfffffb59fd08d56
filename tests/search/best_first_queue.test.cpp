// SPDX-License-Identifier: Apache-2.0
// The queue of a best-first search: its order, and the hypotheses reported before the search is over.
#include <sluice/search/best_first_beam.hpp>

#include <support/catch.hpp>
#include <support/drawn_beam.hpp>
#include <support/drawn_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("the queue: what may score most, the shortest, what costs no row, then as a beam ranks", "[best_first]") {
  std::mt19937_64 random(34);
  auto const below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
  detail::BestFirstState state;
  for (int round = 0; round < 500; ++round) {
    state.expanded.assign(3, {});
    for (auto& one : state.expanded) one.rank = below(3);
    auto const place = [&](detail::BestFirstState::Waiting const& one) {
      return std::tuple(-one.value, one.length, one.taken, -one.log_prob, state.at(one.parent).rank, one.order);
    };
    std::vector<decltype(place({}))> expected, found;
    for (auto count = below(12); count > 0; --count) {
      detail::BestFirstState::Waiting const one{.value = -below(2) / 2.0,
                                                .log_prob = -below(2) / 4.0,
                                                .length = below(2),
                                                .parent = below(3),
                                                .order = below(3),
                                                .taken = below(2) == 0};
      state.push(one), expected.push_back(place(one));
    }
    while (!state.queue.empty()) found.push_back(place(state.pop()));
    std::ranges::sort(expected);
    CHECK(found == expected);
  }
}

TEST_CASE("before best first is over it tells the best of what waits, and what all of it begins with", "[best_first]") {
  std::mt19937_64 random(35);
  BestFirstBeam::State state;
  std::size_t waited = 0, agreed = 0;
  for (int round = 0; round < 1500; ++round) {
    DrawnSentence const sentence(random);
    auto const first = static_cast<std::int32_t>(sentence.prefix.size());
    auto const drawn = any_beam(random, first);
    BestFirstBeam search{.width = drawn.width, .n_best = std::min(drawn.n_best, drawn.width)};
    search.length = drawn.length, search.penalty = drawn.penalty, search.at_maximum = drawn.at_maximum;
    if (search.length.max == 0) continue;
    DrivenSlots slots(sentence.lines, sentence.held());
    search.begin(state, sentence.told());
    auto const fewest = [&](std::int32_t from) {
      return sentence.vocabulary.eos.empty() ? search.length.max : std::min(from, search.length.max);
    };
    for (;;) {
      StepPlan planned;
      Plan plan(planned, 0);
      search.plan(state, plan);
      if (search.advance(state, slots.run(planned))) break;

      // Those that are in their beam and wait to be run, and those whose beam has room.
      std::vector<detail::BestFirstState::Waiting> open;
      for (auto const& one : state.queue) {
        auto const level = std::as_const(state).level(one.length);
        if (one.taken || level.alive < level.room || level.seen < search.width) open.push_back(one);
      }
      std::vector<double> scores;
      for (auto const& one : open) scores.push_back(search.penalty.score(one.log_prob, one.length));
      std::ranges::sort(scores, std::greater());
      scores.resize(std::min(scores.size(), static_cast<std::size_t>(search.n_best) - state.out.size()));
      Result result;
      search.finish(state, result);
      REQUIRE(result.hypotheses.size() == state.out.size() + scores.size());
      for (std::size_t i = 0; i < scores.size(); ++i) CHECK(result.hypotheses[state.out.size() + i].score == scores[i]);
      waited += scores.size();

      // Of these: all that can still be among the best, those that have ended, and the next to run.
      std::vector<Token> all, one_of, settled{3, 3};
      state.history.write(state.expanded.back().node, all);
      auto const shorten = [&](History::Node node) {
        state.history.write(node, one_of);
        all.erase(std::ranges::mismatch(all, one_of).in1, all.end());
      };
      for (auto const& one : state.out) shorten(one.node);
      for (auto const& one : open) {
        auto const most = search.penalty.bound(one.log_prob, fewest(one.length), search.length.max);
        auto const full = std::ssize(state.out) == search.n_best;
        auto const can = !full || most > state.out.back().score ||
                         (most == state.out.back().score && fewest(one.length) <= state.out.back().length);
        if (can) shorten(state.at(one.parent).node);
      }
      search.settled(state, settled);
      CHECK(settled == all);
      agreed += !all.empty();
    }
  }
  CHECK((waited > 10000 && agreed > 500));
}
