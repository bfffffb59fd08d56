// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/faulty_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};

bool holds(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> result;
  for (auto i = first; i < first + count; ++i) result.push_back(i);
  return result;
}

template <class S>
std::vector<Result> all_alone(std::vector<std::uint64_t> const& sources, S const& search) {
  std::vector<Result> results;
  for (auto source : sources) results.push_back(run_one(table, source, search));
  return results;
}

/// Everything that a decoder gives, by id.
template <class D>
std::map<std::uint64_t, Result> drain(D& decoder) {
  std::map<std::uint64_t, Result> results;
  Result result;
  auto const take = [&] {
    while (decoder.poll(result)) {
      CHECK_FALSE(results.contains(result.id));
      results[result.id] = result;
    }
  };
  while (decoder.step()) take();
  take();
  return results;
}

}  // namespace

TEST_CASE("decode gives one result per input, in their order", "[decoder]") {
  TableModel<> model(table);
  CHECK(decode(model, std::vector<std::uint64_t>{}, Greedy{}).empty());
  auto const sources = numbers(1, 150);
  auto const results = decode(model, sources, BeamSearch{.width = 3});
  REQUIRE(results.size() == 150);
  auto const alone = all_alone(sources, BeamSearch{.width = 3});
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].id == i);
    CHECK(results[i].ok());
    CHECK(results[i].message.empty());
    CHECK(identical(results[i], alone[i]));
  }
}

TEST_CASE("a decoder refuses options before any work", "[decoder]") {
  CheckedTable<> model(TableModel<everything>{table});
  auto const refused = [](auto make, std::string const& name, std::string const& value) {
    try {
      make();
    } catch (std::invalid_argument const& error) {
      INFO(error.what());
      CHECK(holds(error.what(), name));
      CHECK(holds(error.what(), value));
      return true;
    }
    return false;
  };
  CHECK(refused([&] { Decoder decoder(model, BeamSearch{.width = 0}); }, "width", "0"));
  CHECK(refused([&] { Decoder decoder(model, Greedy{}, Batched{.size = 0}); }, "size", "0"));
  CHECK(refused([&] { decode(model, numbers(1, 3), BeamSearch{.width = -1}); }, "width", "-1"));
  CheckedTable<> small(TableModel<everything>{table, {.limits = {.slot_count = 4}}});
  CHECK(refused([&] { Decoder decoder(small, BeamSearch{.width = 5}); }, "slot_count", "5"));

  struct Vocabularies : TableModel<> {
    using TableModel<>::TableModel;
    Vocabulary vocabulary() const { return broken; }
    Vocabulary broken{.size = 12, .bos = 1, .eos = {2}};
  };
  Vocabularies broken;
  broken.broken.size = 0;
  CHECK(refused([&] { Decoder decoder(broken, Greedy{}); }, "vocabulary.size", "0"));
  broken.broken = {.size = 12, .bos = 12, .eos = {2}};
  CHECK(refused([&] { Decoder decoder(broken, Greedy{}); }, "vocabulary.bos", "12"));
  broken.broken = {.size = 12, .bos = 1, .eos = {2, -1}};
  CHECK(refused([&] { Decoder decoder(broken, Greedy{}); }, "vocabulary.eos", "-1"));
  broken.broken = {.size = 12, .bos = 1, .eos = {2}, .never = {99}};
  CHECK(refused([&] { Decoder decoder(broken, Greedy{}); }, "vocabulary.never", "99"));
  CHECK(model.counters().starts == 0);
}

