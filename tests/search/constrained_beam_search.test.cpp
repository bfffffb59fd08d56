// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/constrained.hpp>
#include <support/decoding.hpp>
#include <support/naive_constraints.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Constrained = ConstrainedBeamSearch<>;
static_assert(Search<Constrained> && SettlingSearch<Constrained>);

double score(LengthPenalty const& penalty, Tokens const& tokens, double log_prob) {
  return penalty.score(log_prob, static_cast<std::int32_t>(tokens.size()));
}

/// Requires nothing, but has no trivial().
struct Nothing {
  struct State {};
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  std::int32_t progress(State) const { return 0; }
  std::int32_t total() const { return 0; }
  void wanted(State, std::vector<Token>&) const {}
  bool complete(State) const { return true; }
  bool dead(State) const { return false; }
};

/// Decodes one sentence with both searches; compares results and work.
template <class A>
void check_same_as_beam(BeamSearch const& beam, ConstrainedBeamSearch<A> const& constrained, std::mt19937_64& random) {
  auto const table = random_table(random, between(random, 4, 9));
  auto const seed = random();
  auto prefix = random() % 3 == 0 ? Tokens{3} : Tokens{};
  if (std::ssize(prefix) >= beam.length.max) prefix.clear();
  Counters plain, same;
  auto const expected = run(table, std::vector<TableRequest<BeamSearch>>{{.source = seed, .prefix = prefix}}, beam,
                            Batched{}, {}, &plain);
  auto const results =
      run(table, std::vector<TableRequest<ConstrainedBeamSearch<A>>>{{.source = seed, .prefix = prefix}}, constrained,
          Batched{}, {}, &same);
  if (expected[0].failure == Failure::no_token_left) {
    CHECK((results[0].failure == Failure::no_token_left || !results[0].hypotheses.at(0).finished));
  } else {
    CHECK(identical(results[0], expected[0]));
  }
  CHECK(same.steps == plain.steps);
  CHECK(same.rows == plain.rows);
}

/// A random search with random constraints whose banks fill the beam.
Constrained random_constrained(std::mt19937_64& random, PhraseLists const& lists, std::int32_t widest) {
  Constrained search{.beam = random_beam(random, widest), .constraints = Constraints(lists)};
  search.beam.stage = Stage::after_softmax;
  auto& bar = search.beam.pruning.absolute_threshold;
  bar = std::max(bar, 0.1);  // 0 drops the best as well
  search.banks = static_cast<Banks>(random() % 5);
  if (search.beam.finished != FinishedHypotheses::set_aside && search.banks == Banks::fairseq)
    search.banks = Banks::even;
  search.replace_impossible = random() % 4 != 0;
  search.prune_finished = random() % 2 == 0 ? Pruning::off : 20;
  return search;
}

/// The best of `all` that satisfies the lists, if any.
std::optional<Sequence> best_of(std::vector<Sequence> const& all, PhraseLists const& lists) {
  std::optional<Sequence> best;
  for (auto const& s : all)
    if (satisfies(lists, s.tokens) && (!best || s.score > best->score)) best = s;
  return best;
}

/// Lists for tables of 3 or 4 ordinary tokens.
PhraseLists small_lists(std::mt19937_64& random, Token last, bool edges) {
  switch (random() % 4) {
    case 0: return random_lists(random, {.last = last, .edges = edges, .all = 3});
    case 1: return random_lists(random, {.last = last, .longest = 2, .edges = edges, .all = 0, .ordered = 3});
    case 2: return random_lists(random, {.last = last, .edges = edges, .all = 0, .any = 2, .none = 1});
    default:
      return random_lists(random,
                          {.last = last, .longest = 2, .edges = edges, .all = 1, .ordered = 1, .any = 1, .none = 1});
  }
}

}  // namespace

