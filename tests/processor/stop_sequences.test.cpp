// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/decoding.hpp>
#include <support/guessing.hpp>
#include <support/stops.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A plain output, cut at its first stop.
Hypothesis cut(Hypothesis h, StopOptions const& stops, Table const& table, std::size_t prefix, std::int32_t minimum) {
  auto const end = !h.tokens.empty() && table.ends(h.tokens.back()) ? 1u : 0u;
  auto const first = first_stop(stops, std::span(h.tokens).first(h.tokens.size() - end), prefix,
                                static_cast<std::size_t>(std::max(minimum, stops.minimum)));
  if (first.stop < 0) return h;
  h.tokens.resize(first.tokens), h.log_probs.resize(first.tokens);
  h.log_prob = 0;
  for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
  h.score = h.log_prob, h.stop = first.stop, h.finished = true;
  return h;
}

/// All outputs of a table, cut at their first stops, each once: `length` of each counts the eos that is removed.
std::vector<Sequence> all_cut(Table const& table, std::uint64_t seed, Universe const& universe,
                              StopOptions const& stops) {
  std::map<std::vector<Token>, Sequence> found;
  for (auto& one : all_sequences(table, seed, universe)) {
    auto const end = table.ends(one.tokens.back()) ? 1u : 0u;
    auto const first = first_stop(stops, std::span(one.tokens).first(one.tokens.size() - end), universe.prefix.size(),
                                  static_cast<std::size_t>(std::max(universe.minimum, stops.minimum)));
    if (first.stop >= 0) {
      one.tokens.resize(first.tokens);
      one.log_prob = log_prob(table, seed, universe.prompt, one.tokens), one.finished = true;
    }
    found[one.tokens] = one;
  }
  std::vector<Sequence> all;
  for (auto& [tokens, one] : found) all.push_back(std::move(one));
  return all;
}

template <class S>
std::vector<TableRequest<S>> some(std::size_t count, std::vector<Token> const& prefix = {}) {
  std::vector<TableRequest<S>> requests;
  for (std::uint64_t seed = 0; seed < count; ++seed) requests.push_back({.source = seed, .prefix = prefix});
  return requests;
}

}  // namespace

TEST_CASE("greedy under stops is greedy cut at its first stop, and costs no row more", "[stop_sequences]") {
  std::mt19937_64 random(1);
  std::size_t stopped = 0, crossed = 0;
  for (int round = 0; round < times(150); ++round) {
    auto const table = random_table(random, static_cast<std::int32_t>(5 + random() % 6));
    auto const stops = random_stops(random, table);
    auto const prefix = round % 3 == 0 ? std::vector<Token>{3, 4, 3} : std::vector<Token>{};
    Greedy const greedy{.length = {.min = round % 4 == 0 ? 6 : 0, .max = static_cast<std::int32_t>(6 + random() % 7)}};
    using Stopped = Processed<Greedy>;
    auto const uncut = run<everything>(table, some<Greedy>(6, prefix), greedy);
    Counters counters;
    auto const results = run<everything>(table, some<Stopped>(6, prefix), Stopped{greedy, StopSequences(stops)},
                                         Batched{}, {}, &counters);
    std::size_t rows = 0;
    for (std::size_t i = 0; i < uncut.size(); ++i) {
      auto const expected = cut(uncut[i].hypotheses.at(0), stops, table, prefix.size(), greedy.length.min);
      REQUIRE(results[i].ok());
      auto const& h = results[i].hypotheses.at(0);
      CHECK(same_output(h, expected));
      check_stopped(results[i], StopSequences(stops), table, i, prefix, static_cast<std::size_t>(greedy.length.min));
      stopped += h.stop >= 0 ? 1 : 0;
      if (h.stop >= static_cast<std::int32_t>(stops.tokens.size()))
        crossed += stops.bytes.bytes(h.tokens.back()).size() <
                   stops.strings[static_cast<std::size_t>(h.stop) - stops.tokens.size()].size();
      rows += h.tokens.size() - prefix.size();
    }
    CHECK(counters.rows == rows);
  }
  CHECK(stopped > times(200u));
  CHECK(crossed > times(20u));
}