TEST_CASE("a bad request fails alone, and says why", "[decoder]") {
  using R = TableRequest<BeamSearch>;
  BeamSearch const search{.width = 3, .length = {.max = 6}};
  std::vector<R> requests;
  for (auto const source : numbers(1, 12)) requests.push_back({.source = source});
  requests[1].prefix = {3, 12};
  requests[2].prefix = {-1};
  requests[3].prompt = {bos, 77};
  requests[4].prefix = {3, 3, 3, 3, 3, 3};  // as long as the maximum
  requests[5].prefix = {3, eos, 4};         // nothing can follow an end
  requests[6].search = BeamSearch{.width = 0};
  requests[7].search = BeamSearch{.length = {.max_factor = 2}};  // of an unknown length
  std::map<std::size_t, std::vector<std::string>> const words{
      {1, {"prefix", "12"}}, {2, {"prefix", "-1"}}, {3, {"prompt", "77"}}, {4, {"prefix", "6"}},
      {5, {"prefix", "2"}},  {6, {"width", "0"}},   {7, {"source length"}}};
  for (std::size_t const batch : {std::size_t{1}, std::size_t{4}, std::size_t{64}}) {
    Counters counters;
    auto const results = run(table, requests, search, Batched{batch}, {}, &counters);
    CHECK(counters.sources == 5);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      INFO("request " << i << ": " << results[i].message);
      auto const expected = words.find(i);
      if (expected == words.end()) {
        CHECK(identical(results[i], run_one(table, requests[i].source, search)));
        continue;
      }
      CHECK(results[i].failure == Failure::bad_request);
      CHECK(results[i].hypotheses.empty());
      CHECK(results[i].cause != nullptr);
      for (auto const& word : expected->second) CHECK(holds(results[i].message, word));
    }
  }
}

TEST_CASE("a bad request is known at once", "[decoder]") {
  TableModel<> model(table);
  Decoder decoder(model, Greedy{});
  CHECK(decoder.submit({.source = 1, .prefix = {99}}) == 0);
  CHECK(decoder.waiting() == 0);
  Result result;
  REQUIRE(decoder.poll(result));
  CHECK(result.id == 0);
  CHECK(result.failure == Failure::bad_request);
  CHECK_FALSE(decoder.poll(result));
  CHECK_FALSE(decoder.step());
}

TEST_CASE("a maximum length of nothing gives one empty hypothesis without a step", "[decoder]") {
  Counters counters;
  auto const check_empty = [&](Result const& result) {
    REQUIRE(result.ok());
    REQUIRE(result.hypotheses.size() == 1);
    auto const& h = result.hypotheses[0];
    CHECK(h.tokens.empty());
    CHECK(h.log_probs.empty());
    CHECK(h.log_prob == 0);
    CHECK(h.score == 0);
    CHECK_FALSE(h.finished);
    CHECK(counters.steps == 0);
  };
  check_empty(run(table, std::vector<TableRequest<Greedy>>{{.source = 1}}, Greedy{.length = {.max = 0}}, Batched{}, {},
                  &counters)[0]);
  check_empty(run(table, std::vector<TableRequest<BeamSearch>>{{.source = 1}},
                  BeamSearch{.width = 3, .length = {.max = 0}}, Batched{}, {}, &counters)[0]);
}

TEST_CASE("scores that are not numbers end their own sentence only", "[decoder]") {
  auto const sources = numbers(1, 20);
  BeamSearch const search{.width = 4, .n_best = 2};
  auto const alone = all_alone(sources, search);
  for (auto const bad : {not_a_number, infinite})
    for (auto const every : {true, false})
      for (std::size_t const after : {std::size_t{0}, std::size_t{2}}) {
        SlotChecker<FaultyModel<>> model(
            FaultyModel<>(table, {.scores = {{5, bad}, {9, bad}}, .after = after, .every_token = every}));
        auto const results = decode(model, sources, search, Batched{.size = 8});
        CHECK(model.report() == "");
        for (std::size_t i = 0; i < sources.size(); ++i) {
          INFO("source " << sources[i] << ", " << bad << " after " << after);
          if (sources[i] != 5 && sources[i] != 9) {
            CHECK(identical(results[i], alone[i]));
            continue;
          }
          CHECK(results[i].failure == Failure::not_a_number);
          CHECK_FALSE(results[i].message.empty());
        }
      }
}

TEST_CASE("a line without a possible token ends its own sentence only", "[decoder]") {
  auto const sources = numbers(1, 20);
  auto const check_all = [&](auto const& search) {
    auto const alone = all_alone(sources, search);
    SlotChecker<FaultyModel<>> model(FaultyModel<>(table, {.scores = {{5, -infinite}}, .after = 1}));
    auto const results = decode(model, sources, search);
    CHECK(model.report() == "");
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i] != 5) CHECK(identical(results[i], alone[i]));
    return results[4];
  };
  auto const greedy = check_all(Greedy{});
  CHECK(greedy.failure == Failure::no_token_left);
  CHECK(greedy.hypotheses.empty());
  // A beam may have finished one (an empty output, eos at once) before it ran dry; with eos forbidden there is none.
  auto const beam = check_all(BeamSearch{.width = 4, .length = {.min = 1}});
  CHECK(beam.failure == Failure::no_token_left);
  CHECK(beam.hypotheses.empty());
  CHECK_FALSE(beam.message.empty());
}

