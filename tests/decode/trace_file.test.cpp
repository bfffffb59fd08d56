// SPDX-License-Identifier: Apache-2.0
// What a trace says, read by somebody else, against what really happened.
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/cell_model.hpp>
#include <support/decoding.hpp>
#include <support/trace_reader.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 14, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
LengthLimits const length{.max = 12};

std::string word(Token token) { return " <w" + std::to_string(token) + ">\n\"\\\x01\xC3\xA9"; }

/// That every line of the trace is the table's after what the trace says that the slot held: so it held that.
Replay::Judge judged_by(std::vector<std::uint64_t> const& seeds) {
  return [&seeds](std::uint64_t id, std::vector<Token> const& fed, std::map<Token, float> const& listed) {
    auto const context = std::span(fed).subspan(!fed.empty() && fed.front() == bos ? 1 : 0);
    std::vector<double> line(static_cast<std::size_t>(table.size));
    table.log_probs(seeds[id], context, line);
    for (auto const& [token, log_prob] : listed) {
      auto const expected = line[static_cast<std::size_t>(token)];
      if (std::isfinite(expected) && std::abs(static_cast<double>(log_prob) - expected) > 2e-5)
        CHECK(static_cast<double>(log_prob) == expected);
    }
  };
}

/// Whether a search may have made the one of the other, by taking off `penalty` any number of times.
bool follows(float told, float found, float penalty) {
  if (penalty == 0) return told == found;
  auto const times = (told - found) / penalty;
  return times > -0.1f && std::abs(times - std::round(times)) < 1e-4f;
}

/// That the trace tells the results, and how they came about.
void check_replay(Replay const& replay, std::map<std::uint64_t, Result> const& results, Statistics const& statistics,
                  float penalty) {
  REQUIRE(replay.results.size() == results.size());
  for (auto const& [id, result] : results) {
    auto const& told = replay.results.at(id);
    INFO("sentence " << id << ": " << result.message);
    CHECK(told.message == result.message);
    REQUIRE(told.hypotheses.size() == result.hypotheses.size());
    for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
      auto const& h = result.hypotheses[i];
      CHECK(identical(told.hypotheses[i], h));
      auto context = replay.prompts.at(id);
      auto const prefix = replay.prefixes.at(id).size();
      for (std::size_t t = 0; t < h.tokens.size(); ++t) {
        auto const line = replay.told.at(id).find(context);
        if (t >= prefix) {  // of a generated token, the number is that of a line
          REQUIRE(line != replay.told.at(id).end());
          REQUIRE(line->second.contains(h.tokens[t]));
          if (!follows(line->second.at(h.tokens[t]), h.log_probs[t], penalty))
            CHECK(line->second.at(h.tokens[t]) == h.log_probs[t]);
        }
        context.push_back(h.tokens[t]);
      }
    }
  }
  CHECK(replay.rows == statistics.rows);
  CHECK(replay.fed == statistics.fed);
  CHECK(replay.forks == statistics.forks);
}

/// Random requests of random schedules.
template <class M, class S>
Replay replayed(M& model, S const& search, std::mt19937_64& random, bool prefixes = true, float penalty = 0) {
  std::vector<std::uint64_t> seeds;
  std::ostringstream lines;
  std::map<std::uint64_t, Result> results;
  Statistics statistics;
  auto const play = [&](auto const& schedule) {
    Decoder decoder(model, search, schedule, LogSoftmaxTopK(), TraceFile(lines, word));
    for (int i = 0; i < 14; ++i) {
      Request<std::uint64_t, S> request{.source = random()};
      if (random() % 2 == 0)
        for (auto n = random() % 4; n > 0; --n) request.prompt.push_back(static_cast<Token>(3 + random() % 11));
      if (prefixes && random() % 3 == 0) request.prefix.assign(1 + random() % 3, static_cast<Token>(3 + random() % 11));
      seeds.push_back(request.source);
      decoder.trace().describe(decoder.submit(std::move(request)), "sentence <" + std::to_string(i) + ">");
    }
    while (decoder.step())
      for (Result result; decoder.poll(result);) results[result.id] = result;
    for (Result result; decoder.poll(result);) results[result.id] = result;
    statistics = decoder.statistics();
  };
  if (random() % 2 == 0) play(Batched{.size = 1 + random() % 6});
  else
    play(Streaming{
        .size = 1 + random() % 6, .refill_below = 0.5, .max_rows = static_cast<std::int32_t>(random() % 2 * 7)});
  CHECK(lines.str().find('<') == std::string::npos);  // nothing in it could end a part of a page
  Replay const replay(lines.str(), judged_by(seeds));
  check_replay(replay, results, statistics, penalty);
  CHECK(replay.answers == statistics.model_calls);
  CHECK(replay.about.at(13) == "sentence <13>");
  CHECK(replay.eos == std::vector<Token>{eos});
  CHECK(replay.texts.at(eos) == word(eos));
  return replay;
}

template <class S>
Replay replayed(S const& search, std::uint64_t seed, bool prefixes = true, float penalty = 0) {
  std::mt19937_64 random(seed);
  TableModel<everything> model(table);
  return replayed(model, search, random, prefixes, penalty);
}

}  // namespace

TEST_CASE("a trace tells of every search what came of it", "[trace]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    INFO("seed " << seed);
    replayed(Greedy{.length = length}, seed);
    replayed(BeamSearch{.width = 4, .n_best = 3, .length = length}, seed);
    auto stay = presets::sockeye(3);
    stay.length = length;
    replayed(stay, seed);
    auto shrink = presets::marian(3);
    shrink.length = length;
    replayed(shrink, seed);
    replayed(DiverseBeamSearch{.search = {.width = 2, .n_best = 2, .length = length}, .groups = 2, .n_best = 3}, seed,
             true, 0.5f);
    replayed(Sample{.length = length}, seed);
    replayed(StochasticBeam{.width = 4, .length = length}, seed);
  }
}