TEST_CASE("a wide beam under stops finds the best of all outputs cut at their first stops", "[stop_sequences]") {
  std::mt19937_64 random(2);
  for (int round = 0; round < times(60); ++round) {
    auto const table = random_table(random, 6);
    auto const stops = random_stops(random, table);
    auto const prefix = round % 3 == 0 ? std::vector<Token>{3, 4} : std::vector<Token>{};
    auto const minimum = round % 4 == 0 ? 3 : 0;
    BeamSearch beam{.width = 400, .n_best = 12, .length = {.min = minimum, .max = 6}, .penalty = {.alpha = 0.7}};
    if (round % 2 == 0) beam.at_maximum = AtMaximum::truncate;
    beam.stop_at_once = round % 5 < 2;  // then the score counts no end behind the stop
    Universe const universe{.minimum = minimum, .maximum = 6, .must_finish = round % 2 != 0, .prefix = prefix};
    auto const expected = n_best(all_cut(table, 7, universe, stops), 12, [&](Sequence const& s) {
      auto const none = beam.stop_at_once || table.ends(s.tokens.back()) || !s.finished || s.tokens.size() == 6;
      auto const end = none ? 0 : 1;
      return beam.penalty.score(s.log_prob, static_cast<std::int32_t>(s.tokens.size()) + end);
    });
    using Stopped = Processed<BeamSearch>;
    auto const results = run<everything>(table, std::vector<TableRequest<Stopped>>{{.source = 7, .prefix = prefix}},
                                         Stopped{beam, StopSequences(stops)});
    check_n_best(results.at(0), expected);
    check_stopped(results.at(0), StopSequences(stops), table, 7, prefix, static_cast<std::size_t>(minimum));
  }
}

namespace {

/// Hugging Face's beam under stops, restated over whole lists: candidates that complete one leave as those in eos do.
std::vector<Hypothesis> beam_at_once(Table const& table, std::uint64_t seed, BeamSearch const& beam,
                                     StopOptions const& stops) {
  auto const width = static_cast<std::size_t>(beam.width);
  auto const ends = static_cast<std::size_t>(table.ends(eos)) + (table.second_eos >= 0 ? 1u : 0u);
  std::vector<Hypothesis> live(1), out;
  std::vector<double> line(static_cast<std::size_t>(table.size));
  auto const better = [](Hypothesis const& a, Hypothesis const& b) { return a.log_prob > b.log_prob; };
  auto const by_score = [](Hypothesis const& a, Hypothesis const& b) { return a.score > b.score; };
  for (std::int32_t length = 1; length <= beam.length.max && !live.empty(); ++length) {
    std::vector<Hypothesis> found, next;
    for (auto const& parent : live) {
      table.log_probs(seed, parent.tokens, line);
      for (Token v = 0; v < table.size; ++v) {
        if (!table.possible(v) || (table.ends(v) && length <= beam.length.min)) continue;
        auto& child = found.emplace_back(parent);
        child.tokens.push_back(v), child.log_prob += line[static_cast<std::size_t>(v)];
        child.score = child.log_prob / std::pow(length, beam.penalty.alpha);
        auto const first = static_cast<std::size_t>(std::max(beam.length.min, stops.minimum));
        child.stop = table.ends(v) ? -1 : first_stop(stops, child.tokens, 0, first).stop;
        child.finished = table.ends(v) || child.stop >= 0;
      }
    }
    std::ranges::stable_sort(found, better);
    found.resize(std::min(found.size(), width * (1 + ends)));
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto const joins = found[i].finished || length == beam.length.max;
      if (joins && i < width) out.push_back(found[i]);
      if (!found[i].finished && next.size() < width) next.push_back(found[i]);
    }
    live = next;
    std::ranges::stable_sort(out, by_score);
    out.resize(std::min(out.size(), width));
    if (out.size() == width && !live.empty() &&
        (beam.early_stopping.rule == EarlyStopping::Rule::count ||
         live[0].log_prob / std::pow(length, beam.penalty.alpha) <= out.back().score))
      break;
  }
  return out;
}

}  // namespace

