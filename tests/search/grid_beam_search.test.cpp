// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include <support/catch.hpp>
#include <support/constrained.hpp>
#include <support/decoding.hpp>
#include <support/naive_constraints.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Grid beam search with phrases, on whole sequences. Returns the beams of all steps, best first in each bank, and the
/// complete hypotheses that ended. Their places in the top bank stay empty if it `shrinks`.
struct NaiveGrid {
  std::map<std::int32_t, std::vector<Sequence>> bank;  // by progress
  std::vector<Sequence> ended;
  std::vector<std::set<Tokens>> beams;

  NaiveGrid(Table const& table, std::uint64_t seed, std::vector<Phrase> const& phrases, std::size_t base,
            std::size_t max, bool shrinks = false) {
    auto const items = one_each(phrases);
    auto const total = naive_total(items);
    auto const standing = [&](Tokens tokens) {
      tokens.insert(tokens.begin(), bos);
      return naive_any(items, tokens).progress();
    };
    bank[standing({})] = {Sequence{}};
    std::size_t alive = 1;
    for (std::size_t length = 0; length < max && alive > 0; ++length) {
      std::map<std::int32_t, std::vector<Sequence>> next;
      for (auto const& [progress, list] : bank)
        for (auto const& parent : list) {
          std::vector<double> line(static_cast<std::size_t>(table.size));
          table.log_probs(seed, parent.tokens, line);
          std::vector<Token> order(static_cast<std::size_t>(table.size) - 2);
          std::iota(order.begin(), order.end(), eos);
          std::ranges::sort(order, std::greater{}, [&](Token t) { return line[static_cast<std::size_t>(t)]; });
          for (std::size_t i = 0; i < order.size(); ++i) {
            auto child = parent;
            child.tokens.push_back(order[i]), child.log_prob += line[static_cast<std::size_t>(order[i])];
            child.finished = order[i] == eos;
            auto const now = standing(child.tokens);
            if (child.finished && now < total) continue;
            if (length + 1 == max ? child.finished : i <= base || now > progress) next[now].push_back(child);
          }
        }
      bank.clear(), alive = 0, beams.emplace_back();
      for (auto& [progress, list] : next) {
        std::ranges::sort(list, std::greater{}, &Sequence::log_prob);
        auto const before = progress == total && shrinks ? ended.size() : 0;
        auto const room = base - std::min(before, base);
        for (std::size_t i = 0; i < list.size(); ++i) {
          if (list[i].finished && i < room) ended.push_back(list[i]);
          if (list[i].finished || (shrinks ? i >= room : bank[progress].size() == room)) continue;
          bank[progress].push_back(list[i]), ++alive, beams.back().insert(list[i].tokens);
        }
      }
    }
  }
};

template <class S>
std::set<Tokens> beam_of(typename S::State const& state) {
  std::set<Tokens> beam;
  for (auto const& entry : state.inner.beam) {
    Tokens tokens;
    state.inner.history.write(entry.node, tokens);
    beam.insert(tokens);
  }
  return beam;
}

/// Compares the beams of every step and the result with those of the naive search; returns the number of steps.
std::size_t check_grid(FinishedHypotheses finished, bool until_the_first_end = false) {
  std::size_t steps = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, between(random, 6, 12));
    table.order = -1;  // no two outputs have the same probability
    auto const lists = random_lists(random, {.last = table.size - 1, .longest = 2, .all = 3});
    if (lists.all.empty()) continue;
    auto const base = between(random, 1, 4);
    BeamSearch options{.length = {.max = between(random, 7, 10)}, .finished = finished};
    options.early_stopping.finished = 1000;  // continue to the end
    auto search = grid_beam_search(base, Phrases(lists.all), options);
    search.prune_finished = Pruning::off;
    using S = decltype(search);
    NaiveGrid const naive(table, seed, lists.all, static_cast<std::size_t>(base),
                          static_cast<std::size_t>(options.length.max), finished == FinishedHypotheses::shrink);
    std::size_t step = 0;
    auto compare = true;
    INFO("seed " << seed << ", base " << base << ", max " << options.length.max << ", V " << table.size << ", "
                 << text(lists));
    auto const look = [&](S::State&, S::State const& after, Expansion const&) {
      if (until_the_first_end && !after.inner.out.empty()) compare = false;
      if (after.inner.over || !compare) return;
      REQUIRE(step < naive.beams.size());
      INFO("step " << step);
      if (beam_of<S>(after) != naive.beams[step]) CHECK(beam_of<S>(after) == naive.beams[step]);
      ++step, ++steps;
    };
    auto const result = run_one(table, seed, Spy<S>{search, look});
    check_result(result, table, seed);
    check_constraints(result, lists);
    REQUIRE_FALSE(naive.ended.empty());
    auto best = -1e9;
    for (auto const& s : naive.ended)
      best = std::max(best, options.penalty.score(s.log_prob, static_cast<std::int32_t>(s.tokens.size())));
    if (!until_the_first_end) CHECK_THAT(result.hypotheses.at(0).score, WithinAbs(best, 1e-4));
  }
  return steps;
}

}  // namespace