TEST_CASE("a model that throws fails the sentences of that step, and the decoder goes on", "[decoder]") {
  auto const sources = numbers(1, 12);
  BeamSearch const search{.width = 3};
  auto const alone = all_alone(sources, search);
  SlotChecker<FaultyModel<>> model(FaultyModel<>(table, {.no_step = {2}}));
  {
    Decoder decoder(model, search, Batched{.size = 4});
    for (auto source : sources) decoder.submit({.source = source});
    std::map<std::uint64_t, Result> results;
    Result result;
    std::size_t thrown = 0;
    for (auto more = true; more;) {
      try {
        more = decoder.step();
      } catch (std::runtime_error const& error) {
        CHECK(std::string(error.what()) == "step 2 is broken");
        ++thrown;
      }
      while (decoder.poll(result)) results[result.id] = result;
    }
    CHECK(thrown == 1);
    REQUIRE(results.size() == sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      INFO("source " << sources[i]);
      if (i >= 4) {
        CHECK(identical(results[i], alone[i]));
        continue;
      }
      CHECK(results[i].failure == Failure::model);
      CHECK(holds(results[i].message, "step 2 is broken"));
      REQUIRE(results[i].cause != nullptr);
      CHECK_THROWS_AS(std::rethrow_exception(results[i].cause), std::runtime_error);
    }
    // still usable
    decoder.submit({.source = 7});
    CHECK(identical(drain(decoder).at(12), alone[6]));
  }
  CHECK(model.report() == "");

  SlotChecker<FaultyModel<>> other(FaultyModel<>(table, {.no_step = {0, 3}}));
  auto const results = decode(other, sources, search, Batched{.size = 4});  // does not throw
  CHECK(other.report() == "");
  REQUIRE(results.size() == sources.size());
  CHECK(std::count_if(results.begin(), results.end(), [](Result const& r) { return r.failure == Failure::model; }) ==
        8);
  for (std::size_t i = 8; i < sources.size(); ++i) CHECK(identical(results[i], alone[i]));
}

TEST_CASE("a source that cannot be started fails alone", "[decoder]") {
  auto const sources = numbers(1, 12);
  Greedy const search;
  auto const alone = all_alone(sources, search);
  SlotChecker<FaultyModel<>> model(FaultyModel<>(table, {.no_start = {2, 12}}));
  auto const results = decode(model, sources, search, Batched{.size = 5});
  CHECK(model.report() == "");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    INFO("source " << sources[i]);
    if (sources[i] != 2 && sources[i] != 12) {
      CHECK(identical(results[i], alone[i]));
      continue;
    }
    CHECK(results[i].failure == Failure::source);
    CHECK(results[i].hypotheses.empty());
    CHECK(results[i].message == "source " + std::to_string(sources[i]) + " is broken");
    REQUIRE(results[i].cause != nullptr);
    CHECK_THROWS_AS(std::rethrow_exception(results[i].cause), std::runtime_error);
  }
  CHECK(model.counters().sources == 10);

  SlotChecker<FaultyModel<>> hopeless(FaultyModel<>(table, {.no_start = {1, 2, 3}}));
  for (auto const& result : decode(hopeless, numbers(1, 3), search)) CHECK(result.failure == Failure::source);
  CHECK(hopeless.counters().steps == 0);
}