TEST_CASE("without constraints it is the beam search", "[constrained_beam_search]") {
  for (std::uint64_t seed = 0; seed < times(1200u); ++seed) {
    std::mt19937_64 random(seed);
    auto const beam = random_beam(random, 6);
    INFO("seed " << seed << ", " << text(beam));
    check_same_as_beam(beam, Constrained{.beam = beam}, random);
    check_same_as_beam(beam, Constrained{.beam = beam, .constraints = Constraints(PhraseLists{})}, random);
    check_same_as_beam(beam, ConstrainedBeamSearch<Phrases>{.beam = beam}, random);
  }
  for (std::uint64_t seed = 0; seed < times(200u); ++seed) {
    std::mt19937_64 random(seed);
    auto const k = between(random, 1, 6);
    for (auto const& preset : {presets::fairseq(k), presets::ctranslate2(k), presets::huggingface(k),
                               presets::sockeye(k), presets::marian(k), presets::varstream(k)})
      check_same_as_beam(preset, Constrained{.beam = preset}, random);
  }
}

TEST_CASE("under an automaton that demands nothing its own loop decides as the beam search",
          "[constrained_beam_search]") {
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    std::mt19937_64 random(seed);
    auto beam = random_beam(random, 6);
    beam.candidates = 0;  // the best of each hypothesis is a candidate whatever the limit
    beam.pruning.relative_local_threshold = 0;
    INFO("seed " << seed << ", " << text(beam));
    for (auto const banks : {Banks::even, Banks::paper, Banks::sockeye, Banks::equal})
      check_same_as_beam(beam, ConstrainedBeamSearch<Nothing>{.beam = beam, .banks = banks}, random);
    if (beam.finished == FinishedHypotheses::set_aside && !beam.guard_prefix)
      check_same_as_beam(beam, ConstrainedBeamSearch<Nothing>{.beam = beam, .banks = Banks::fairseq}, random);
  }
}

TEST_CASE("a beam wide enough finds the best output that meets its constraints", "[constrained_beam_search]") {
  std::size_t found = 0, impossible = 0;
  for (std::uint64_t seed = 0; seed < times(700u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 5, 6));
    auto const lists = small_lists(random, table.size - 1, seed % 3 == 0);
    if (naive_count(lists) == 0 && lists.none.empty()) continue;
    Universe universe;
    universe.maximum = between(random, 2, table.size > 5 ? 5 : 7);
    Constrained search{.beam = {.penalty = random_penalty(random)}, .constraints = Constraints(lists)};
    search.beam.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.beam.at_maximum = random() % 2 == 0 ? AtMaximum::force_eos : AtMaximum::truncate;
    search.beam.length = {.min = between(random, 0, 2), .max = universe.maximum};
    if (random() % 3 == 0 && search.beam.finished != FinishedHypotheses::stay)
      search.beam.early_stopping.rule = EarlyStopping::Rule::exact;
    search.banks = random() % 2 == 0 ? Banks::even : Banks::paper;
    search.replace_impossible = random() % 4 != 0;
    search.prune_finished = Pruning::off;
    universe.minimum = search.beam.length.min;
    universe.must_finish = search.beam.at_maximum == AtMaximum::force_eos;
    if (random() % 3 == 0 && universe.maximum > 2 && naive_clean(lists, {3})) universe.prefix = {3};
    auto all = all_sequences(table, seed, universe);
    for (auto& s : all) s.score = score(search.beam.penalty, s.tokens, s.log_prob);
    search.beam.width = 3 * static_cast<std::int32_t>(all.size()) + 9;
    INFO("seed " << seed << ", V " << table.size << ", prefix " << universe.prefix.size() << ", " << text(search));
    auto const best = best_of(all, lists);
    auto const result =
        run(table, std::vector<TableRequest<Constrained>>{{.source = seed, .prefix = universe.prefix}}, search).at(0);
    if (result.failure == Failure::bad_request) continue;
    check_constraints(result, lists);
    check_result(result, table, seed);
    REQUIRE(result.hypotheses.size() == 1);
    auto const& h = result.hypotheses[0];
    CHECK((h.constraints_met == h.constraints_total && naive_clean(lists, h.tokens)) ==
          (best.has_value() || naive_count(lists) == 0));
    if (!best) {
      ++impossible;
      continue;
    }
    ++found;
    CHECK_THAT(h.score, WithinAbs(best->score, 1e-4));
    CHECK(satisfies(lists, h.tokens));
  }
  CHECK(found > times(150u));
  CHECK(impossible > times(8u));
}

