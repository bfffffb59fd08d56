// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>
#include <support/gate.hpp>
#include <support/slot_checker.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Clock = ServerClock;
using Tokens = std::vector<Token>;

Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
Table const endless{.size = 12, .scale = 6, .has_eos = false};  // as long as its maximum

/// What the requests of one server were told. Written by the worker, read when it is done or through at().
class Log {
 public:
  /// A delivery that writes down what comes.
  Delivery take(bool streamed = false) {
    Delivery delivery{.done = [this](Result result) { done(std::move(result)); }};
    if (streamed) delivery.delta = [this](std::uint64_t id, std::span<Token const> tokens) { settled(id, tokens); };
    return delivery;
  }
  void done(Result result) {
    std::lock_guard const lock(mutex_);
    auto const id = result.id;
    twice_ += results_.contains(id);
    auto const& told = told_[id];
    for (auto const& h : result.hypotheses)
      wrong_ += h.tokens.size() < told.size() || !std::equal(told.begin(), told.end(), h.tokens.begin());
    results_[id] = std::move(result);
  }
  void settled(std::uint64_t id, std::span<Token const> tokens) {
    std::lock_guard const lock(mutex_);
    auto& told = told_[id];
    wrong_ += results_.contains(id) || tokens.empty();
    told.insert(told.end(), tokens.begin(), tokens.end());
    ++tellings_;
  }
  /// Their results, after the last.
  std::map<std::uint64_t, Result> results() const {
    std::lock_guard const lock(mutex_);
    CHECK(twice_ == 0);
    CHECK(wrong_ == 0);
    return results_;
  }
  Result at(std::uint64_t id) const { return results().at(id); }
  Tokens told(std::uint64_t id) const {
    std::lock_guard const lock(mutex_);
    auto const found = told_.find(id);
    return found == told_.end() ? Tokens{} : found->second;
  }
  std::size_t tellings() const { return tellings_; }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Result> results_;
  std::map<std::uint64_t, Tokens> told_;
  std::size_t twice_ = 0, wrong_ = 0, tellings_ = 0;
};

template <class S>
Result alone(Table const& from, std::uint64_t seed, S const& search) {
  return run<everything>(from, std::vector<TableRequest<S>>{{.source = seed, .seed = seed}}, search).at(0);
}

template <class S>
Request<HeapSource, S> request(std::uint64_t seed, S const&) {
  return {.source = HeapSource(seed), .seed = seed};
}

std::vector<ServerOptions> const all_options{{},
                                             {.queue = 1},
                                             {.queue = 3, .intake = {.window = 5}},
                                             {.queue = 8, .intake = {.encode_ahead = 4}},
                                             {.intake = {.window = 4, .encode_ahead = 8, .encode_group = 2}},
                                             {.intake = {.window = 64, .encode_ahead = 6, .encoder_thread = false}}};

/// A schedule in whose place something else may happen.
struct Odd {
  std::function<std::size_t(std::size_t)> admitted{};
  std::function<bool()> chooses{};
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const>) const {
    return admitted ? admitted(live.size()) : 4;
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    if (chooses && !chooses()) return;
    for (std::size_t i = 0; i < live.size(); ++i) chosen.push_back(static_cast<std::int32_t>(i));
  }
};

/// Greedy that throws where it is told to.
struct Faulty {
  enum class Where : std::uint8_t { nowhere, check, start, plan, advance, settled, finish };
  Where where = Where::nowhere;
  Greedy greedy{.length = {.max = 10}};
  using State = Greedy::State;

  void at(Where here) const {
    if (here == where) throw std::runtime_error("the search is broken");
  }
  void check() const { at(Where::check); }
  std::int32_t slot_count() const { return 1; }
  void begin(State& s, Sentence const& sentence) const { greedy.begin(s, sentence), at(Where::start); }
  void plan(State& s, Plan& plan) const { at(Where::plan), greedy.plan(s, plan); }
  bool advance(State& s, Expansion const& answer) const {
    at(Where::advance);
    return greedy.advance(s, answer);
  }
  Progress progress(State const& s) const { return greedy.progress(s); }
  void settled(State& s, Tokens& tokens) const { at(Where::settled), greedy.settled(s, tokens); }
  void finish(State const& s, Result& result) const { at(Where::finish), greedy.finish(s, result); }
};

}  // namespace