TEST_CASE("a search that throws fails its own sentence", "[decoder]") {
  struct Fragile : Greedy {
    int fails_at = -1;  // 0: start, 1: plan, 2: advance, 3: finish
    void begin(State& s, Sentence const& sentence) const {
      if (fails_at == 0) throw std::runtime_error("start");
      Greedy::begin(s, sentence);
    }
    void plan(State& s, Plan& plan) const {
      Greedy::plan(s, plan);
      if (fails_at == 1 && s.held == 2) throw std::runtime_error("plan");
    }
    bool advance(State& s, Expansion const& answer) const {
      auto const ended = Greedy::advance(s, answer);
      if (fails_at == 2 && s.held == 2) throw std::runtime_error("advance");
      return ended;
    }
    void finish(State const& s, Result& result) const {
      if (fails_at == 3) throw std::runtime_error("finish");
      Greedy::finish(s, result);
    }
  };
  std::vector<TableRequest<Fragile>> requests;
  std::vector<std::string> const words{"start", "plan", "advance", "finish"};
  Fragile const sound{{.length = {.min = 4}}};
  for (std::uint64_t i = 0; i < 8; ++i) {
    auto search = sound;
    search.fails_at = i % 2 == 0 ? static_cast<int>(i / 2) : -1;
    requests.push_back({.source = i, .search = search});
  }
  auto const results = run(table, requests, Fragile{});
  for (std::size_t i = 0; i < 8; ++i) {
    INFO("request " << i);
    if (i % 2 == 1) {
      CHECK(identical(results[i], run_one(table, i, Greedy{.length = {.min = 4}})));
      continue;
    }
    CHECK(results[i].failure == Failure::search);
    CHECK(results[i].message == words[i / 2]);
    CHECK(results[i].cause != nullptr);
  }
}

TEST_CASE("a cancelled request gives what there was, the others do not notice", "[decoder]") {
  auto const sources = numbers(1, 8);
  BeamSearch const search{.width = 3, .n_best = 3, .length = {.min = 6}};
  auto const alone = all_alone(sources, search);
  CheckedTable<> model(TableModel<everything>{table});
  {
    Decoder decoder(model, search, Batched{.size = 4});
    for (auto source : sources) decoder.submit({.source = source});
    CHECK(decoder.waiting() == 8);
    CHECK_FALSE(decoder.cancel(8));
    for (int i = 0; i < 3; ++i) REQUIRE(decoder.step());
    CHECK(decoder.running() == 4);
    CHECK(decoder.waiting() == 4);
    CHECK(decoder.cancel(1));
    CHECK(decoder.cancel(5));
    CHECK_FALSE(decoder.cancel(1));
    CHECK(decoder.running() == 3);
    CHECK(decoder.waiting() == 3);
    auto const results = drain(decoder);
    REQUIRE(results.size() == 8);
    CHECK(results.at(1).failure == Failure::cancelled);
    REQUIRE(results.at(1).hypotheses.size() == 3);
    for (auto const& h : results.at(1).hypotheses) {
      CHECK(h.tokens.size() == 3);
      CHECK(h.log_probs.size() == 3);
      CHECK_FALSE(h.finished);
    }
    CHECK(results.at(5).failure == Failure::cancelled);
    CHECK(results.at(5).hypotheses.empty());
    for (std::uint64_t i = 0; i < 8; ++i)
      if (i != 1 && i != 5) CHECK(identical(results.at(i), alone[i]));
    CHECK_FALSE(decoder.cancel(0));
    CHECK(model.report() == "");
  }
}

TEST_CASE("a decoder that goes away gives its slots back", "[decoder]") {
  CheckedTable<> model(TableModel<everything>{table});
  {
    Decoder decoder(model, BeamSearch{.width = 3, .length = {.min = 6}}, Batched{.size = 4});
    for (auto source : numbers(1, 8)) decoder.submit({.source = source});
    for (int i = 0; i < 4; ++i) decoder.step();
    CHECK(model.held() == 12);
  }
  CHECK(model.report() == "");
}