TEST_CASE("a stop at once leaves its place to another hypothesis, as in Hugging Face", "[stop_sequences]") {
  std::mt19937_64 random(9);
  std::size_t stopped = 0, filled = 0;
  for (int round = 0; round < times(200); ++round) {
    auto table = random_table(random, static_cast<std::int32_t>(6 + random() % 6));
    table.order = -1, table.levels = 0;  // no ties
    auto const stops = random_stops(random, table);
    auto beam = presets::huggingface(static_cast<std::int32_t>(1 + random() % 5), static_cast<double>(random() % 3) / 2,
                                     random() % 3 == 0 ? EarlyStopping::Rule::count : EarlyStopping::Rule::heuristic);
    beam.n_best = beam.width, beam.length = {.min = random() % 3 == 0 ? 3 : 0, .max = 7};
    using Stopped = Processed<BeamSearch>;
    auto later = beam;
    later.stop_at_once = false;
    auto const results = run<everything>(table, some<Stopped>(5), Stopped{beam, StopSequences(stops)});
    auto const others = run<everything>(table, some<Stopped>(5), Stopped{later, StopSequences(stops)});
    auto const constrained = run<everything>(
        table, some<Processed<ConstrainedBeamSearch<>>>(5),
        Processed<ConstrainedBeamSearch<>>{ConstrainedBeamSearch<>{.beam = beam}, StopSequences(stops)});
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("round " << round << ", sentence " << i);
      auto const expected = beam_at_once(table, i, beam, stops);
      REQUIRE(results[i].hypotheses.size() == expected.size());
      CHECK(identical(results[i], constrained[i]));
      filled += !same_outputs(results[i], others[i]);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        auto const& h = results[i].hypotheses[k];
        INFO(text(h.tokens) << " for " << text(expected[k].tokens));
        CHECK((h.tokens == expected[k].tokens && h.stop == expected[k].stop && h.finished == expected[k].finished));
        CHECK((std::abs(h.score - expected[k].score) < 1e-4 && std::abs(h.log_prob - expected[k].log_prob) < 1e-4));
        CHECK((h.log_probs.size() == h.tokens.size()));
        stopped += h.stop >= 0;
      }
    }
  }
  CHECK(stopped > times(300u));
  CHECK(filled > times(50u));
}

TEST_CASE("what stops behind a line that is run for its forks takes no place of others", "[stop_sequences]") {
  Table const table{.size = 20, .scale = 5, .eos_bias = -1};
  StopSequences const stop({.tokens = {{4}, {5}, {6}}});
  using Stopped = Processed<BeamSearch>;
  for (auto const width : {3, 5, 8}) {
    BeamSearch const narrow{.width = width, .n_best = width, .length = {.max = 15}};
    auto wide = narrow;
    wide.candidates = 1000;  // so many that the lists omit nothing
    auto const found = run(plain, table, some<Stopped>(300), Stopped{narrow, stop});
    auto const expected = run(plain, table, some<Stopped>(300), Stopped{wide, stop});
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("width " << width << ", sentence " << i);
      CHECK(same_outputs(found[i], expected[i]));
    }
  }
}