TEST_CASE("an output of any width holds its phrases", "[constrained_beam_search]") {
  std::size_t complete = 0, incomplete = 0;
  for (std::uint64_t seed = 0; seed < times(3000u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 5, 9));
    auto const lists = small_lists(random, table.size - 1, seed % 3 == 0);
    auto search = random_constrained(random, lists, 12);
    INFO("seed " << seed << ", V " << table.size << ", " << text(search));
    auto const result = run_one(table, seed, search);
    if (result.failure == Failure::bad_request || result.failure == Failure::no_token_left) continue;
    if (naive_count(lists) > 0) check_constraints(result, lists);
    if (search.beam.at_maximum != AtMaximum::force_eos_free) check_result(result, table, seed);
    for (auto const& h : result.hypotheses) {
      CHECK(naive_clean(lists, h.tokens));
      if (naive_count(lists) > 0) ++(h.constraints_met == h.constraints_total ? complete : incomplete);
    }
  }
  CHECK(complete > times(1000u));
  CHECK(incomplete > times(20u));
}

TEST_CASE("phrases are always met where there is room, in a beam of any width", "[constrained_beam_search]") {
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 5, 40));
    auto const last = table.size - 1;  // few tokens: phrases share prefixes
    auto const lists =
        seed % 3 == 0 ? random_lists(random, {.last = last, .longest = 4, .all = 6})
        : seed % 3 == 1
            ? random_lists(random, {.last = last, .longest = 4, .all = 0, .ordered = 5})
            : random_lists(random, {.last = std::min(last, 6), .longest = 3, .all = 2, .ordered = 2, .any = 2});
    if (naive_count(lists) == 0) continue;
    auto search = random_constrained(random, lists, 6);
    if (search.banks == Banks::equal || search.banks == Banks::sockeye) search.banks = Banks::even;
    auto const total = search.constraints.total();
    search.beam.length = {.max = total + 1 + between(random, 0, 5)};
    INFO("seed " << seed << ", V " << table.size << ", " << text(search));
    auto const result = run_one(table, seed, search);
    REQUIRE(result.ok());
    if (search.beam.at_maximum == AtMaximum::best_unfinished) continue;  // tested below
    if (search.beam.at_maximum == AtMaximum::drop && result.hypotheses.empty()) continue;
    CHECK(satisfies(lists, result.hypotheses.at(0).tokens));
  }
}

TEST_CASE("the best unfinished hypothesis that joins is complete where one is", "[constrained_beam_search]") {
  for (std::uint64_t seed = 0; seed < times(150u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 5);
    auto const lists = random_lists(random, {.last = 4, .longest = 2, .all = 2});
    if (naive_count(lists) == 0) continue;
    Constrained search{.beam = {.at_maximum = AtMaximum::best_unfinished}, .constraints = Constraints(lists)};
    auto const max = std::max(search.constraints.total(), between(random, 2, 5));  // there may be no room for an end
    search.beam.length.max = max, search.beam.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.prune_finished = Pruning::off;
    auto const all = all_sequences(table, seed, {.maximum = max, .must_finish = false});
    search.beam.width = static_cast<std::int32_t>(all.size());
    std::vector<Sequence> finished, unfinished;
    for (auto s : all)
      s.score = score(search.beam.penalty, s.tokens, s.log_prob), (s.finished ? finished : unfinished).push_back(s);
    auto best = best_of(finished, lists);
    for (auto& s : unfinished) s.score = s.log_prob;
    if (auto joins = best_of(unfinished, lists)) {
      joins->score = score(search.beam.penalty, joins->tokens, joins->log_prob);
      if (!best || joins->score > best->score) best = joins;
    }
    INFO("seed " << seed << ", " << text(search));
    auto const result = run_one(table, seed, search);
    if (result.failure == Failure::bad_request) continue;
    REQUIRE(best);
    CHECK(satisfies(lists, result.hypotheses.at(0).tokens));
    CHECK_THAT(result.hypotheses[0].score, WithinAbs(best->score, 1e-4));
  }
}