TEST_CASE("a model's limits bound how many run at once and how long they get", "[decoder]") {
  auto const sources = numbers(1, 30);
  BeamSearch const search{.width = 3, .at_maximum = AtMaximum::truncate};
  auto const alone = all_alone(sources, search);
  for (std::int32_t const slots : {3, 5, 7, 31}) {
    CheckedTable<> model(TableModel<everything>(table, {.limits = {.slot_count = slots}}));
    auto const results = decode(model, sources, search, Batched{.size = 64});
    INFO(slots << " slots");
    CHECK(model.report() == "");
    CHECK(model.counters().most_slots <= static_cast<std::size_t>(slots / 3 * 3));
    for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(results[i], alone[i]));
  }
  auto endless = table;
  endless.eos_bias = -1000;
  for (std::int32_t const length : {1, 2, 5}) {
    CheckedTable<everything> model(TableModel<everything>(endless, {.limits = {.length = length}}));
    std::vector<TableRequest<BeamSearch>> const requests{
        {.source = 1}, {.source = 2, .prompt = {bos, 4}}, {.source = 3, .prompt = {bos, 4, 5}, .prefix = {6}}};
    auto const results = decode(model, requests, search);
    CHECK(model.report() == "");
    for (std::int32_t i = 0; i < 3; ++i) {  // the last token is never fed
      INFO("limit " << length << ", prompt of " << i + 1);
      auto const& result = results[static_cast<std::size_t>(i)];
      if (length < i + 1 + (i == 2 ? 1 : 0)) {
        CHECK(result.failure == Failure::bad_request);
        CHECK(holds(result.message, std::to_string(length)));
      } else {
        REQUIRE(result.ok());
        CHECK(result.hypotheses.at(0).tokens.size() == static_cast<std::size_t>(length - i));
      }
    }
  }
}

TEST_CASE("requests of different widths share the slots", "[decoder]") {
  std::vector<TableRequest<BeamSearch>> requests;
  for (auto const source : numbers(1, 60)) {
    requests.push_back({.source = source});
    requests.back().search = BeamSearch{.width = static_cast<std::int32_t>(1 + source * 7 % 9), .n_best = 1};
  }
  CheckedTable<> model(TableModel<everything>(table, {.limits = {.slot_count = 20}}));
  auto const results = decode(model, requests, BeamSearch{});
  CHECK(model.report() == "");
  for (std::size_t i = 0; i < requests.size(); ++i)
    CHECK(identical(results[i], run_one(table, requests[i].source, *requests[i].search)));
}

namespace {

/// Steps only the sentences whose slots hold the most tokens, three sentences at a time.
struct DeepestFirst {
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const>) const {
    return live.size() < 3 ? 3 - live.size() : 0;
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    std::int32_t most = -1;
    for (auto const& l : live) most = std::max(most, l.length);
    for (std::size_t i = 0; i < live.size(); ++i)
      if (live[i].length == most) chosen.push_back(static_cast<std::int32_t>(i));
  }
};

/// Steps every other sentence, by age.
struct Alternating {
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    return live.size() < 7 && !waiting.empty() ? 1 : 0;
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i)
      if ((live[i].age + static_cast<std::int32_t>(i)) % 2 == 0) chosen.push_back(static_cast<std::int32_t>(i));
    if (chosen.empty()) chosen.push_back(static_cast<std::int32_t>(live.size()) - 1);
  }
};

}  // namespace

TEST_CASE("a schedule changes when sentences run, never what comes out", "[decoder]") {
  std::vector<TableRequest<BeamSearch>> requests;
  for (auto const source : numbers(1, 40)) {
    requests.push_back({.source = source});
    if (source % 3 == 0) requests.back().prompt = {bos, 4, 5};
    if (source % 4 == 0) requests.back().prefix = {7};
  }
  BeamSearch const search{.width = 4, .n_best = 4};
  auto const expected = run(table, requests, search, Batched{.size = 1});
  for_all_abilities([&]<Abilities A>() {
    INFO("ragged " << A.ragged << ", blocks " << A.blocks << ", roll_back " << A.roll_back);
    auto const deepest = run<A>(table, requests, search, DeepestFirst{});
    auto const alternating = run<A>(table, requests, search, Alternating{});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      CHECK(identical(deepest[i], expected[i]));
      CHECK(identical(alternating[i], expected[i]));
    }
  });
}

