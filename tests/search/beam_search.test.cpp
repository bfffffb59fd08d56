// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Search<BeamSearch>);
using BeamRequest = TableRequest<BeamSearch>;

LengthPenalty random_penalty(std::mt19937_64& random) {
  LengthPenalty penalty;
  auto const part = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  penalty.kind = static_cast<LengthPenalty::Kind>(random() % 3);
  penalty.alpha = random() % 3 == 0 ? 1 : 2 * part() - 0.5;
  penalty.beta = 6 * part();
  if (random() % 4 == 0) penalty.word_penalty = part() - 0.5;
  return penalty;
}

/// The documented formulas of the penalties, restated.
double score(LengthPenalty const& penalty, double log_prob, std::size_t length) {
  auto const n = static_cast<double>(std::max<std::size_t>(length, 1));
  auto const total = log_prob - penalty.word_penalty * static_cast<double>(length);
  if (penalty.kind == LengthPenalty::Kind::none) return total;
  if (penalty.kind == LengthPenalty::Kind::average) return total / std::pow(n, penalty.alpha);
  return total / std::pow((penalty.beta + n) / (penalty.beta + 1), penalty.alpha);
}

std::string options(BeamSearch const& search) {
  return "width " + std::to_string(search.width) + ", n_best " + std::to_string(search.n_best) + ", length " +
         std::to_string(search.length.min) + " to " + std::to_string(search.length.max) + ", finished " +
         std::to_string(static_cast<int>(search.finished)) + ", at maximum " +
         std::to_string(static_cast<int>(search.at_maximum)) + ", stop " +
         std::to_string(static_cast<int>(search.early_stopping.rule)) + ", penalty " +
         std::to_string(static_cast<int>(search.penalty.kind)) + " alpha " + std::to_string(search.penalty.alpha) +
         " word " + std::to_string(search.penalty.word_penalty);
}

/// A random beam search that passes check().
BeamSearch random_search(std::mt19937_64& random, std::int32_t widest) {
  for (;;) {
    BeamSearch search{.width = 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(widest))};
    search.n_best = 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(search.width));
    search.length.max = 1 + static_cast<std::int32_t>(random() % 12);
    search.length.min = random() % 3 == 0 ? static_cast<std::int32_t>(random() % 4) : 0;
    search.penalty = random_penalty(random);
    search.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.early_stopping.rule = static_cast<EarlyStopping::Rule>(random() % 5);
    if (random() % 4 == 0) search.early_stopping.finished = 1 + static_cast<std::int32_t>(random() % 9);
    if (random() % 4 == 0) search.early_stopping.patience = 0.3 + static_cast<double>(random() % 20) / 10;
    search.at_maximum = static_cast<AtMaximum>(random() % 5);
    search.surplus = random() % 2 == 0;
    search.prefix_scored = random() % 4 != 0;
    if (random() % 4 == 0) search.candidates = search.width + static_cast<std::int32_t>(random() % 9);
    if (random() % 3 == 0) search.stage = Stage::before_softmax;
    if (random() % 4 == 0) search.pruning.absolute_threshold = static_cast<double>(random() % 50) / 10;
    if (random() % 6 == 0) search.pruning.relative_threshold = 0.02;
    if (random() % 6 == 0) search.pruning.relative_local_threshold = 0.05;
    if (random() % 4 == 0) search.pruning.max_per_parent = 1 + static_cast<std::int32_t>(random() % 4);
    try {
      search.check();
      return search;
    } catch (std::invalid_argument const&) {
    }
  }
}

}  // namespace

