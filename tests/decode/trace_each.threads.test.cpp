// SPDX-License-Identifier: Apache-2.0
// The traces of some requests among others, against the trace of each alone.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/decode/trace_each.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Json = nlohmann::json;
using Asked = Request<std::uint64_t, BeamSearch>;

Table const table{.size = 14, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
BeamSearch const search{.width = 3, .n_best = 3, .length = {.max = 12}};

/// The lines of a trace of one sentence: as sentence 0, whose slots begin at 0. What is released with no row is left out.
std::vector<Json> lines_of(std::string const& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  Slot base = 0;
  for (std::string line; std::getline(stream, line);) {
    auto event = Json::parse(line);
    if (event.contains("admit")) {
      base = event["base"].get<Slot>();
      event["base"] = 0, event["admit"] = 0;
    } else if (event.contains("rows")) {
      for (auto& row : event["rows"]) {
        row[0] = 0;
        for (auto const i : {1u, 2u}) row[i] = row[i].get<Slot>() - base;
      }
      if (event.contains("release"))
        for (auto& slot : event["release"]) slot = slot.get<Slot>() - base;
    } else if (event.contains("end")) {
      event["end"] = 0;
    }
    lines.push_back(std::move(event));
  }
  return lines;
}

std::vector<Asked> draw_requests(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<Asked> requests(count);
  for (auto& one : requests) {
    one.source = random();
    for (auto n = random() % 4; n > 0; --n) one.prompt.push_back(static_cast<Token>(3 + random() % 11));
    if (random() % 3 == 0) one.prefix.assign(1 + random() % 3, static_cast<Token>(3 + random() % 11));
    if (random() % 3 == 0) one.search = BeamSearch{.width = 2, .length = {.max = 9}};
    one.traced = random() % 2 == 0;
  }
  return requests;
}

template <class M, class R>
std::string alone(M model, R request) {
  std::ostringstream lines;
  Decoder decoder(model, search, Batched{.size = 1}, LogSoftmaxTopK(), TraceFile(lines));
  decoder.submit(std::move(request));
  while (decoder.step()) {
  }
  return lines.str();
}
std::string alone(Asked request) { return alone(TableModel<everything>(table), std::move(request)); }

}  // namespace

TEST_CASE("each request that asks has a trace, which is that of the request alone", "[trace_each]") {
  auto const requests = draw_requests(40);
  TableModel<everything> model(table);
  std::size_t traced = 0, together = 0;
  auto const play = [&](auto const& schedule) {
    std::map<std::uint64_t, std::ostringstream> files;
    std::map<std::uint64_t, Asked> asked;
    Decoder decoder(model, search, schedule, LogSoftmaxTopK(),
                    TraceEach<TraceFile>([&](std::uint64_t id) { return TraceFile(files[id]); }));
    for (auto const& request : requests) asked.emplace(decoder.submit(Asked(request)), request);
    while (decoder.step()) {
      std::size_t now = 0;
      for (auto const& [id, request] : asked) now += decoder.trace().find(id) != nullptr ? 1u : 0u;
      together = std::max(together, now);
    }
    for (auto const& [id, request] : asked) {
      INFO("request " << id);
      CHECK(decoder.trace().find(id) == nullptr);
      CHECK(files.contains(id) == request.traced);
      if (!request.traced) continue;
      ++traced;
      CHECK(lines_of(files[id].str()) == lines_of(alone(request)));
    }
  };
  play(Batched{.size = 7});
  play(Streaming{.size = 6, .refill_below = 1});
  play(Streaming{.size = 9, .refill_below = 0.5, .max_rows = 11});
  CHECK(traced > 40);
  CHECK(together > 3);
}

TEST_CASE("what another request has fed is shown as fed", "[trace_each]") {
  using Model = CellModel<everything>;
  Model model(table, 1 << 20, false);
  std::map<std::uint64_t, std::ostringstream> files;
  std::map<std::uint64_t, Request<EmptySource, BeamSearch>> asked;
  Decoder decoder(model, search, Streaming{.size = 4, .refill_below = 1}, LogSoftmaxTopK(),
                  TraceEach<TraceFile>([&](std::uint64_t id) { return TraceFile(files[id]); }),
                  Intake{.shared_tokens = 100});
  for (Token i = 0; i < 12; ++i) {
    Request<EmptySource, BeamSearch> request{.prompt = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 3, 4}, .traced = true};
    request.prompt.push_back(static_cast<Token>(3 + i % 5));
    auto copy = request;
    asked.emplace(decoder.submit(std::move(copy)), request);
  }
  while (decoder.step()) {
  }
  CHECK(decoder.statistics().shared > 30);
  for (auto const& [id, request] : asked)
    CHECK(lines_of(files[id].str()) == lines_of(alone(Model(table, 1 << 20, false), request)));
}

namespace {

/// Counts what it is told, and may throw.
struct Counting {
  std::map<std::uint64_t, int>* told;
  std::uint64_t id;
  bool throws;
  bool wants_entropy() const { return false; }
  void planned(StepPlan const& step) const {
    CHECK_FALSE(step.rows.empty());
    std::int32_t lines = 0, grouped = 0;
    for (auto const& row : step.rows) lines += row.lines;
    for (auto const& group : step.groups) grouped += group.lines;
    CHECK(lines == std::ssize(step.queries));
    CHECK(lines == grouped);
    ++(*told)[id];
    if (throws) throw std::runtime_error("the trace is broken");
  }
};

}  // namespace

TEST_CASE("a trace that throws, or cannot be made, concerns no other request", "[trace_each]") {
  TableModel<everything> model(table);
  auto const requests = draw_requests(16);
  std::map<std::uint64_t, int> told;
  auto const make = [&](std::uint64_t id) {
    if (id % 5 == 0) throw std::runtime_error("it cannot be made");
    return Counting{&told, id, id % 3 == 0};
  };
  std::vector<std::future<Result>> answers;
  {
    Server server(model, search, Streaming{.size = 6, .refill_below = 1}, {}, LogSoftmaxTopK{},
                  TraceEach<Counting>(make));
    for (auto request : requests) {
      request.traced = true, request.seed = 0;
      answers.push_back(server.submit(std::move(request)));
    }
    server.drain();
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    TableModel<everything> other(table);
    auto request = requests[i];
    request.seed = 0;
    auto const expected = decode(other, std::vector{request}, search);
    auto const found = answers[i].get();
    REQUIRE(found.hypotheses.size() == expected[0].hypotheses.size());
    for (std::size_t j = 0; j < found.hypotheses.size(); ++j)
      CHECK(identical(found.hypotheses[j], expected[0].hypotheses[j]));
    CHECK(told.contains(i) == (i % 5 != 0));
    CHECK((i % 5 == 0 || told[i] > 1));
  }
  CHECK_THROWS_AS(TraceEach<Counting>(nullptr), std::invalid_argument);
}

TEST_CASE("entropies are asked for only while one is traced that wants them", "[trace_each]") {
  std::ostringstream lines;
  TraceEach<TraceFile> trace([&](std::uint64_t) { return TraceFile(lines); });
  CHECK_FALSE(trace.wants_entropy());
  std::vector<Token> const prompt{1};
  trace.began(3, {.prompt = prompt});
  CHECK_FALSE(trace.wants_entropy());
  trace.began(4, {.prompt = prompt, .traced = true});
  CHECK(trace.wants_entropy());
  CHECK(trace.find(4) != nullptr);
  CHECK(trace.find(3) == nullptr);
  trace.ended({.id = 3});
  CHECK(trace.wants_entropy());
  trace.ended({.id = 4});
  CHECK_FALSE(trace.wants_entropy());
}