TEST_CASE("a schedule is told the truth", "[decoder]") {
  struct Watching {
    std::vector<std::vector<Live>>* seen;
    std::vector<std::vector<std::int32_t>>* waited;
    std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
      waited->emplace_back(waiting.begin(), waiting.end());
      return live.size() < 2 ? 1 : 0;
    }
    void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
      seen->emplace_back(live.begin(), live.end());
      for (std::size_t i = 0; i < live.size(); ++i) chosen.push_back(static_cast<std::int32_t>(i));
    }
  };
  std::vector<std::vector<Live>> seen;
  std::vector<std::vector<std::int32_t>> waited;
  std::vector<TableRequest<BeamSearch>> const requests{
      {.source = 4, .prompt = {bos, 4, 5}}, {.source = 7}, {.source = 9}};
  run<everything>(table, requests, BeamSearch{.width = 2, .length = {.min = 4}}, Watching{&seen, &waited},
                  {.length_modulus = 10});
  REQUIRE(waited.size() >= 3);
  CHECK(waited[0] == std::vector<std::int32_t>{5, 8, 10});
  CHECK(waited[1] == std::vector<std::int32_t>{8, 10});
  CHECK(waited[2] == std::vector<std::int32_t>{10});
  REQUIRE(seen.size() > 3);
  REQUIRE(seen[0].size() == 2);
  for (std::size_t i = 0; i < 3; ++i) {
    auto const& a = seen[i][0];
    auto const& b = seen[i][1];
    CHECK(a.length == (i == 0 ? 0 : static_cast<std::int32_t>(2 + i)));
    CHECK(b.length == static_cast<std::int32_t>(i));
    CHECK(a.width == (i == 0 ? 1 : 2));
    CHECK(a.age == static_cast<std::int32_t>(i));
    CHECK(a.source_length == 5);
    CHECK(b.source_length == 8);
  }
}

TEST_CASE("statistics add up", "[decoder]") {
  auto const sources = numbers(1, 50);
  CheckedTable<> model(TableModel<everything>{table});
  Decoder decoder(model, BeamSearch{.width = 4}, Batched{.size = 16});
  for (auto source : sources) decoder.submit({.source = source});
  auto const results = drain(decoder);
  auto const& s = decoder.statistics();
  auto const& c = model.counters();
  std::uint64_t tokens = 0;
  for (auto const& [id, result] : results) tokens += result.hypotheses.at(0).tokens.size();
  CHECK(s.sentences == 50);
  CHECK(s.tokens == tokens);
  CHECK(s.model_calls == c.steps);
  CHECK(s.steps == c.steps);
  CHECK(s.rows == c.rows);
  CHECK(s.fed == c.tokens);
  CHECK(s.forks == c.forks);
  CHECK(s.encoder_calls == c.starts);
  CHECK(c.starts == 4);           // 16 + 16 + 16 + 2
  CHECK(s.expansions == c.rows);  // no ended hypothesis is carried by this beam
  std::uint64_t calls = 0, rows = 0;
  for (std::size_t n = 0; n < s.rows_histogram.size(); ++n)
    calls += s.rows_histogram[n], rows += n * s.rows_histogram[n];
  CHECK(calls == s.model_calls);
  CHECK(rows == s.rows);
  CHECK(s.seconds.encode >= 0);
  CHECK(s.seconds.model > 0);
  CHECK(s.seconds.output > 0);
  CHECK(s.seconds.search > 0);
  CHECK(s.seconds.total() >= s.seconds.model);
  auto twice = s;
  twice += s;
  CHECK(twice.rows == 2 * s.rows);
  CHECK(twice.sentences == 100);
  CHECK(twice.rows_histogram.size() == s.rows_histogram.size());
  CHECK(twice.rows_histogram.back() == 2 * s.rows_histogram.back());
}

TEST_CASE("a beam that carries ended hypotheses counts them as expansions", "[decoder]") {
  CheckedTable<> model(TableModel<everything>{table});
  Decoder decoder(model, BeamSearch{.width = 4, .finished = FinishedHypotheses::stay}, Batched{});
  for (auto source : numbers(1, 20)) decoder.submit({.source = source});
  drain(decoder);
  CHECK(decoder.statistics().rows == model.counters().rows);
  CHECK(decoder.statistics().expansions > decoder.statistics().rows);
}