TEST_CASE("a beam wide enough finds the n best of all sequences", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, 4 + static_cast<std::int32_t>(random() % 4));
    if (seed % 5 == 0) table.has_eos = false;
    if (seed % 7 == 0 && table.size > 4) table.second_eos = 3;
    Universe universe;
    universe.maximum = 1 + static_cast<std::int32_t>(random() % (table.size > 6 ? 4 : 5));
    if (random() % 3 == 0) universe.minimum = std::min(static_cast<std::int32_t>(random() % 4), universe.maximum);
    if (random() % 3 == 0) universe.prompt = {4 % table.size, 3};
    if (random() % 3 == 0 && universe.maximum > 2) universe.prefix = {static_cast<Token>(table.size - 1)};
    if (!universe.prefix.empty() && table.ends(universe.prefix[0])) universe.prefix.clear();

    BeamSearch search;
    search.penalty = random_penalty(random);
    search.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.at_maximum = random() % 2 == 0 ? AtMaximum::force_eos : AtMaximum::truncate;
    search.stage = random() % 2 == 0 ? Stage::before_softmax : Stage::after_softmax;
    search.length.min = universe.minimum, search.length.max = universe.maximum;
    if (random() % 3 == 0 && search.finished != FinishedHypotheses::stay)
      search.early_stopping.rule = EarlyStopping::Rule::exact;
    universe.masked_before_softmax = search.stage == Stage::before_softmax;
    universe.must_finish = search.at_maximum == AtMaximum::force_eos;

    auto all = all_sequences(table, seed, universe);
    if (all.empty()) continue;  // no ordinary token and eos too early
    search.one_end = table.second_eos >= 0 && random() % 2 == 0;
    if (search.one_end) {  // of texts that differ in the end alone, the best
      std::map<std::pair<std::vector<Token>, bool>, Sequence> best;
      for (auto const& one : all) {
        auto text = one.tokens;
        auto const ends = !text.empty() && table.ends(text.back());
        if (ends) text.pop_back();
        auto const [it, fresh] = best.try_emplace({text, ends}, one);
        if (!fresh && one.log_prob > it->second.log_prob) it->second = one;
      }
      std::erase_if(all, [&](Sequence const& one) {
        return std::ranges::none_of(best, [&](auto const& kept) { return kept.second.tokens == one.tokens; });
      });
    }
    search.width = static_cast<std::int32_t>(all.size());
    search.n_best = 1 + static_cast<std::int32_t>(random() % all.size());
    INFO("seed " << seed << ", V = " << table.size << ", " << options(search) << ", stage "
                 << static_cast<int>(search.stage) << ", prefix " << text(universe.prefix) << ", prompt "
                 << universe.prompt.size() << ", second eos " << table.second_eos);
    auto const expected = n_best(all, static_cast<std::size_t>(search.n_best),
                                 [&](Sequence const& s) { return score(search.penalty, s.log_prob, s.tokens.size()); });
    BeamRequest request{.source = seed, .prefix = universe.prefix};
    if (!universe.prompt.empty()) request.prompt = {bos, universe.prompt[0], universe.prompt[1]};
    auto const result = run(table, {request}, search).at(0);
    check_n_best(result, expected);
    if (search.stage == Stage::after_softmax || search.length.min == 0)
      check_result(result, table, seed, universe.prompt);
  }
}