TEST_CASE("blockwise under stops is greedy under stops, whatever is guessed", "[stop_sequences]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    auto table = random_table(random, static_cast<std::int32_t>(5 + random() % 6));
    table.eos_bias = -3;
    auto const stops = random_stops(random, table);
    Greedy const greedy{.length = {.max = 12}};
    auto const expected = run<everything>(table, some<Processed<Greedy>>(6), Processed{greedy, StopSequences(stops)});
    for (auto const kind : {Guesses::as_they_are, Guesses::corrupted, Guesses::eos_first, Guesses::random}) {
      TableChecker model(TableModel<everything>(table), everything), small(TableModel<everything>(table), everything);
      Speculated drafted(model, DraftModel(small));
      Guessing guessing(drafted, kind, 7);
      Processed const exact{Blockwise<>{.block = 5, .length = greedy.length}, StopSequences(stops)};
      auto const results = decode(guessing, some<Processed<Blockwise<>>>(6), exact);
      for (std::size_t i = 0; i < results.size(); ++i) {
        CHECK(same_outputs(results[i], expected[i]));
        CHECK(results[i].hypotheses.at(0).stop == expected[i].hypotheses.at(0).stop);
        std::size_t settled = 0;
        for (auto const n : results[i].hypotheses.at(0).blocks) settled += static_cast<std::size_t>(n);
        CHECK(settled == results[i].hypotheses.at(0).tokens.size());
      }
      Processed const relaxed{
          Blockwise<acceptance::TopK>{.block = 5, .accept = {2}, .minimum = 3, .length = greedy.length},
          StopSequences(stops)};
      auto const guessed = decode(guessing, some<Processed<Blockwise<acceptance::TopK>>>(6), relaxed);
      for (std::size_t i = 0; i < guessed.size(); ++i) check_stopped(guessed[i], StopSequences(stops), table, i);
      CHECK(model.report() == "");
    }
  }
}

TEST_CASE("samples under stops are the same samples cut at their first stops", "[stop_sequences]") {
  std::mt19937_64 random(4);
  for (int round = 0; round < times(60); ++round) {
    auto const table = random_table(random, static_cast<std::int32_t>(5 + random() % 6));
    auto const stops = random_stops(random, table);
    Sample const sample{.temperature = 1, .top_k = round % 2 == 0 ? 0 : 3, .samples = 4, .length = {.max = 9}};
    auto const uncut = run<everything>(table, some<Sample>(4), sample);
    auto const results = run<everything>(table, some<Processed<Sample>>(4), Processed{sample, StopSequences(stops)});
    for (std::size_t i = 0; i < uncut.size(); ++i) {
      REQUIRE(results[i].hypotheses.size() == uncut[i].hypotheses.size());
      for (std::size_t j = 0; j < 4; ++j)
        CHECK(same_output(results[i].hypotheses[j], cut(uncut[i].hypotheses[j], stops, table, 0, 0)));
    }
  }
}

TEST_CASE("a stochastic beam under stops draws from the outputs cut at their first stops", "[stop_sequences]") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 30; ++round) {
    auto const table = random_table(random, 5);
    auto const stops = random_stops(random, table);
    auto const all = all_cut(table, 3, {.maximum = 5, .must_finish = false}, stops);
    StochasticBeam const beam{.width = 300, .length = {.max = 5}};
    auto const result = run<everything>(table, std::vector<TableRequest<Processed<StochasticBeam>>>{{.source = 3}},
                                        Processed{beam, StopSequences(stops)})
                            .at(0);
    CHECK(result.hypotheses.size() == all.size());
    check_stopped(result, StopSequences(stops), table, 3);
    double mass = 0;
    for (auto const& h : result.hypotheses) mass += std::exp(h.log_prob);
    CHECK(std::abs(mass - 1) < 1e-4);
  }
}