TEST_CASE("pruning by thresholds compares within a bank", "[constrained_beam_search]") {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < times(400u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 6, 12));
    auto const lists = random_lists(random, {.last = table.size - 1, .longest = 2, .all = 3});
    if (naive_count(lists) == 0) continue;
    Constrained search{.beam = {.width = between(random, 4, 16)}, .constraints = Constraints(lists)};
    search.beam.finished = random() % 2 == 0 ? FinishedHypotheses::set_aside : FinishedHypotheses::shrink;
    search.beam.length.max = 12, search.prune_finished = Pruning::off;
    auto off = search;
    auto& pruning = search.beam.pruning;
    if (seed % 2 == 0) pruning.absolute_threshold = between(random, 5, 40) / 10.0;
    else pruning.relative_threshold = between(random, 1, 30) / 100.0;
    auto const look = [&](Constrained::State& before, Constrained::State const& after, Expansion const& answer) {
      off.advance(before, answer);
      if (before.inner.over || after.inner.over) return;
      auto const bank = [&](auto const& s, auto const& e) {
        return off.constraints.progress(s.after[static_cast<std::size_t>(e.node) + 1]);
      };
      std::map<std::int32_t, double> best{{off.constraints.total(), before.inner.best_finished}};
      for (auto const& e : before.inner.beam)
        best[bank(before, e)] = std::max(best.try_emplace(bank(before, e), e.value).first->second, e.value);
      std::vector<History::Node> expected, found;
      for (auto const& e : before.inner.beam)
        if (e.value > best[bank(before, e)] - pruning.margin()) expected.push_back(e.node);
      for (auto const& e : after.inner.beam) found.push_back(e.node);
      CHECK(found == expected);
      dropped += before.inner.beam.size() - found.size();
    };
    INFO("seed " << seed << ", " << text(search));
    run_one(table, seed, Spy<Constrained>{search, look});
  }
  CHECK(dropped > times(500u));
}

TEST_CASE("pruning by the last token leaves no bank empty", "[constrained_beam_search]") {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 6, 12));
    auto const lists = random_lists(random, {.last = table.size - 1, .longest = 2, .all = 3});
    if (naive_count(lists) == 0) continue;
    Constrained search{.beam = {.width = between(random, 4, 16)}, .constraints = Constraints(lists)};
    search.beam.length.max = 12, search.prune_finished = Pruning::off;
    auto off = search;
    search.beam.pruning.relative_local_threshold = between(random, 1, 50) / 100.0;
    auto const look = [&](Constrained::State& before, Constrained::State const& after, Expansion const& answer) {
      off.advance(before, answer);
      if (before.inner.over || after.inner.over) return;
      std::map<std::int32_t, std::pair<int, int>> sizes;
      for (auto const& e : before.inner.beam)
        ++sizes[off.constraints.progress(before.after[static_cast<std::size_t>(e.node) + 1])].first;
      for (auto const& e : after.inner.beam)
        ++sizes[off.constraints.progress(after.after[static_cast<std::size_t>(e.node) + 1])].second;
      for (auto const& [bank, size] : sizes)
        if (size.first > 0 && bank < off.constraints.total()) CHECK(size.second > 0);
      dropped += before.inner.beam.size() > after.inner.beam.size() ? 1 : 0;
    };
    INFO("seed " << seed << ", " << text(search));
    run_one(table, seed, Spy<Constrained>{search, look});
  }
  CHECK(dropped > times(200u));
}

TEST_CASE("a constraint of hardly any probability is met", "[constrained_beam_search]") {
  std::size_t improbable = 0;
  for (std::uint64_t seed = 0; seed < times(100u); ++seed) {
    Table const table{.size = 20, .scale = 60, .eos_bias = -5};
    std::vector<double> line(20);
    table.log_probs(seed, {}, line);
    auto const token = static_cast<Token>(std::min_element(line.begin() + 3, line.end()) - line.begin());
    for (auto const width : {1, 2, 5}) {
      Constrained search{.beam = {.width = width}, .constraints = Constraints({.all = {{token, token}, {7}}})};
      search.beam.length.max = 12;
      auto const result = run_one(table, seed, search);
      check_result(result, table, seed);
      CHECK(satisfies({.all = {{token, token}, {7}}}, result.hypotheses.at(0).tokens));
      improbable += result.hypotheses[0].log_prob < -14 ? 1 : 0;
    }
  }
  CHECK(improbable > times(250u));
}