TEST_CASE("a beam ends with what the maximum length leaves of it", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(400u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 4 + static_cast<std::int32_t>(random() % 3));
    auto const max = 2 + static_cast<std::int32_t>(random() % 3);
    auto const penalty = random_penalty(random);
    auto const by_penalty = [&](Sequence const& s) { return score(penalty, s.log_prob, s.tokens.size()); };
    auto all = all_sequences(table, seed, {.maximum = max, .must_finish = false});
    BeamSearch search{.width = static_cast<std::int32_t>(all.size()), .n_best = static_cast<std::int32_t>(all.size())};
    search.length.max = max, search.penalty = penalty, search.finished = static_cast<FinishedHypotheses>(random() % 4);
    INFO("seed " << seed << ", V = " << table.size << ", " << options(search));

    auto finished = all;
    std::erase_if(finished, [](Sequence const& s) { return !s.finished; });
    search.at_maximum = AtMaximum::drop;
    auto result = run_one(table, seed, search);
    check_n_best(result, n_best(finished, all.size(), by_penalty));

    auto unfinished = all;
    std::erase_if(unfinished, [](Sequence const& s) { return s.finished; });
    auto best = finished;
    best.push_back(n_best(unfinished, 1, [](Sequence const& s) { return s.log_prob; }).at(0));
    search.at_maximum = AtMaximum::best_unfinished;
    result = run_one(table, seed, search);
    check_n_best(result, n_best(best, all.size(), by_penalty));

    auto free = finished;  // a last eos costs nothing
    std::erase_if(free, [&](Sequence const& s) { return static_cast<std::int32_t>(s.tokens.size()) == max; });
    for (auto s : all_sequences(table, seed, {.maximum = max - 1, .must_finish = false}))
      if (!s.finished) s.tokens.push_back(eos), s.finished = true, free.push_back(s);
    search.at_maximum = AtMaximum::force_eos_free;
    Counters counters;
    result = run(table, std::vector<BeamRequest>{{.source = seed}}, search, Batched{}, {}, &counters).at(0);
    check_n_best(result, n_best(free, all.size(), by_penalty));
    CHECK(counters.steps == static_cast<std::size_t>(max) - 1);  // the last step computes nothing
    for (auto const& h : result.hypotheses)
      if (static_cast<std::int32_t>(h.tokens.size()) == max) CHECK(h.log_probs.back() == 0);
  }
}

TEST_CASE("a beam gives the same bits in any batch, order and set of abilities", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, 5 + static_cast<std::int32_t>(random() % 20));
    if (seed % 4 == 0) table.levels = 4;  // ties
    if (seed % 6 == 0) table.has_eos = false;
    if (seed % 9 == 0) table.second_eos = 4;
    auto const search = random_search(random, 6);
    INFO("seed " << seed << ", V = " << table.size << ", " << options(search));
    std::vector<BeamRequest> requests;
    std::vector<Result> alone;
    for (std::uint64_t i = 0; i < 12; ++i) {
      BeamRequest request{.source = random() % 1000};
      if (random() % 3 == 0) request.prompt = {bos, 3, static_cast<Token>(3 + random() % 2)};
      if (random() % 4 == 0) request.prefix = {3};
      if (random() % 4 == 0) request.search = random_search(random, 9);
      requests.push_back(request);
      alone.push_back(run<plain>(table, {request}, search).at(0));
    }
    for_all_abilities([&]<Abilities A>() {
      for (std::size_t const batch : {std::size_t{5}, std::size_t{64}}) {
        INFO("ragged " << A.ragged << ", blocks " << A.blocks << ", roll_back " << A.roll_back << ", batch " << batch);
        auto const results = run<A>(table, requests, search, Batched{batch});
        for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], alone[i]));
      }
    });
    std::vector<std::size_t> order(requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<BeamRequest> shuffled;
    for (auto i : order) shuffled.push_back(requests[i]);
    auto const results = run<everything>(table, shuffled, search, Batched{7});
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(identical(results[i], alone[order[i]]));
  }
}

TEST_CASE("whatever a beam's options: its numbers are true, its list sorted, its lengths in bounds", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(4000u); ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, 5 + static_cast<std::int32_t>(random() % 12));
    if (seed % 6 == 0) table.has_eos = false;
    if (seed % 9 == 0) table.second_eos = 4;
    auto search = random_search(random, 7);
    search.stage = Stage::after_softmax, search.prefix_scored = true;
    INFO("seed " << seed << ", V = " << table.size << ", " << options(search));
    CheckedTable<> model(TableModel<everything>{table}, {.slots = static_cast<std::size_t>(search.width)});
    std::vector<std::uint64_t> const sources{seed};
    auto const result = decode(model, sources, search).at(0);
    CHECK(model.report() == "");
    if (result.failure == Failure::no_token_left) {
      CHECK(result.hypotheses.empty());
      continue;
    }
    if (search.at_maximum == AtMaximum::force_eos_free) {  // the last log-probability is not the table's
      REQUIRE(result.ok());
    } else {
      check_result(result, table, seed);
    }
    CHECK(result.hypotheses.size() <= static_cast<std::size_t>(search.n_best));
    for (auto const& h : result.hypotheses) {
      auto const length = static_cast<std::int32_t>(h.tokens.size());
      CHECK(length >= 1);
      CHECK(length <= search.length.max);
      if (h.finished && !table.endless()) CHECK(length > std::min(search.length.min, search.length.max - 1));
      if (table.endless()) CHECK(length == search.length.max);
      if (!h.finished) CHECK(length == search.length.max);
      CHECK_THAT(h.score, WithinAbs(score(search.penalty, h.log_prob, h.tokens.size()), 1e-9));
    }
  }
}