TEST_CASE("stops hold in diverse and constrained beams and every preset, in any company", "[stop_sequences]") {
  std::mt19937_64 random(6);
  std::size_t stopped = 0, complete = 0;
  for (int round = 0; round < 25; ++round) {
    auto const table = random_table(random, static_cast<std::int32_t>(6 + random() % 5));
    auto const stops = random_stops(random, table);
    StopSequences const rule(stops);
    auto const check = [&](auto const& search, auto const& verify) {
      using Stopped = Processed<std::remove_cvref_t<decltype(search)>>;
      auto const requests = some<Stopped>(6);
      auto const alone = run<everything>(table, requests, Stopped{search, rule}, Batched{.size = 1});
      auto const together = run(plain, table, requests, Stopped{search, rule}, Streaming{.size = 4, .refill_below = 1});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(identical(alone[i], together[i]));
        for (auto const& h : alone[i].hypotheses) stopped += h.stop >= 0 ? 1 : 0;
        verify(alone[i], i);
      }
    };
    auto const holds = [&](Result const& result, std::size_t i) { check_stopped(result, rule, table, i); };
    for (auto beam : {presets::fairseq(4), presets::ctranslate2(4), presets::huggingface(4), presets::sockeye(4),
                      presets::marian(4), presets::varstream(4)}) {
      if (beam.at_maximum == AtMaximum::force_eos_free) beam.at_maximum = AtMaximum::drop;  // no log-prob for eos
      beam.n_best = 3, beam.length = {.max = 8};  // a minimum before the softmax changes log-probabilities
      check(beam, holds);
    }
    BeamSearch const group{.width = 2, .n_best = 2, .length = {.max = 8}};
    check(DiverseBeamSearch{.search = group, .groups = 3, .penalty = 0, .n_best = 4}, holds);
    check(DiverseBeamSearch{.search = group, .groups = 3, .n_best = 4},
          [&](Result const& result, std::size_t) {  // their numbers include penalties
            for (auto const& h : result.hypotheses)
              CHECK(first_stop(stops, h.tokens, 0, static_cast<std::size_t>(stops.minimum)).stop == h.stop);
          });
    ConstrainedBeamSearch<> const constrained{.beam = {.width = 8, .n_best = 3, .length = {.max = 9}},
                                              .constraints = Constraints({.all = {{3, 5}}})};
    check(constrained, [&](Result const& result, std::size_t i) {
      holds(result, i);
      auto const& first = result.hypotheses.at(0);
      for (auto const& h : result.hypotheses)
        CHECK((first.constraints_met < first.constraints_total || h.constraints_met == h.constraints_total));
      complete += first.stop >= 0 && first.constraints_met == first.constraints_total ? 1 : 0;
    });
  }
  CHECK(stopped > 1000);
  CHECK(complete > 10);
}

TEST_CASE("each request has its own stops, beside other rules", "[stop_sequences]") {
  Table const table{.size = 8, .scale = 2, .eos_bias = -9, .eos_slope = 0};
  std::vector<std::string> const strings{"", "", "", "a", "b", "ab", "c", "bc"};
  TokenBytes const bytes(strings);
  using Both = Processed<Greedy>;
  Greedy const greedy{.length = {.max = 30}};
  auto requests = some<Both>(20);
  for (std::size_t i = 0; i < requests.size(); i += 2)
    requests[i].search =
        Both{greedy, LogitsProcessorList(NoRepeatNgram{2}, StopSequences({.strings = {"ca"}, .bytes = bytes}))};
  auto const results = run<everything>(
      table, requests,
      Both{greedy, LogitsProcessorList(NoRepeatNgram{2}, StopSequences({.tokens = {{6, 7}, {7, 6}}, .bytes = bytes}))});
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& h = results[i].hypotheses.at(0);
    StopOptions const stops = i % 2 == 0 ? StopOptions{.strings = {"ca"}, .bytes = bytes}
                                         : StopOptions{.tokens = {{6, 7}, {7, 6}}, .bytes = bytes};
    CHECK(h.stop == first_stop(stops, h.tokens, 0, 0).stop);
    CHECK((h.stop < 0 || first_stop(stops, h.tokens, 0, 0).tokens == h.tokens.size()));
  }
  CHECK(std::ranges::count_if(results, [](Result const& r) { return r.hypotheses.at(0).stop >= 0; }) > 10);
}