TEST_CASE("results of a server are those of decode, whoever asks and whenever", "[server]") {
  BeamSearch const search{.width = 3, .length = {.max = 15}};
  std::vector<Result> expected;
  for (std::uint64_t seed = 0; seed < 120; ++seed) expected.push_back(alone(table, seed, search));
  for (auto const& options : all_options) {
    SlotChecker model{EncodingTable<>(table)};
    {
      Server server(model, search, Streaming{.size = 7, .refill_below = 0.5}, options);
      Log log;
      std::mutex mutex;
      std::map<std::uint64_t, std::uint64_t> seeds;
      std::vector<std::thread> writers;
      std::atomic<std::size_t> wrong = 0;
      for (std::uint64_t w = 0; w < 6; ++w)
        writers.emplace_back([&, w] {
          for (auto seed = w; seed < 120; seed += 6) {
            if (w % 2 == 0) {
              wrong += !identical(server.submit(request(seed, search)).get(), expected[seed]);
            } else {
              auto const id = server.submit(request(seed, search), log.take(w > 1));
              std::lock_guard const lock(mutex);
              if (!id || !seeds.emplace(*id, seed).second) ++wrong;
            }
          }
        });
      for (auto& writer : writers) writer.join();
      server.drain();
      CHECK(server.open() == 0);
      CHECK(wrong == 0);
      auto const results = log.results();
      CHECK(results.size() == 60);
      for (auto const& [id, result] : results) CHECK(identical(result, expected[seeds.at(id)]));
      CHECK(log.tellings() > 0);
      CHECK(server.statistics().sentences == 120);
    }
    CHECK(model.model().counts().most_waiting <= static_cast<std::int64_t>(options.intake.encode_ahead));
    CHECK(model.model().counts().broken == 0);
    CHECK(model.report() == "");
  }
}

namespace {

/// What one trace was told, and by whom.
struct Watching {
  struct Seen {
    bool throws = false;
    std::set<std::thread::id> threads{};
    std::set<std::uint64_t> admitted{}, ended{};
    std::size_t planned = 0, answered = 0;
  };
  Seen* seen;

  void note() const {
    seen->threads.insert(std::this_thread::get_id());
    if (seen->throws) throw std::runtime_error("the trace is broken");
  }
  void admitted(std::uint64_t id, Slot, std::int32_t) const { seen->admitted.insert(id), note(); }
  void planned(StepPlan const&) const { ++seen->planned, note(); }
  void answered(StepPlan const&, Expansion const&) const { ++seen->answered, note(); }
  void ended(Result const& result) const {
    CHECK(seen->ended.insert(result.id).second);
    note();
  }
};

}  // namespace

TEST_CASE("a server's trace sees everything in the worker's thread, and changes nothing where it throws", "[server]") {
  BeamSearch const search{.width = 2, .length = {.max = 10}};
  for (auto const throws : {false, true}) {
    SlotChecker model{EncodingTable<>(table)};
    Watching::Seen seen{.throws = throws};
    {
      Server server(model, search, Streaming{.size = 3, .refill_below = 1}, {}, LogSoftmaxTopK{}, Watching{&seen});
      std::vector<std::future<Result>> answers;
      for (std::uint64_t seed = 0; seed < 20; ++seed) answers.push_back(server.submit(request(seed, search)));
      auto bad = request(20, search);
      bad.prefix = {-5};
      CHECK(server.submit(std::move(bad)).get().failure == Failure::bad_request);
      for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(identical(answers[seed].get(), alone(table, seed, search)));
      server.drain();
      CHECK(server.trace().seen == &seen);
      CHECK(seen.admitted.size() == 20);
      CHECK(seen.ended.size() == 21);
      CHECK(seen.planned == server.statistics().steps);
      CHECK(seen.answered == server.statistics().model_calls);
      CHECK(seen.threads.size() == 1);
      CHECK_FALSE(seen.threads.contains(std::this_thread::get_id()));
    }
    CHECK(model.report() == "");
  }
}