TEST_CASE("a trace sees everything in order", "[decoder]") {
  struct Log {
    std::vector<std::string> events{};
    std::size_t rows = 0, lines = 0;
    void admitted(std::uint64_t id, Slot base, std::int32_t slots) {
      events.push_back("admitted " + std::to_string(id) + " at " + std::to_string(base) + " + " +
                       std::to_string(slots));
    }
    void planned(StepPlan const& step) { events.push_back("planned"), rows += step.rows.size(); }
    void answered(StepPlan const& step, Expansion const& answer) {
      events.push_back("answered"), lines += answer.size();
      CHECK(answer.size() == step.queries.size());
    }
    void ended(Result const& result) { events.push_back("ended " + std::to_string(result.id)); }
  };
  TableModel<> model(table);
  Decoder<TableModel<>, BeamSearch, Batched, LogSoftmaxTopK, Log> decoder(model, BeamSearch{.width = 2},
                                                                          Batched{.size = 2});
  for (auto source : numbers(1, 3)) decoder.submit({.source = source});
  decoder.submit({.source = 1, .prefix = {-5}});
  drain(decoder);
  auto& log = decoder.trace();
  REQUIRE(log.events.size() > 5);
  CHECK(log.events[0] == "ended 3");
  CHECK(log.events[1] == "admitted 0 at 0 + 2");
  CHECK(log.events[2] == "admitted 1 at 2 + 2");
  CHECK(log.events[3] == "planned");
  CHECK(log.events[4] == "answered");
  CHECK(log.rows == decoder.statistics().rows);
  CHECK(log.lines == decoder.statistics().rows);
  CHECK(std::count(log.events.begin(), log.events.end(), "planned") ==
        static_cast<std::ptrdiff_t>(decoder.statistics().steps));
  for (int i = 0; i < 4; ++i)
    CHECK(std::count(log.events.begin(), log.events.end(), "ended " + std::to_string(i)) == 1);
}

namespace {

/// Throws in its n-th call of one hook, or in all from there on; counts the calls of each.
struct Throwing {
  enum Hook : std::size_t { began_, admitted_, planned_, answered_, ended_, wants_entropy_, hooks };
  struct Seen {
    std::size_t hook = hooks, at = 0;
    bool always = false;
    std::size_t calls[hooks]{}, thrown = 0;
    std::set<std::uint64_t> ended{};
  };
  Seen* seen;

  void call(Hook hook) const {
    auto const i = seen->calls[hook]++;
    if (hook != seen->hook || (seen->always ? i < seen->at : i != seen->at)) return;
    ++seen->thrown;
    throw std::runtime_error("the trace is broken");
  }
  void began(std::uint64_t, Sentence const&) const { call(began_); }
  void admitted(std::uint64_t, Slot, std::int32_t) const { call(admitted_); }
  void planned(StepPlan const&) const { call(planned_); }
  void answered(StepPlan const&, Expansion const&) const { call(answered_); }
  void ended(Result const& result) const {
    CHECK(seen->ended.insert(result.id).second);
    call(ended_);
  }
  bool wants_entropy() const {
    call(wants_entropy_);
    return true;
  }
};

/// Twelve sentences of all fates: one has scores that are no numbers, one makes no sense, one cannot be started, two are
/// cancelled, some take part in a step that fails, some start again.
template <class T>
std::map<std::uint64_t, Result> all_fates(T trace, std::size_t& caught) {
  using Model = SlotChecker<FaultyModel<>>;
  Model model(FaultyModel<>(
      table, {.no_start = {9}, .no_step = {9}, .no_room = {4}, .scores = {{5, not_a_number}}, .after = 2}));
  Decoder<Model, BeamSearch, Streaming, LogSoftmaxTopK, T> decoder(model, BeamSearch{.width = 2, .length = {.max = 6}},
                                                                   {.size = 3, .refill_below = 1}, {}, trace);
  std::map<std::uint64_t, Result> results;
  for (std::uint64_t i = 0; i < 12; ++i) {
    if (i == 8) decoder.submit({.source = i, .prefix = {-5}});
    else decoder.submit({.source = i});
  }
  auto steps = 0;
  for (auto more = true; more;) {
    try {
      more = decoder.step();
    } catch (std::runtime_error const& error) {
      caught += error.what() == std::string("the trace is broken");
    }
    if (++steps == 3) CHECK(decoder.cancel(11));
    decoder.settled([](std::uint64_t id) { return id == 10; }, [&](std::uint64_t id, auto) { decoder.cancel(id); });
    for (Result result; decoder.poll(result);) CHECK(results.emplace(result.id, result).second);
  }
  CHECK(decoder.waiting() + decoder.running() == 0);
  CHECK(model.report() == "");
  return results;
}

}  // namespace