TEST_CASE("a score that is forced goes past a stop", "[stop_sequences]") {
  Table const table{.size = 6};
  Processed const score{ForcedScore{}, StopSequences({.tokens = {{3}}})};
  auto const result =
      run<everything>(table, std::vector<TableRequest<Processed<ForcedScore>>>{{.source = 1, .prefix = {3, 4, eos}}},
                      score)
          .at(0);
  CHECK(result.hypotheses.at(0).tokens == std::vector<Token>{3, 4, eos});
  CHECK(std::abs(result.hypotheses.at(0).log_prob - log_prob(table, 1, {}, std::vector<Token>{3, 4, eos})) < 1e-5);
}

TEST_CASE("stops that make no sense are refused by name", "[stop_sequences]") {
  auto const message = [](auto&& make) -> std::string {
    try {
      make();
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "nothing";
  };
  TokenBytes const few(std::vector<std::string>{"a", "b"});
  CHECK(message([] { StopSequences({.strings = {"x"}}); }).find("stops.bytes") != std::string::npos);
  CHECK(message([&] {
          StopSequences({.strings = {"x", ""}, .bytes = few});
        }).find("stops.strings[1]") != std::string::npos);
  CHECK(message([] { StopSequences({.tokens = {{}}}); }).find("stops.tokens[0]") != std::string::npos);
  CHECK(message([] { StopSequences({.tokens = {{3}}, .minimum = -1}); }).find("stops.minimum = -1") !=
        std::string::npos);
  auto const refused = [](Table const& table, StopOptions stops) {
    auto const result = run_one<everything>(table, 1, Processed{Greedy{}, StopSequences(std::move(stops))});
    CHECK(result.failure == Failure::bad_request);
    return result.message;
  };
  Table const table{.size = 6};
  CHECK(refused(table, {.tokens = {{3, 6}}}).find("stops.tokens[0] = 6") != std::string::npos);
  CHECK(refused(table, {.tokens = {{eos}}}).find("end of sentence") != std::string::npos);
  CHECK(refused(table, {.strings = {"x"}, .bytes = few}).find("stops.bytes.size = 2") != std::string::npos);
  CHECK(refused({.size = 6, .has_eos = false}, {.tokens = {{3}}}).find("vocabulary.eos") != std::string::npos);
  CHECK(run_one<everything>({.size = 6, .has_eos = false}, 1, Processed{Greedy{.length = {.max = 4}}, StopSequences()})
            .ok());
}

TEST_CASE("behind a stop nothing is run, and the end that the search is told of is not shown", "[stop_sequences]") {
  Vocabulary const vocabulary{.size = 6, .bos = bos, .eos = {eos}};
  std::vector<Token> const prompt{bos};
  Processed const search{Greedy{}, StopSequences({.tokens = {{3}}})};
  std::remove_cvref_t<decltype(search)>::State state;
  search.begin(state, {.vocabulary = &vocabulary, .prompt = prompt, .last = bos});
  StepPlan step;
  Plan plan(step, 0);
  search.plan(state, plan);
  std::vector<Candidate> const best{{3, -1.0f}};
  std::vector<Expansion::Entry> const entries{{.best_count = 1}};
  CHECK_FALSE(search.advance(state, {entries, best, {}}));
  step.clear();
  Plan second(step, 0);
  search.plan(state, second);
  CHECK((step.rows.empty() && step.queries.empty() && step.groups.at(0).lines == 0));
  CHECK(search.advance(state, {}));
  std::vector<Token> settled;
  search.settled(state, settled);
  CHECK(settled == std::vector<Token>{3});
  Result result;
  search.finish(state, result);
  CHECK(result.hypotheses.at(0).tokens == std::vector<Token>{3});
  CHECK(result.hypotheses.at(0).log_prob == -1);
}