TEST_CASE("what is settled is told while it is decoded", "[server]") {
  EncodingTable<> model(table);
  Greedy const search{.length = {.max = 30}};
  Log log;
  Server server(model, search, Streaming{.size = 3});
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    CHECK(server.submit(request(seed, search), log.take(seed % 3 == 0)) == seed);
  server.drain();
  auto const results = log.results();
  REQUIRE(results.size() == 30);
  std::size_t told = 0;
  for (auto const& [id, result] : results) {
    CHECK(identical(result, alone(table, id, search)));
    auto const& tokens = result.hypotheses.at(0).tokens;
    auto const settled = log.told(id);
    CHECK(settled.size() == (id % 3 == 0 ? tokens.size() - 1 : 0));  // the last comes with the result
    told += settled.size();
  }
  CHECK(log.tellings() == told);
}

TEST_CASE("cancel: queued, running, ended, unknown", "[server]") {
  Greedy const search{.length = {.max = 1000}};
  for (auto const& options : all_options) {
    if (options.queue < 8) continue;
    Gate entered, go;
    SlotChecker model{EncodingTable<>(endless, {.step = [&](std::size_t call) {
                                        if (call != 20) return;
                                        entered.open();
                                        go.pass();
                                      }})};
    {
      Log log;
      Server server(model, search, Streaming{.size = 2}, options);
      for (std::uint64_t seed = 0; seed < 6; ++seed) server.submit(request(seed, search), log.take(true));
      REQUIRE(entered.pass());  // at least one runs, the others wait
      for (std::uint64_t const id : {0u, 3u, 3u, 5u, 77u}) server.cancel(id);
      go.open();
      server.drain();
      server.cancel(1), server.cancel(0);
      CHECK(identical(server.submit(request(9, search)).get(), alone(endless, 9, search)));
      auto const results = log.results();
      REQUIRE(results.size() == 6);
      for (auto const& [id, result] : results) {
        INFO("request " << id << ": " << result.message);
        if (id == 0 || id == 3 || id == 5) {
          CHECK(result.failure == Failure::cancelled);
          CHECK(result.message.find("cancelled") != std::string::npos);
        } else {
          CHECK(identical(result, alone(endless, id, search)));
        }
      }
      auto const& first = results.at(0);  // ran: what there is comes back
      REQUIRE(first.hypotheses.size() == 1);
      auto const& tokens = first.hypotheses[0].tokens;
      CHECK(tokens == log.told(0));
      CHECK(tokens.size() == 21);
      auto const whole = alone(endless, 0, search).hypotheses[0].tokens;
      CHECK(std::equal(tokens.begin(), tokens.end(), whole.begin()));
      CHECK_FALSE(first.hypotheses[0].finished);
      CHECK(results.at(5).hypotheses.empty());
    }
    CHECK(model.report() == "");
  }
}

TEST_CASE("deadlines: in the past, while running, far away", "[server]") {
  Greedy const search{.length = {.max = 1 << 30}};
  EncodingTable<> model(endless);
  Server server(model, search, Streaming{.size = 2});
  auto const late = server.submit(request(1, search), Clock::now() - std::chrono::hours(1)).get();
  CHECK(late.failure == Failure::late);
  CHECK(late.hypotheses.empty());
  CHECK(late.message == "late while waiting");
  CHECK(server.submit(request(1, search), Clock::time_point::min()).get().failure == Failure::late);
  server.drain();
  CHECK(model.counts().started == 0);  // nothing was run
  // Where the machine is busy, the time may have passed before the sentence was begun: more of it then.
  for (std::chrono::milliseconds time(20);; time *= 2) {
    Log log;
    auto delivery = log.take(true);
    delivery.deadline = Clock::now() + time;
    auto const id = server.submit(request(2, search), delivery);
    REQUIRE(id);
    server.drain();
    CHECK(Clock::now() >= delivery.deadline);
    auto const result = log.at(*id);
    CHECK(result.failure == Failure::late);
    if (result.hypotheses.empty() && time < std::chrono::seconds(20)) continue;
    CHECK(result.message == "late while running");
    REQUIRE(result.hypotheses.size() == 1);
    CHECK(result.hypotheses[0].tokens == log.told(*id));
    CHECK_FALSE(result.hypotheses[0].tokens.empty());
    break;
  }
  Greedy const brief{.length = {.max = 5}};
  auto quick = request(3, brief);
  quick.search = brief;
  CHECK(identical(server.submit(quick, Clock::now() + std::chrono::hours(1)).get(), alone(endless, 3, brief)));
  CHECK(identical(server.submit(quick, Clock::time_point::max() - Clock::duration(1)).get(), alone(endless, 3, brief)));
}