TEST_CASE("a shorter n-best list is the beginning of a longer one", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(500u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 5 + static_cast<std::int32_t>(random() % 12));
    auto search = random_search(random, 7);
    if (search.early_stopping.rule == EarlyStopping::Rule::top_ended ||
        search.early_stopping.rule == EarlyStopping::Rule::exact)
      search.early_stopping.rule = EarlyStopping::Rule::count;
    search.n_best = search.width;
    auto const all = run_one(table, seed, search);
    for (search.n_best = 1; search.n_best < search.width; ++search.n_best) {
      INFO("seed " << seed << ", " << options(search));
      auto const some = run_one(table, seed, search);
      auto const n = std::min(all.hypotheses.size(), static_cast<std::size_t>(search.n_best));
      REQUIRE(some.hypotheses.size() == n);
      for (std::size_t i = 0; i < n; ++i) CHECK(some.hypotheses[i].tokens == all.hypotheses[i].tokens);
    }
  }
}

TEST_CASE("the exact stop ends early and loses nothing", "[beam_search]") {
  std::size_t stopped = 0, full = 0;
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 5 + static_cast<std::int32_t>(random() % 12));
    BeamSearch search{.width = 1 + static_cast<std::int32_t>(random() % 6)};
    search.n_best = 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(search.width));
    search.length.max = 1 + static_cast<std::int32_t>(random() % 14);
    search.penalty = random_penalty(random);
    search.finished = random() % 3 == 0   ? FinishedHypotheses::shrink
                      : random() % 2 == 0 ? FinishedHypotheses::leave_first
                                          : FinishedHypotheses::set_aside;
    search.at_maximum = static_cast<AtMaximum>(random() % 5);
    auto patient = search;
    patient.early_stopping = {.rule = EarlyStopping::Rule::count, .finished = 1 << 20};
    patient.surplus = true;
    search.early_stopping.rule = EarlyStopping::Rule::exact;
    INFO("seed " << seed << ", V = " << table.size << ", " << options(search));
    Counters early, late;
    auto const a = run(table, std::vector<BeamRequest>{{.source = seed}}, search, Batched{}, {}, &early).at(0);
    auto const b = run(table, std::vector<BeamRequest>{{.source = seed}}, patient, Batched{}, {}, &late).at(0);
    CHECK(early.steps <= late.steps);
    stopped += early.steps, full += late.steps;
    REQUIRE(a.hypotheses.size() == b.hypotheses.size());
    for (std::size_t i = 0; i < a.hypotheses.size(); ++i) {
      CHECK(a.hypotheses[i].score == b.hypotheses[i].score);
      if (i + 1 < a.hypotheses.size() && a.hypotheses[i].score != a.hypotheses[i + 1].score)
        CHECK(a.hypotheses[i].tokens == b.hypotheses[i].tokens);
    }
  }
  CHECK(stopped < full);
}