TEST_CASE("what a forced prefix has begun is gone on with", "[constrained_beam_search]") {
  Table const table{.size = 12, .scale = 4};
  auto const after = [&](Tokens const& prefix, PhraseLists const& lists, std::int32_t max) {
    Constrained search{.beam = {.width = 3}, .constraints = Constraints(lists)};
    search.beam.length.max = max;
    return run(table, std::vector<TableRequest<Constrained>>{{.source = 3, .prefix = prefix}}, search).at(0);
  };
  auto const doubled = after({4, 4}, {.all = {{4, 5}}}, 4);
  CHECK(doubled.hypotheses.at(0).tokens == Tokens{4, 4, 5, eos});
  CHECK(doubled.hypotheses[0].constraints_met == 1);
  CHECK(after({4}, {.all = {{4}, {4, 5}}}, 3).hypotheses.at(0).tokens == Tokens{4, 5, eos});
  CHECK(after({4, 5}, {.all = {{4}, {4, 5}}}, 3).hypotheses.at(0).tokens == Tokens{4, 5, eos});
  CHECK(after({3}, {.all = {{bos, 3, 6}, {6, eos}}}, 4).hypotheses.at(0).tokens == Tokens{3, 6, eos});
}

TEST_CASE("where nothing complete is found there is one hypothesis, the best", "[constrained_beam_search]") {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < times(400u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 5);
    // One place too few: 3 3 4 4 3 takes five.
    PhraseLists lists{.all = {{3, 4}, {4, 3}, {3, 3}, {4, 4}}};
    lists.all.push_back(random_phrase(random, 3, 4, 2, false));
    auto const forced = random() % 2 == 0;
    auto const max = forced ? 5 : 4;
    Constrained search{.beam = {.n_best = between(random, 1, 4), .penalty = random_penalty(random)},
                       .constraints = Constraints(lists)};
    search.beam.length.max = max, search.beam.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.beam.at_maximum = forced ? AtMaximum::force_eos : AtMaximum::truncate;
    search.list_incomplete = random() % 2 == 0;
    auto const all = all_sequences(table, seed, {.maximum = forced ? max - 1 : max, .must_finish = false});
    search.beam.width = 3 * static_cast<std::int32_t>(all.size());
    std::vector<Sequence> alive;
    for (auto const& s : all)
      if (!s.finished) alive.push_back(s);
    for (auto& s : alive) s.score = score(search.beam.penalty, s.tokens, s.log_prob);
    std::ranges::sort(alive, [&](Sequence const& a, Sequence const& b) {
      auto const x = naive_met(lists, a.tokens), y = naive_met(lists, b.tokens);
      return x != y ? x > y : a.score > b.score;
    });
    INFO("seed " << seed << ", " << text(search));
    auto const result = run_one(table, seed, search);
    check_constraints(result, lists, search.list_incomplete);
    auto const expected = search.list_incomplete ? static_cast<std::size_t>(search.beam.n_best) : 1;
    REQUIRE(result.hypotheses.size() == expected);
    for (std::size_t i = 0; i < expected; ++i) {
      auto const& h = result.hypotheses[i];
      CHECK(h.constraints_met == naive_met(lists, alive[i].tokens));
      CHECK_THAT(h.score, WithinAbs(alive[i].score, 1e-4));
      CHECK_FALSE(h.finished);
      ++compared;
    }
  }
  CHECK(compared > times(400u));
}

TEST_CASE("what is left incomplete is listed behind what is complete, if wanted", "[constrained_beam_search]") {
  std::size_t both = 0;
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 6);
    auto const lists = random_lists(random, {.last = 5, .longest = 2, .all = 3});
    if (naive_count(lists) == 0) continue;
    Constrained search{.beam = {.width = 8, .n_best = 8}, .constraints = Constraints(lists)};
    search.beam.at_maximum = static_cast<AtMaximum>(random() % 5);
    if (search.beam.at_maximum == AtMaximum::drop) continue;
    search.beam.length.max = 7;
    auto const few = run_one(table, seed, search);
    search.list_incomplete = true;
    auto const many = run_one(table, seed, search);
    if (!few.ok()) continue;
    check_constraints(many, lists, true);
    REQUIRE(many.hypotheses.size() >= few.hypotheses.size());
    both += many.hypotheses.size() > few.hypotheses.size() ? 1 : 0;
    for (std::size_t i = 0; i < few.hypotheses.size(); ++i)
      CHECK(few.hypotheses[i].tokens == many.hypotheses[i].tokens);
  }
  CHECK(both > times(100u));
}