TEST_CASE("a full queue refuses where asked", "[server]") {
  Greedy const search{.length = {.max = 5}};
  Gate entered, go;
  EncodingTable<> model(endless, {.step = [&](std::size_t call) {
                          if (call > 0) return;
                          entered.open();
                          go.pass();
                        }});
  Log log;
  Server server(model, search, Streaming{.size = 1}, {.queue = 2, .full = ServerOptions::Full::refuse});
  CHECK(server.submit(request(0, search), log.take()) == 0);
  REQUIRE(entered.pass());
  // The first is running but the worker has not said so yet: the queue is as full as after the last step.
  std::size_t accepted = 0;
  while (server.submit(request(1, search), log.take())) ++accepted;
  CHECK(accepted >= 1);
  CHECK(accepted <= 2);
  auto const refused = server.submit(request(2, search)).get();
  CHECK(refused.failure == Failure::refused);
  CHECK_FALSE(refused.message.empty());
  CHECK(server.open() == 1 + accepted);
  go.open();
  server.drain();
  CHECK(log.results().size() == 1 + accepted);
  for (auto const& [id, result] : log.results()) CHECK(result.ok());
  CHECK(server.submit(request(3, search)).get().ok());  // there is room again
}

TEST_CASE("a full queue lets writers wait, and close() refuses them", "[server]") {
  Greedy const search{.length = {.max = 5}};
  for (auto const closes : {false, true}) {
    Gate entered, go;
    EncodingTable<> model(endless, {.step = [&](std::size_t call) {
                            if (call > 0) return;
                            entered.open();
                            go.pass();
                          }});
    Log log;
    Server server(model, search, Streaming{.size = 1}, {.queue = 1});
    CHECK(server.submit(request(0, search), log.take()) == 0);
    REQUIRE(entered.pass());
    std::atomic<std::size_t> accepted = 0, refused = 0;
    std::vector<std::thread> writers;
    for (std::uint64_t w = 0; w < 8; ++w)
      writers.emplace_back([&, w] { ++(server.submit(request(w, search), log.take()) ? accepted : refused); });
    if (closes) {
      server.close();  // while they wait, or before they come: the queue is full
      for (auto& writer : writers) writer.join();
      CHECK(accepted <= 1);
      CHECK(accepted + refused == 8);
      go.open();
    } else {
      go.open();
      for (auto& writer : writers) writer.join();
      CHECK(accepted == 8);
    }
    server.drain();
    CHECK(log.results().size() == 1 + accepted);
    for (auto const& [id, result] : log.results()) CHECK(result.ok());
    if (closes) CHECK(server.submit(request(9, search)).get().failure == Failure::refused);
    CHECK(server.open() == 0);
  }
}