TEST_CASE("a trace that throws, wherever it does, changes no result", "[decoder]") {
  std::size_t caught = 0;
  auto const expected = all_fates(NoTrace{}, caught);
  REQUIRE(expected.size() == 12);
  for (auto const& [id, failure] : std::map<std::uint64_t, Failure>{{5, Failure::not_a_number},
                                                                    {8, Failure::bad_request},
                                                                    {9, Failure::source},
                                                                    {10, Failure::cancelled},
                                                                    {11, Failure::cancelled}})
    CHECK(expected.at(id).failure == failure);
  for (auto const failure : {Failure::none, Failure::model})
    CHECK(std::ranges::count(expected, failure, [](auto const& one) { return one.second.failure; }) > 0);
  CHECK_FALSE(expected.at(10).hypotheses.empty());
  Throwing::Seen quiet;
  all_fates(Throwing{&quiet}, caught);
  CHECK(caught == 0);
  for (std::size_t hook = 0; hook < Throwing::hooks; ++hook) {
    REQUIRE(quiet.calls[hook] > 3);
    for (std::size_t at = 0; at < quiet.calls[hook]; ++at)
      for (auto const always : {false, true}) {
        INFO("hook " << hook << ", call " << at << (always ? " and all behind it" : ""));
        Throwing::Seen seen{.hook = hook, .at = at, .always = always};
        caught = 0;
        auto const results = all_fates(Throwing{&seen}, caught);
        CHECK(std::ranges::equal(results, expected, [](auto const& a, auto const& b) {
          return a.first == b.first && a.second.id == b.second.id && identical(a.second, b.second);
        }));
        CHECK(std::ranges::equal(seen.calls, quiet.calls));
        CHECK(seen.ended.size() == expected.size());
        CHECK(seen.thrown == (always ? quiet.calls[hook] - at : 1));
        CHECK(caught >= 1);
        CHECK(caught <= seen.thrown);
      }
  }
}

TEST_CASE("requests may come while others run", "[decoder]") {
  TableModel<> model(table);
  Decoder decoder(model, Greedy{.length = {.min = 3}}, Alternating{});
  std::map<std::uint64_t, Result> results;
  Result result;
  std::uint64_t next = 0;
  while (results.size() < 30) {
    if (next < 30) {
      CHECK(decoder.submit({.source = next}) == next);
      ++next;
    }
    decoder.step();
    while (decoder.poll(result)) results[result.id] = result;
  }
  CHECK_FALSE(decoder.step());
  for (std::uint64_t i = 0; i < 30; ++i)
    CHECK(identical(results.at(i), run_one(table, i, Greedy{.length = {.min = 3}})));
}

TEST_CASE("a decoder takes any answer for which there is an expander", "[decoder]") {
  struct OneToken {
    std::vector<Candidate> lines;
  };
  struct Counting {  // counts up from the source's number and ends
    using Source = Token;
    Vocabulary vocabulary() const { return {.size = 50, .bos = 0, .eos = {49}}; }
    void start(std::span<Token const* const> sources, std::span<Slot const> slots) {
      for (std::size_t i = 0; i < slots.size(); ++i) at[slots[i]] = *sources[i];
    }
    OneToken step(std::span<Row const> rows) {
      OneToken answer;
      for (auto const& row : rows) answer.lines.push_back({at[row.to]++, -0.5f});
      return answer;
    }
    std::map<Slot, Token> at{};
  };
  struct Passing {
    Expansion expand(OneToken const& answer, std::span<Query const> queries, std::span<Group const>) {
      best = answer.lines, entries.clear();
      for (std::size_t i = 0; i < queries.size(); ++i) entries.push_back({.best = i, .best_count = 1});
      return {entries, best, {}};
    }
    std::vector<Candidate> best{};
    std::vector<Expansion::Entry> entries{};
  };
  Counting model;
  auto const results = decode(model, std::vector<Token>{46, 48, 49}, Greedy{}, Batched{}, Passing{});
  CHECK(results[0].hypotheses.at(0).tokens == std::vector<Token>{46, 47, 48, 49});
  CHECK(results[1].hypotheses.at(0).tokens == std::vector<Token>{48, 49});
  CHECK(results[1].hypotheses.at(0).log_prob == -1.0);
  CHECK(results[2].hypotheses.at(0).tokens == std::vector<Token>{49});
}