TEST_CASE("a beam of width one that cuts at the maximum is greedy", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(500u); ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, 4 + static_cast<std::int32_t>(random() % 12));
    if (seed % 5 == 0) table.levels = 3;
    if (seed % 6 == 0) table.has_eos = false;
    LengthLimits const length{.min = static_cast<std::int32_t>(random() % 3),
                              .max = 3 + static_cast<std::int32_t>(random() % 9)};
    BeamSearch search{.width = 1, .length = length, .penalty = {.kind = LengthPenalty::Kind::none}};
    search.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.at_maximum = AtMaximum::truncate;
    INFO("seed " << seed << ", " << options(search));
    CHECK(identical(run_one(table, seed, search), run_one(table, seed, Greedy{.length = length})));
  }
}

TEST_CASE("every hypothesis scores what a forced score of its tokens says, bit for bit", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 5 + static_cast<std::int32_t>(random() % 12));
    auto search = random_search(random, 6);
    search.stage = Stage::after_softmax, search.prefix_scored = true;
    if (search.at_maximum == AtMaximum::force_eos_free) search.at_maximum = AtMaximum::force_eos;
    INFO("seed " << seed << ", " << options(search));
    for (auto const& h : run_one(table, seed, search).hypotheses) {
      std::vector<TableRequest<ForcedScore>> const target{{.source = seed, .prefix = h.tokens}};
      auto const again = run<everything>(table, target, ForcedScore{.penalty = search.penalty}).at(0).hypotheses.at(0);
      CHECK(again.tokens == h.tokens);
      CHECK(again.log_probs == h.log_probs);
      CHECK_THAT(again.log_prob, WithinAbs(h.log_prob, 1e-12));
      CHECK_THAT(again.score, WithinAbs(h.score, 1e-9));
    }
  }
}

TEST_CASE("a beam never says what the vocabulary forbids", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 9);
    auto search = random_search(random, 5);
    search.stage = Stage::before_softmax;  // forbidden tokens take no probability
    search.pruning = {};
    INFO("seed " << seed << ", " << options(search));
    auto const expected = run_one(table, seed, search);
    for (auto const kind : {Kind::logits, Kind::log_probs})
      for (auto const& options :
           {TableOptions{.kind = kind, .impossible = false}, TableOptions{.kind = kind, .never = false}}) {
        auto const result = run_one(table, seed, search, options);
        CHECK(result.failure == expected.failure);
        REQUIRE(result.hypotheses.size() == expected.hypotheses.size());
        for (std::size_t i = 0; i < expected.hypotheses.size(); ++i) {
          CHECK_THAT(result.hypotheses[i].score, WithinAbs(expected.hypotheses[i].score, 1e-4));
          for (auto t : result.hypotheses[i].tokens) CHECK(t >= eos);
        }
      }
  }
}

TEST_CASE("a prefix that does not count costs nothing", "[beam_search]") {
  for (std::uint64_t seed = 0; seed < times(200u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 9);
    std::vector<BeamRequest> const requests{{.source = seed, .prefix = {4, 5}}};
    BeamSearch search{.width = 3, .n_best = 3, .length = {.max = 9}};
    auto const counted = run(table, requests, search).at(0);
    search.prefix_scored = false;
    auto const free = run(table, requests, search).at(0);
    INFO("seed " << seed);
    auto const cost = log_prob(table, seed, {}, std::vector<Token>{4, 5});
    REQUIRE(free.hypotheses.size() == counted.hypotheses.size());
    CHECK(free.hypotheses.at(0).log_probs[0] == 0);
    CHECK(free.hypotheses.at(0).log_probs[1] == 0);
    std::vector<double> a, b;
    for (auto const& h : counted.hypotheses) a.push_back(h.log_prob - cost);
    for (auto const& h : free.hypotheses) b.push_back(h.log_prob);
    std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK_THAT(a[i], WithinAbs(b[i], 1e-4));
  }
}