TEST_CASE("callbacks may throw, submit, cancel and close", "[server]") {
  Greedy const search{.length = {.max = 40}};
  EncodingTable<> model(endless);
  Log log;
  {
    Server server(model, search, Streaming{.size = 3}, {.queue = 4});
    using S = decltype(server);
    // One that throws, of either kind.
    server.submit(request(0, search), {.done =
                                           [&](Result result) {
                                             log.done(std::move(result));
                                             throw std::runtime_error("the caller's");
                                           },
                                       .delta = [](std::uint64_t, std::span<Token const>) { throw 1; }});
    // One after the other from the callback. The queue may be full: then it refuses, and does not wait for itself.
    std::atomic<std::size_t> chained = 0, refused = 0;
    std::function<void(Result)> next;
    auto const again = [&] {
      if (chained + refused == 50) return;
      ++(server.submit(request(chained, search), {.done = next}) ? chained : refused);
    };
    next = [&](Result result) {
      log.done(std::move(result));
      again();
    };
    for (int i = 0; i < 2; ++i) server.submit(request(1, search), {.done = next});
    server.drain();
    CHECK(chained + refused == 50);
    CHECK(chained > 0);
    CHECK(log.results().size() == 3 + chained);
    // As many as you like in one callback: what does not fit is refused.
    std::size_t fit = 0;
    server.submit(request(2, search), {.done = [&](Result) {
                    while (server.submit(request(3, search), log.take())) ++fit;
                  }});
    server.drain();
    CHECK(fit >= 1);
    CHECK(fit <= 4);
    // Others and itself, at the first token; functions that only look may be called too.
    std::promise<std::uint64_t> victim;
    Log stopped;
    auto const of = victim.get_future().share();
    server.submit(request(4, search), {.done = [&](Result result) { stopped.done(std::move(result)); },
                                       .delta =
                                           [&, once = false](std::uint64_t id, std::span<Token const>) mutable {
                                             if (std::exchange(once, true)) return;
                                             server.cancel(of.get()), server.cancel(id), server.cancel(1 << 20);
                                             (void)server.open(), (void)server.statistics();
                                           }});
    victim.set_value(*server.submit(request(5, search), stopped.take()));
    server.drain();
    CHECK(stopped.results().size() == 2);
    for (auto const& [id, result] : stopped.results()) CHECK(result.failure == Failure::cancelled);
    // And the end of it all.
    server.submit(request(6, search), {.done = [&](Result) { server.close(); }});
    server.drain();
    CHECK_FALSE(server.submit(request(7, search), log.take()));
    static_assert(!std::is_copy_constructible_v<S> && !std::is_move_constructible_v<S>);
  }
  for (auto const& [id, result] : log.results()) CHECK(result.ok());
}

TEST_CASE("a request without callbacks is decoded too", "[server]") {
  Greedy const search{.length = {.max = 10}};
  EncodingTable<> model(table);
  Server server(model, search);
  for (std::uint64_t seed = 0; seed < 5; ++seed) server.submit(request(seed, search), Delivery{});
  server.drain();
  CHECK(server.statistics().sentences == 5);
}

TEST_CASE("a server that goes answers everybody", "[server]") {
  Greedy const search{.length = {.max = 3000}};
  auto const before = HeapSource::alive();
  for (auto const& options : all_options)
    for (std::size_t const stop_at : {0u, 1u, 40u}) {
      Gate entered, go;
      Log log;
      std::size_t submitted = 0, refused = 0, many = std::min<std::size_t>(options.queue, 40);
      {
        SlotChecker model{EncodingTable<>(endless, {.encode = [&](std::uint64_t) { std::this_thread::yield(); },
                                                    .step =
                                                        [&](std::size_t call) {
                                                          if (call != stop_at) return;
                                                          entered.open();
                                                          go.pass();
                                                        }})};
        std::thread opener;
        {
          Server server(model, search, Streaming{.size = 3}, options);
          for (; submitted < many; ++submitted)
            server.submit(request(submitted, search), {.done = [&](Result result) {
                            log.done(std::move(result));
                            refused += !server.submit(request(0, search), Delivery{});  // never waits, never hangs
                          }});
          REQUIRE(entered.pass());
          opener = std::thread([&] { go.open(); });
        }
        opener.join();
        CHECK(model.report() == "");
        CHECK(model.model().counts().broken == 0);
        CHECK(model.model().counts().batches == 0);
      }
      auto const results = log.results();
      CHECK(results.size() == submitted);
      CHECK(refused > 0);
      for (auto const& [id, result] : results)
        if (!result.ok()) CHECK(result.failure == Failure::cancelled);
      CHECK(HeapSource::alive() == before);
    }
}