// With FinishedHypotheses::set_aside the places of hypotheses that end are refilled; see the documentation of
// ConstrainedBeamSearch.
TEST_CASE("every bank of a grid keeps its best, as many as it has places", "[grid_beam_search]") {
  CHECK(check_grid(FinishedHypotheses::set_aside) > 1000);
}

TEST_CASE("only the top bank of a grid shrinks", "[grid_beam_search]") {
  CHECK(check_grid(FinishedHypotheses::shrink) > 1000);
}

TEST_CASE("every bank of a grid keeps its best until the first end", "[grid_beam_search]") {
  CHECK(check_grid(FinishedHypotheses::set_aside, true) > 800);
}

TEST_CASE("banks without a place are refused", "[grid_beam_search]") {
  ConstrainedBeamSearch<Phrases> search{
      .beam = {.width = 2}, .constraints = Phrases(std::vector<Phrase>{{3, 4}}), .banks = Banks::equal};
  auto const result = run_one(Table{}, 1, search);
  CHECK((result.failure == Failure::bad_request || satisfies({.all = {{3, 4}}}, result.hypotheses.at(0).tokens)));
}

TEST_CASE("a grid holds one beam for every token of its constraints", "[grid_beam_search]") {
  Table const table{.size = 30, .scale = 4, .eos_bias = -6, .eos_slope = 0.1};
  std::size_t before = 0;
  for (std::int32_t count = 0; count <= 6; ++count) {
    std::vector<Phrase> phrases;
    for (Token token = 3; token < 3 + count; ++token) phrases.push_back({token, token + 10});
    auto const search = grid_beam_search(3, Phrases(phrases), {.length = {.max = 24}});
    CHECK(search.slot_count() == 3 * (2 * count + 1));
    Counters counters;
    auto const result = run(table, std::vector<TableRequest<ConstrainedBeamSearch<Phrases>>>{{.source = 7}}, search,
                            Batched{}, {}, &counters);
    CHECK(satisfies({.all = phrases}, result[0].hypotheses.at(0).tokens));
    CHECK(counters.most_rows <= static_cast<std::size_t>(search.slot_count()));
    CHECK(counters.most_rows > static_cast<std::size_t>(search.slot_count()) * 3 / 4);
    CHECK(counters.most_rows > before);
    before = counters.most_rows;
  }
}

TEST_CASE("a grid without constraints is a beam search", "[grid_beam_search]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 5, 12));
    auto const base = between(random, 1, 5);
    auto const result = run_one(table, seed, grid_beam_search(base, Phrases(), {.length = {.max = 9}}));
    CHECK(identical(result, run_one(table, seed, BeamSearch{.width = base, .length = {.max = 9}})));
  }
}

TEST_CASE("a grid that makes no sense is refused", "[grid_beam_search]") {
  CHECK_THROWS_AS(grid_beam_search(0, Phrases()), std::invalid_argument);
  CHECK_THROWS_AS(grid_beam_search(1 << 19, Phrases(std::vector<Phrase>{{3, 4}})), std::invalid_argument);
  CHECK(grid_beam_search(1 << 18, Phrases(std::vector<Phrase>{{3, 4, 5}})).slot_count() == 1 << 20);
}

TEST_CASE("bank sizes fill the beam, and are equal shares where there is enough", "[grid_beam_search]") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(between(random, 1, 8)));
    for (auto& count : counts) count = random() % 3 == 0 ? 0 : between(random, 0, 9);
    auto const width = between(random, 1, 24), banks = static_cast<std::int32_t>(counts.size());
    auto const all = std::accumulate(counts.begin(), counts.end(), 0);
    auto even = counts, paper = counts;
    detail::bank_sizes_paper(counts, width, paper), detail::bank_sizes_even(counts, width, even);
    INFO("seed " << seed);
    CHECK(std::accumulate(paper.begin(), paper.end(), 0) == std::min(width, all));
    CHECK(std::accumulate(even.begin(), even.end(), 0) == std::min(width, all));
    for (std::size_t i = 0; i < counts.size(); ++i) {
      CHECK((paper[i] >= std::min(counts[i], width / banks) && paper[i] <= counts[i]));
      CHECK(even[i] <= counts[i]);
      for (std::size_t j = 0; j < counts.size(); ++j) {
        if (even[i] < counts[i]) CHECK(even[j] <= even[i] + 1);
        if (even[i] < counts[i] && j < i) CHECK(even[j] <= even[i]);  // the upper one first
      }
    }
  }
}