TEST_CASE("a trace tells the banks of a constrained search", "[trace]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    ConstrainedBeamSearch<Phrases> const search{.beam = {.width = 6, .length = length},
                                                .constraints = Phrases{{3, 5}, {8}}};
    auto const replay = replayed(search, seed, false);
    CHECK(replay.banks == std::set<std::int32_t>{0, 1, 2, 3});
  }
  auto const unconstrained = replayed(BeamSearch{.width = 3, .length = length}, 1);
  CHECK(unconstrained.banks.empty());
}

TEST_CASE("a trace tells what phrases were given, and what was taken back", "[trace]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Bias const bias({{.spellings = {{3, 4}, {5, 6, 7}}, .whole = 3}, {.spellings = {{8, 9}}}});
    BeamSearch const beam{.width = 4, .n_best = 3, .length = length};
    auto const replay = replayed(Processed<BeamSearch>(beam, bias), seed);
    CHECK(replay.boosted > 20);
    CHECK(replay.taken_back > 20);
    auto const greedy = replayed(Processed<Greedy>({.length = length}, bias), seed);
    CHECK(greedy.boosted > 0);
  }
  CHECK(replayed(BeamSearch{.width = 3, .length = length}, 1).boosted == 0);
}

TEST_CASE("a trace tells the guesses that were kept", "[trace]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::mt19937_64 random(seed);
    TableModel<everything> large(table), small(table);
    Speculated model(large, DraftModel(small));
    auto const replay = replayed(model, Blockwise<>{.block = 4, .length = length}, random);
    CHECK(replay.lines > replay.rows);
    for (auto const& [id, result] : replay.results) CHECK(result.hypotheses.at(0).blocks.size() > 0);
  }
}

TEST_CASE("a trace tells of sentences that start again", "[trace]") {
  std::size_t again = 0, shared = 0;
  std::vector<std::uint64_t> const seeds(10, 17);  // CellModel has one
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    CellModel<everything> model(table, 60, seed % 2 == 0);
    std::ostringstream lines;
    std::map<std::uint64_t, Result> results;
    Decoder decoder(model, BeamSearch{.width = 3, .length = {.max = 16}}, Batched{.size = 6}, LogSoftmaxTopK(),
                    TraceFile(lines), Intake{.shared_tokens = seed % 3 == 0 ? 0 : 20});
    for (int i = 0; i < 10; ++i) {
      Request<EmptySource, BeamSearch> request;
      auto const count = static_cast<Token>(1 + random() % 9);
      for (Token n = 0; n < count; ++n) request.prompt.push_back(3 + n % 5);  // so that some begin like others
      decoder.submit(std::move(request));
    }
    while (decoder.step()) {
    }
    for (Result result; decoder.poll(result);) results[result.id] = result;
    Replay const replay(lines.str(), judged_by(seeds));
    shared += decoder.statistics().shared;
    REQUIRE(replay.results.size() == 10);
    std::size_t restarted = 0;
    for (auto const& [id, count] : replay.admitted) restarted += count - 1;
    CHECK(restarted == decoder.statistics().restarted);
    again += restarted;
    for (auto const& [id, result] : results)
      for (std::size_t i = 0; i < result.hypotheses.size(); ++i)
        CHECK(identical(replay.results.at(id).hypotheses.at(i), result.hypotheses[i]));
  }
  CHECK(again > 0);
  CHECK(shared > 0);
}

TEST_CASE("a trace tells of failures, and of texts that are none", "[trace]") {
  std::ostringstream lines;
  TableModel<everything> model(table);
  auto const bytes = [](Token token) {
    return std::string(token == eos ? "\xE2\x96" : token == 3 ? "\xED\xA0\x80" : "a");
  };
  Decoder decoder(model, BeamSearch{.width = 14, .length = length}, Batched{}, LogSoftmaxTopK(),
                  TraceFile(lines, bytes));
  decoder.submit({.source = 1});
  decoder.submit({.source = 2, .prefix = {eos}});
  decoder.submit({.source = 3, .prompt = {99}});
  while (decoder.step()) {
  }
  Replay const replay(lines.str());
  CHECK(replay.results.at(0).message.empty());
  CHECK(replay.results.at(1).message.find("is an end of sentence") != std::string::npos);
  CHECK(replay.results.at(2).message.find("is outside the vocabulary") != std::string::npos);
  CHECK_FALSE(replay.admitted.contains(1));
  CHECK(replay.texts.at(eos) == "\xE2\x96");
  CHECK(replay.texts.at(3) == "\xED\xA0\x80");
  CHECK(replay.texts.at(4) == "a");
  CHECK(lines.str().find("{\"token\":2,\"bytes\":[226,150]}") != std::string::npos);
}

TEST_CASE("a stream that takes nothing loses no sentence", "[trace]") {
  std::ostringstream lines;
  lines.setstate(std::ios::badbit);
  TableModel<everything> model(table);
  Decoder decoder(model, Greedy{.length = length}, Batched{}, LogSoftmaxTopK(), TraceFile(lines));
  decoder.submit({.source = 1});
  while (decoder.step()) {
  }
  Result result;
  REQUIRE(decoder.poll(result));
  CHECK(result.ok());
  CHECK(lines.str().empty());
}