TEST_CASE("a server may go while its encoder thread works", "[server]") {
  Greedy const search{.length = {.max = 3000}};
  auto const before = HeapSource::alive();
  Gate entered, go;
  Log log;
  {
    EncodingTable<> model(endless, {.encode = [&](std::uint64_t seed) {
                            if (seed != 6) return;
                            entered.open();
                            go.pass();
                          }});
    std::thread opener;
    {
      Server server(model, search, Streaming{.size = 2}, {.intake = {.encode_ahead = 4, .encode_group = 2}});
      for (std::uint64_t seed = 0; seed < 20; ++seed) server.submit(request(seed, search), log.take());
      REQUIRE(entered.pass());
      opener = std::thread([&] { go.open(); });
    }
    opener.join();
    CHECK(model.counts().encoding == 0);
    CHECK(model.counts().batches == 0);
    CHECK(model.counts().broken == 0);
  }
  CHECK(log.results().size() == 20);
  CHECK(HeapSource::alive() == before);
}

TEST_CASE("a model that throws: every time, once, and what is no std::exception", "[server]") {
  Greedy const search{.length = {.max = 8}};
  for (auto const& options : all_options) {
    std::atomic<int> mode = 0;
    SlotChecker model{EncodingTable<>(endless, {.step = [&](std::size_t call) {
                                        if (mode == 0) throw std::runtime_error("no step");
                                        if (mode == 1 && call % 5 == 0) throw 7;
                                      }})};
    {
      Server server(model, search, Streaming{.size = 3}, options);
      for (auto const now : {0, 1, 2}) {
        mode = now;
        std::vector<std::future<Result>> futures;
        for (std::uint64_t seed = 0; seed < 20; ++seed) futures.push_back(server.submit(request(seed, search)));
        std::size_t failed = 0;
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          auto const result = futures[seed].get();
          failed += !result.ok();
          if (result.ok()) CHECK(identical(result, alone(endless, seed, search)));
          else CHECK(result.failure == Failure::model);
          if (!result.ok())
            CHECK(result.message == (now == 0 ? "no step" : "an exception that is not a std::exception"));
        }
        CHECK((now == 0 ? failed == 20 : now == 1 ? failed > 0 : failed == 0));
      }
    }
    CHECK(model.report() == "");
  }
}

TEST_CASE("a schedule that throws or chooses no sentence ends all of them, and the server goes on", "[server]") {
  Greedy const search{.length = {.max = 8}};
  for (int what = 0; what < 3; ++what) {
    std::atomic<bool> broken = true;
    Odd schedule;
    if (what == 0)
      schedule.chooses = [&] {
        if (broken) throw std::runtime_error("no choice");
        return true;
      };
    if (what == 1) schedule.chooses = [&] { return !broken; };
    if (what == 2)
      schedule.admitted = [&](std::size_t) -> std::size_t {
        if (broken) throw std::runtime_error("no admission");
        return 4;
      };
    SlotChecker model{EncodingTable<>(endless)};
    {
      Server server(model, search, schedule);
      for (auto const now : {true, false}) {
        broken = now;
        std::vector<std::future<Result>> futures;
        for (std::uint64_t seed = 0; seed < 20; ++seed) futures.push_back(server.submit(request(seed, search)));
        for (auto& future : futures) {
          auto const result = future.get();
          INFO(result.message);
          CHECK(result.ok() == !now);
          if (now) CHECK(result.failure == Failure::schedule);
          if (now) CHECK_FALSE(result.message.empty());
        }
      }
    }
    CHECK(model.report() == "");
  }
}

TEST_CASE("a schedule that admits no sentence keeps requests waiting, not their callers", "[server]") {
  Greedy const search{.length = {.max = 8}};
  EncodingTable<> model(endless);
  Log log;
  {
    Server server(model, search, Odd{.admitted = [](std::size_t) -> std::size_t { return 0; }},
                  {.intake = {.encode_ahead = 2}});
    for (std::uint64_t seed = 0; seed < 5; ++seed) server.submit(request(seed, search), log.take());
    server.cancel(3);
    CHECK(server.submit(request(9, search), Clock::now() + std::chrono::milliseconds(5)).get().failure ==
          Failure::late);
  }
  CHECK(log.results().size() == 5);
  for (auto const& [id, result] : log.results()) CHECK(result.failure == Failure::cancelled);
  CHECK(log.at(3).message == "cancelled while waiting");
  CHECK(model.counts().started == 0);
}