TEST_CASE("a pruned beam keeps what lies above the threshold", "[beam_search]") {
  Table const table{.size = 30, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
  std::vector<BeamRequest> requests;
  for (std::uint64_t i = 0; i < 30; ++i) requests.push_back({.source = i});
  BeamSearch search{.width = 8, .n_best = 8, .length = {.max = 20}};
  Counters full, wide, narrow, none_left, parents;
  auto const unpruned = run(table, requests, search, Batched{}, {}, &full);
  search.pruning.absolute_threshold = 1e6;
  auto const same = run(table, requests, search, Batched{}, {}, &wide);
  for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(same[i], unpruned[i]));
  CHECK(wide.rows == full.rows);
  search.pruning.absolute_threshold = 1;
  auto const pruned = run(table, requests, search, Batched{}, {}, &narrow);
  CHECK(narrow.rows < full.rows);
  for (auto const& result : pruned) CHECK(result.ok());
  search.pruning.absolute_threshold = 0;  // "exactly at a threshold is dropped": drops even the best
  auto const all_dropped = run(table, requests, search, Batched{}, {}, &none_left);
  CHECK(none_left.most_rows <= requests.size());
  search.pruning = {.max_per_parent = 1};
  auto const single = run(table, requests, search, Batched{}, {}, &parents);
  CHECK(parents.forks == 0);
}

TEST_CASE("a beam search refuses options that make no sense, by name and value", "[beam_search]") {
  TableModel<> model;
  std::vector<std::uint64_t> const sources{1};
  auto const refused = [&](BeamSearch const& search, std::string const& name, std::string const& value) {
    try {
      decode(model, sources, search);
    } catch (std::invalid_argument const& error) {
      INFO(error.what());
      auto const what = std::string(error.what());
      CHECK(what.find(name) != std::string::npos);
      CHECK(what.find(value) != std::string::npos);
      return true;
    }
    return false;
  };
  CHECK(refused({.width = 0}, "width", "0"));
  CHECK(refused({.width = -3}, "width", "-3"));
  CHECK(refused({.width = 4, .n_best = 5}, "n_best", "5"));
  CHECK(refused({.n_best = 0}, "n_best", "0"));
  CHECK(refused({.length = {.min = -1}}, "length.min", "-1"));
  CHECK(refused({.length = {.max = -7}}, "length.max", "-7"));
  CHECK(refused({.penalty = {.alpha = std::numeric_limits<double>::quiet_NaN()}}, "penalty.alpha", "nan"));
  CHECK(refused({.penalty = {.kind = LengthPenalty::Kind::gnmt, .beta = -1}}, "penalty.beta", "-1"));
  CHECK(refused({.pruning = {.absolute_threshold = -0.5}}, "pruning.absolute_threshold", "-0.5"));
  CHECK(refused({.pruning = {.absolute_threshold = std::numeric_limits<double>::quiet_NaN()}},
                "pruning.absolute_threshold", "nan"));
  CHECK(refused({.pruning = {.relative_threshold = 1}}, "pruning.relative_threshold", "1"));
  CHECK(refused({.pruning = {.max_per_parent = 0}}, "pruning.max_per_parent", "0"));
  CHECK(refused({.early_stopping = {.finished = -1}}, "early_stopping.finished", "-1"));
  CHECK(refused({.early_stopping = {.patience = 0}}, "early_stopping.patience", "0"));
  CHECK(refused({.width = 5, .candidates = 4}, "candidates", "4"));
}

TEST_CASE("equal candidates keep the order of their parents, then of their tokens", "[beam_search]") {
  Table table{.size = 7, .scale = 0, .eos_bias = -100, .eos_slope = 0};  // all ordinary tokens alike
  BeamSearch const search{.width = 4, .n_best = 4, .length = {.max = 2}, .at_maximum = AtMaximum::truncate};
  auto const result = run_one(table, 1, search);
  REQUIRE(result.hypotheses.size() == 4);
  CHECK(result.hypotheses[0].tokens == std::vector<Token>{3, 3});
  CHECK(result.hypotheses[1].tokens == std::vector<Token>{3, 4});
  CHECK(result.hypotheses[2].tokens == std::vector<Token>{3, 5});
  CHECK(result.hypotheses[3].tokens == std::vector<Token>{3, 6});
}