TEST_CASE("requests that fail fail alone", "[server]") {
  BeamSearch const search{.width = 2, .length = {.max = 10}};
  struct Picky : EncodingTable<> {
    using EncodingTable<>::EncodingTable;
    std::int32_t source_length(HeapSource const& source) const {
      if (source.seed() == 4) throw 42;
      return source.length();
    }
  };
  for (auto const& options : all_options) {
    Picky model(table, {.encode =
                            [](std::uint64_t seed) {
                              if (seed == 0) throw std::runtime_error("no encoding");
                            },
                        .start =
                            [](std::uint64_t seed) {
                              if (seed <= 1) throw std::runtime_error("no start");
                            }});
    Server server(model, search, Streaming{.size = 8, .refill_below = 0.5}, options);
    std::vector<std::future<Result>> futures;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      auto one = request(seed, search);
      if (seed == 2) one.prefix = {3, 99};
      if (seed == 3) one.search = BeamSearch{.width = 0};
      if (seed == 5) one.prefix = {eos, 3};
      futures.push_back(server.submit(std::move(one)));
    }
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      auto const result = futures[seed].get();
      INFO("seed " << seed << ": " << result.message);
      if (seed <= 1) CHECK(result.failure == Failure::source);
      else if (seed <= 5) CHECK(result.failure == Failure::bad_request);
      else CHECK(identical(result, alone(table, seed, search)));
      CHECK(result.ok() == result.message.empty());
    }
    CHECK(model.counts().broken == 0);
  }
}

TEST_CASE("a search that throws, wherever it does, fails its sentence only", "[server]") {
  using Where = Faulty::Where;
  SlotChecker model{EncodingTable<>(endless)};
  {
    Server server(model, Faulty{}, Streaming{.size = 8});
    for (auto const where : {Where::check, Where::start, Where::plan, Where::advance, Where::finish, Where::settled}) {
      Log log;
      std::vector<std::uint64_t> ids;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        Request<HeapSource, Faulty> one{.source = HeapSource(seed), .seed = seed};
        if (seed % 4 == 1) one.search = Faulty{where};
        ids.push_back(*server.submit(std::move(one), log.take(true)));
      }
      server.drain();
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        auto const result = log.at(ids[seed]);
        INFO("seed " << seed << ": " << result.message);
        if (seed % 4 != 1) CHECK(identical(result, alone(endless, seed, Faulty{}.greedy)));
        else CHECK(result.failure == (where == Where::check ? Failure::bad_request : Failure::search));
      }
    }
  }
  CHECK(model.report() == "");
}

// A source whose copy throws is the caller's, which hears of it: the numbers of no other may move.
TEST_CASE("a submit that throws has not happened", "[server]") {
  struct Copied : HeapSource {
    bool throws = false;
    Copied() = default;
    Copied(std::uint64_t seed, bool t) : HeapSource(seed), throws(t) {}
    Copied(Copied const& other) : HeapSource(other), throws(other.throws) {  // and no move
      if (throws) throw std::runtime_error("no copy");
    }
    Copied& operator=(Copied const&) = default;
  };
  struct CopyTable : TableModel<everything> {
    using TableModel<everything>::TableModel;
    using Source = Copied;
    std::int32_t source_length(Copied const&) const { return -1; }
    void start(std::span<Copied const* const> sources, std::span<Slot const> slots) {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        auto const seed = sources[i]->seed();
        auto const* const one = &seed;
        TableModel<everything>::start(std::span(&one, 1), slots.subspan(i, 1));
      }
    }
  };
  CopyTable model(table);
  Greedy const search{.length = {.max = 8}};
  Server server(model, search);
  Log log;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Request<Copied, Greedy> bad, good;
    bad.source.throws = true;
    CHECK_THROWS_AS(server.submit(bad, log.take()), std::runtime_error);
    CHECK_THROWS_AS(server.submit(std::move(bad), log.take()), std::runtime_error);
    good.source = Copied(seed, false), good.seed = seed;
    CHECK(server.submit(std::move(good), log.take()) == seed);
  }
  server.drain();
  auto const results = log.results();
  REQUIRE(results.size() == 10);
  for (auto const& [id, result] : results) CHECK(identical(result, alone(table, id, search)));
}

TEST_CASE("searches that settle nothing, and sampling", "[server]") {
  EncodingTable<> model(table);
  {
    Server server(model, ForcedScore{});
    Log log;
    Request<HeapSource, ForcedScore> one{.source = HeapSource(3), .prefix = {3, 4, 5}};
    auto const id = server.submit(one, log.take(true));
    server.drain();
    CHECK(log.at(*id).hypotheses.at(0).tokens == Tokens{3, 4, 5});
    CHECK(log.tellings() == 0);
  }
  Sample const search{.samples = 3, .length = {.max = 12}};
  Server server(model, search);
  Log log;
  for (std::uint64_t seed = 0; seed < 20; ++seed) server.submit(request(seed, search), log.take(true));
  server.drain();
  for (auto const& [id, result] : log.results()) CHECK(identical(result, alone(table, id, search)));
}

TEST_CASE("options that make no sense are refused before any work", "[server]") {
  EncodingTable<> model(table);
  TableModel<> none(table);
  CHECK(ServerOptions{}.queue == 1024);
  CHECK_THROWS_AS((Server(model, Greedy{}, Streaming{}, {.queue = 0})), std::invalid_argument);
  CHECK_THROWS_AS((Server(model, BeamSearch{.width = 0})), std::invalid_argument);
  CHECK_THROWS_AS((Server(model, Greedy{}, Streaming{.size = 0})), std::invalid_argument);
  CHECK_THROWS_AS((Server(model, Greedy{}, Streaming{}, {.intake = {.encode_ahead = 1, .encode_group = 2}})),
                  std::invalid_argument);
  CHECK_THROWS_AS((Server(none, Greedy{}, Streaming{}, {.intake = {.encode_ahead = 1}})), std::invalid_argument);
  CHECK(model.counts().starts == 0);
}

TEST_CASE("a running sentence never waits for the encoder of a newcomer", "[server]") {
  for (auto const group : {std::size_t{1}, std::size_t{2}}) {
    Gate go;
    EncodingTable<> model(endless, {.encode = [&](std::uint64_t seed) {
                            if (seed >= 100) static_cast<void>(go.pass());
                          }});
    Greedy const search{.length = {.max = 60}};
    Server server(model, search, Streaming{.size = 8, .refill_below = 1},
                  {.intake = {.encode_ahead = 4, .encode_group = group}});
    auto first = server.submit({.source = HeapSource(1)});
    while (model.counts().steps == 0) std::this_thread::yield();
    std::vector<std::future<Result>> late;
    for (std::uint64_t seed = 100; seed < 103; ++seed) late.push_back(server.submit({.source = HeapSource(seed)}));
    // The encoder hangs until the gate opens, which it does after the first sentence has ended: it went on all the while.
    REQUIRE(first.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
    CHECK(identical(first.get(), run_one(endless, 1, search)));
    go.open();
    for (std::uint64_t i = 0; i < 3; ++i) CHECK(late[i].get().ok());
  }
}

TEST_CASE("a long sentence keeps no other out of a server with room", "[server]") {
  Gate submitted;
  EncodingTable<> model(endless, {.step = [&](std::size_t call) {
                          if (call == 600) static_cast<void>(submitted.pass());  // older than Streaming::drain_after
                        }});
  Server server(model, Greedy{.length = {.max = 2000}});
  auto const first = server.submit({.source = HeapSource(1)}, {.done = [](Result const&) {}});
  REQUIRE(first);
  while (model.counts().steps < 600) std::this_thread::yield();
  std::size_t steps = 0;
  server.submit({.source = HeapSource(2), .search = Greedy{.length = {.max = 3}}},
                {.done = [&](Result const&) { steps = model.counts().steps; }});
  submitted.open();
  server.drain();
  CHECK(steps >= 600);
  CHECK(steps < 610);
}
