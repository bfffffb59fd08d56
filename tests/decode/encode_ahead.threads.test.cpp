// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>
#include <support/gate.hpp>
#include <support/slot_checker.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};

template <Abilities A = everything>
using CheckedEncoding = SlotChecker<EncodingTable<everything>, A>;

using Results = std::map<std::uint64_t, Result>;

template <class D>
void collect(D& decoder, Results& results) {
  for (Result result; decoder.poll(result);) {
    CHECK_FALSE(results.contains(result.id));
    results[result.id] = result;
  }
}

/// Everything that a decoder gives; what its steps throw is dropped, as results say it.
template <class D>
Results drain(D& decoder) {
  Results results;
  for (auto more = true; more;) {
    try {
      more = decoder.step();
    } catch (std::runtime_error const&) {
    }
    collect(decoder, results);
  }
  return results;
}

std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> result;
  for (auto i = first; i < first + count; ++i) result.push_back(i);
  return result;
}

std::int32_t length_of(std::uint64_t seed) { return static_cast<std::int32_t>(1 + hash_mix(seed) % 20); }

template <class D>
void submit(D& decoder, std::vector<std::uint64_t> const& seeds) {
  for (auto const seed : seeds) decoder.submit({.source = HeapSource(seed, length_of(seed)), .seed = seed});
}

/// The same without any of it, one by one.
template <class S>
Results alone(std::vector<std::uint64_t> const& seeds, S const& search) {
  Results results;
  for (std::size_t i = 0; i < seeds.size(); ++i)
    results[i] =
        run<everything>(table, std::vector<TableRequest<S>>{{.source = seeds[i], .seed = seeds[i]}}, search)[0];
  return results;
}

void same(Results const& results, Results const& expected) {
  REQUIRE(results.size() == expected.size());
  for (auto const& [id, result] : results) {
    INFO("request " << id << ": " << result.message);
    CHECK(identical(result, expected.at(id)));
  }
}

std::vector<Intake> const intakes{{},
                                  {.window = 5},
                                  {.window = 16},
                                  {.window = 1000},
                                  {.encode_ahead = 1},
                                  {.encode_ahead = 1, .encoder_thread = false},
                                  {.encode_ahead = 3},
                                  {.window = 7, .encode_ahead = 4},
                                  {.window = 7, .encode_ahead = 4, .encoder_thread = false},
                                  {.encode_ahead = 8, .encode_group = 1},
                                  {.window = 3, .encode_ahead = 8, .encode_group = 8},
                                  {.window = 3, .encode_ahead = 8, .encode_group = 5, .encoder_thread = false},
                                  {.window = 4, .encode_ahead = 1000}};

template <Abilities A, class S, class P>
void check_one(S const& search, P const& schedule, Intake const& intake, std::vector<std::uint64_t> const& seeds,
               Results const& expected, std::optional<std::uint64_t>& rows) {
  INFO("window " << intake.window << ", ahead " << intake.encode_ahead << ", group " << intake.encode_group
                 << (intake.encoder_thread ? ", thread" : ", no thread"));
  CheckedModel<EncodingTable<everything>> model(EncodingTable<everything>(table), A);
  auto const& counts = model.model().counts();
  {
    Decoder decoder(model, search, schedule, intake);
    submit(decoder, seeds);
    same(drain(decoder), expected);
    auto const& statistics = decoder.statistics();
    CHECK(statistics.encoded == seeds.size());
    if (!rows) rows = statistics.rows;
    CHECK(statistics.rows == *rows);
    if (intake.encode_ahead > 0) {
      CHECK(statistics.encoder_calls == (seeds.size() + intake.group() - 1) / intake.group());
      CHECK(counts.encodes == statistics.encoder_calls);
      CHECK(counts.encoded == seeds.size());
      CHECK(counts.from_encoded == seeds.size());
      CHECK(counts.most_waiting <= static_cast<std::int64_t>(intake.encode_ahead));
    } else {
      CHECK(counts.encodes == 0);
    }
    CHECK(counts.started == seeds.size());
    CHECK(counts.batches == 0);  // what has been encoded goes when all of it has been started
    CHECK(decoder.waiting() == 0);
    CHECK(decoder.running() == 0);
  }
  CHECK(counts.waiting == 0);
  CHECK(counts.batches == 0);
  CHECK(counts.broken == 0);
  CHECK(model.report() == "");
}

template <Abilities A, class S>
void check_intakes(S const& search) {
  auto const seeds = numbers(1, 60);
  auto const expected = alone(seeds, search);
  std::optional<std::uint64_t> rows;
  for (auto const& intake : intakes) {
    check_one<A>(search, Batched{1}, intake, seeds, expected, rows);
    check_one<A>(search, Batched{13}, intake, seeds, expected, rows);
    check_one<A>(search, Batched{100}, intake, seeds, expected, rows);
    check_one<A>(search, Streaming{.size = 4}, intake, seeds, expected, rows);
    check_one<A>(search, Streaming{.size = 16, .refill_below = 1}, intake, seeds, expected, rows);
    check_one<A>(search, Streaming{.size = 16, .refill_below = 0.5, .max_rows = 9}, intake, seeds, expected, rows);
    check_one<A>(search, Streaming{.size = 16, .refill_below = 0.5, .refill = {.source_tokens = 40}}, intake, seeds,
                 expected, rows);
  }
}

}  // namespace

TEST_CASE("neither windows nor encoding ahead change a result, and nothing is computed twice", "[encode_ahead]") {
  check_intakes<everything>(BeamSearch{.width = 3, .length = {.max = 12}});
  check_intakes<plain>(Greedy{.length = {.max = 20}});
  check_intakes<everything>(Sample{.samples = 2, .length = {.max = 12}});
}

TEST_CASE("requests may come between the steps", "[encode_ahead]") {
  BeamSearch const search{.width = 2, .length = {.max = 15}};
  auto const seeds = numbers(500, 80);
  auto const expected = alone(seeds, search);
  std::mt19937_64 random(3);
  for (auto const& intake : intakes) {
    CheckedEncoding<> model{EncodingTable<everything>(table)};
    {
      Decoder decoder(model, search, Streaming{.size = 6, .refill_below = 1}, intake);
      Results results;
      for (std::size_t given = 0; given < seeds.size();) {
        for (auto n = random() % 8; n > 0 && given < seeds.size(); --n) submit(decoder, {seeds[given++]});
        decoder.step();
        collect(decoder, results);
      }
      results.merge(drain(decoder));
      same(results, expected);
      auto const& counts = model.model().counts();
      CHECK(counts.most_waiting <= static_cast<std::int64_t>(intake.encode_ahead));
      if (intake.encode_ahead > 0) {
        CHECK(counts.encoded == seeds.size());
        CHECK(decoder.statistics().encoder_calls == counts.encodes);
      }
      CHECK(decoder.statistics().encoded == seeds.size());
    }
    CHECK(model.model().counts().broken == 0);
    CHECK(model.report() == "");
  }
}

TEST_CASE("the encoder thread works beside the steps, up to its bound", "[encode_ahead]") {
  // The first step waits until so many sentences more are encoded: it would wait for ever if that happened elsewhere.
  struct Seen {
    std::mutex mutex;
    std::condition_variable change;
    std::set<std::thread::id> threads;
    std::size_t encoded = 0;
    bool late = false;
  };
  for (std::size_t const ahead : {1u, 2u, 6u, 9u}) {
    for (std::size_t const group : {1u, 0u}) {
      Seen seen;
      Intake const intake{.encode_ahead = ahead, .encode_group = group};
      auto const batches = ahead / intake.group() * intake.group();  // whole groups only
      EncodingHooks const hooks{.encode =
                                    [&](std::uint64_t) {
                                      std::lock_guard const lock(seen.mutex);
                                      ++seen.encoded, seen.threads.insert(std::this_thread::get_id());
                                      seen.change.notify_all();
                                    },
                                .step =
                                    [&](std::size_t call) {
                                      if (call > 0) return;
                                      std::unique_lock lock(seen.mutex);
                                      seen.late = !seen.change.wait_for(lock, std::chrono::seconds(60), [&] {
                                        return seen.encoded >= 1 + (intake.group() == 1 ? batches : 0);
                                      });
                                    }};
      EncodingTable<> model(table, hooks);
      Decoder decoder(model, Greedy{.length = {.max = 10}}, Streaming{.size = 1}, intake);
      submit(decoder, numbers(1, 40));
      auto const results = drain(decoder);
      CHECK(results.size() == 40);
      CHECK_FALSE(seen.late);
      CHECK(seen.threads.size() == 1);
      CHECK_FALSE(seen.threads.contains(std::this_thread::get_id()));
      CHECK(model.counts().most_waiting <= static_cast<std::int64_t>(ahead));
      CHECK(model.counts().most_waiting >= static_cast<std::int64_t>(std::min(batches, intake.group())));
      CHECK(model.counts().broken == 0);
    }
  }
}

TEST_CASE("without its thread, encoding ahead happens in the decoder's own", "[encode_ahead]") {
  std::set<std::thread::id> threads;
  EncodingTable<> model(table, {.encode = [&](std::uint64_t) { threads.insert(std::this_thread::get_id()); }});
  Decoder decoder(model, Greedy{.length = {.max = 10}}, Streaming{.size = 3},
                  Intake{.encode_ahead = 5, .encoder_thread = false});
  submit(decoder, numbers(1, 20));
  CHECK(drain(decoder).size() == 20);
  CHECK(threads == std::set<std::thread::id>{std::this_thread::get_id()});
  CHECK(decoder.statistics().seconds.beside == 0);
}

TEST_CASE("windows sort by source length, and a later window overtakes none", "[encode_ahead]") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    auto const window = 1 + random() % 12;
    auto const ahead = random() % 3 * 4;
    Intake const intake{.window = window, .encode_ahead = ahead, .encoder_thread = random() % 2 == 0};
    // What is waiting, as this test understands windows. All before the first step.
    std::vector<std::uint64_t> arranged, open;
    auto const close = [&] {
      std::ranges::sort(
          open, [](auto a, auto b) { return length_of(a) != length_of(b) ? length_of(a) > length_of(b) : a < b; });
      arranged.insert(arranged.end(), open.begin(), open.end());
      open.clear();
    };
    std::vector<std::uint64_t> started;
    EncodingTable<> model(table, {.start = [&](std::uint64_t seed) { started.push_back(seed); }});
    Decoder decoder(model, Greedy{.length = {.max = 6}}, Batched{1 + random() % 25}, intake);
    std::map<std::uint64_t, std::uint64_t> ids;  // seed -> id
    std::size_t cancelled = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      submit(decoder, {seed});
      ids[seed] = seed - 1;
      open.push_back(seed);
      if (open.size() == window) close();
      if (random() % 3 != 0) continue;
      auto const victim = 1 + random() % seed;
      auto const was = std::erase(open, victim) + std::erase(arranged, victim);
      CHECK(decoder.cancel(ids[victim]) == (was == 1));
      cancelled += was;
    }
    close();
    auto const results = drain(decoder);
    INFO("window " << window << ", ahead " << ahead);
    CHECK(started == arranged);
    CHECK(results.size() == 50);
    CHECK(static_cast<std::size_t>(std::ranges::count_if(
              results, [](auto const& one) { return one.second.failure == Failure::cancelled; })) == cancelled);
  }
}

TEST_CASE("who cannot be encoded or started fails alone, and says why", "[encode_ahead]") {
  BeamSearch const search{.width = 3, .length = {.max = 12}};
  auto const seeds = numbers(1, 60);
  auto const expected = alone(seeds, search);
  std::set<std::uint64_t> const no_encode{3, 4, 17, 30, 60}, no_start{1, 5, 18, 31, 32, 33};
  auto const refuse = [](std::set<std::uint64_t> const& bad, char const* what) {
    return [&bad, what](std::uint64_t seed) {
      if (bad.contains(seed)) throw std::runtime_error(std::string(what) + std::to_string(seed));
    };
  };
  for (auto const& intake : intakes) {
    INFO("window " << intake.window << ", ahead " << intake.encode_ahead << ", group " << intake.encode_group
                   << (intake.encoder_thread ? ", thread" : ", no thread"));
    CheckedEncoding<> model{EncodingTable<everything>(
        table, {.encode = refuse(no_encode, "no encoding of "), .start = refuse(no_start, "no start of ")})};
    {
      Decoder decoder(model, search, Streaming{.size = 7, .refill_below = 0.5}, intake);
      submit(decoder, seeds);
      auto const results = drain(decoder);
      REQUIRE(results.size() == seeds.size());
      for (auto const& [id, result] : results) {
        auto const encode = intake.encode_ahead > 0 && no_encode.contains(seeds[id]);
        auto const start = no_start.contains(seeds[id]);
        INFO("seed " << seeds[id] << ": " << result.message);
        if (!encode && !start) {
          CHECK(identical(result, expected.at(id)));
          continue;
        }
        CHECK(result.failure == Failure::source);
        CHECK(result.hypotheses.empty());
        CHECK(result.message == (encode ? "no encoding of " : "no start of ") + std::to_string(seeds[id]));
        CHECK(result.cause != nullptr);
      }
      CHECK(decoder.statistics().sentences == seeds.size());
      CHECK(model.model().counts().most_waiting <= static_cast<std::int64_t>(intake.encode_ahead));
    }
    CHECK(model.model().counts().broken == 0);
    CHECK(model.model().counts().batches == 0);
    CHECK(model.report() == "");
  }
}

// A group that could not be encoded in one call is in several parts: the first may be started and the second not.
TEST_CASE("a start that fails half-way leaves no slot occupied", "[encode_ahead]") {
  auto const seeds = numbers(1, 6);
  BeamSearch const search{.width = 2, .length = {.max = 8}};
  auto const expected = alone(seeds, search);
  for (auto const thread : {true, false}) {
    CheckedEncoding<> model{EncodingTable<everything>(table, {.encode =
                                                                  [](std::uint64_t seed) {
                                                                    if (seed == 6)
                                                                      throw std::runtime_error("no encoding");
                                                                  },
                                                              .start =
                                                                  [](std::uint64_t seed) {
                                                                    if (seed == 3) throw std::runtime_error("no start");
                                                                  }})};
    {
      // The batch takes 1 to 5, so that none in it stopped the start before it began.
      Decoder decoder(model, search, Batched{5},
                      Intake{.encode_ahead = 6, .encode_group = 6, .encoder_thread = thread});
      submit(decoder, seeds);
      auto const results = drain(decoder);
      REQUIRE(results.size() == 6);
      for (auto const& [id, result] : results) {
        INFO("seed " << seeds[id] << ": " << result.message);
        if (seeds[id] == 3 || seeds[id] == 6) CHECK(result.failure == Failure::source);
        else CHECK(identical(result, expected.at(id)));
      }
    }
    CHECK(model.report() == "");
  }
}

TEST_CASE("a step that throws does not disturb the encoder thread", "[encode_ahead]") {
  Greedy const search{.length = {.max = 20}};
  auto const seeds = numbers(1, 100);
  auto const expected = alone(seeds, search);
  for (auto const& intake : intakes) {
    CheckedEncoding<> model{EncodingTable<everything>(table, {.step = [](std::size_t call) {
                                                        if (call % 17 == 3) throw std::runtime_error("no step");
                                                      }})};
    {
      Decoder decoder(model, search, Streaming{.size = 5, .refill_below = 1}, intake);
      submit(decoder, seeds);
      auto const results = drain(decoder);
      REQUIRE(results.size() == seeds.size());
      std::size_t good = 0;
      for (auto const& [id, result] : results) {
        good += result.ok();
        if (result.ok()) CHECK(identical(result, expected.at(id)));
        else CHECK(result.failure == Failure::model);
      }
      CHECK(good > 10);
      CHECK(good < 90);
    }
    CHECK(model.report() == "");
    CHECK(model.model().counts().broken == 0);
    CHECK(model.model().counts().batches == 0);
  }
}

TEST_CASE("a decoder may go while its encoder thread works", "[encode_ahead]") {
  auto const before = HeapSource::alive();
  for (int round = 0; round < 20; ++round) {
    Gate entered, go;
    {
      EncodingTable<> model(table, {.encode = [&](std::uint64_t seed) {
                              if (seed < 5) return;
                              entered.open();
                              go.pass();
                            }});
      std::thread opener;
      {
        Decoder decoder(model, Greedy{.length = {.max = 50}}, Streaming{.size = 2},
                        Intake{.encode_ahead = 6, .encode_group = 2});
        submit(decoder, numbers(1, 30));
        decoder.step();
        CHECK(entered.pass());
        opener = std::thread([&] { go.open(); });
      }
      CHECK(model.counts().encoding == 0);  // has ended before the decoder has
      CHECK(model.counts().batches == 0);
      opener.join();
      CHECK(model.counts().encoded < 30);
      CHECK(model.counts().broken == 0);
    }
    CHECK(HeapSource::alive() == before);
  }
}

TEST_CASE("who is withdrawn while it is encoded is answered at once, and its source stays", "[encode_ahead]") {
  auto const before = HeapSource::alive();
  {
    Gate entered, go;
    EncodingTable<> model(table, {.encode = [&](std::uint64_t seed) {
                            if (seed != 4) return;
                            entered.open();
                            go.pass();
                          }});
    Decoder decoder(model, Greedy{.length = {.max = 50}}, Streaming{.size = 2},
                    Intake{.encode_ahead = 6, .encode_group = 3});
    submit(decoder, numbers(1, 20));  // groups of 1 to 3, 4 to 6 ...; 1 and 2 run
    decoder.step();
    CHECK(entered.pass());
    Results results;
    for (std::uint64_t id = 2; id < 20; id += id == 4 ? 2 : 1) CHECK(decoder.cancel(id));  // all that wait, but seed 6
    collect(decoder, results);
    CHECK(results.size() == 17);
    for (auto const& [id, result] : results) CHECK(result.failure == Failure::cancelled);
    CHECK_FALSE(decoder.cancel(3));
    go.open();
    results.merge(drain(decoder));
    CHECK(results.size() == 20);
    auto const expected = alone({1, 2, 3, 4, 5, 6}, Greedy{.length = {.max = 50}});
    for (std::uint64_t const id : {0u, 1u, 5u}) CHECK(identical(results.at(id), expected.at(id)));
    CHECK(model.counts().broken == 0);
  }
  CHECK(HeapSource::alive() == before);
}

TEST_CASE("what was withdrawn is not encoded any more, and not kept", "[encode_ahead]") {
  auto const before = HeapSource::alive();
  {
    Gate entered, go;
    EncodingTable<> model(Table{.size = 8, .has_eos = false}, {.encode = [&](std::uint64_t seed) {
                            if (seed != 10) return;
                            entered.open();
                            go.pass();
                          }});
    Decoder decoder(model, Greedy{.length = {.max = 5000}}, Streaming{.size = 2},
                    Intake{.encode_ahead = 4, .encode_group = 2});
    submit(decoder, {1, 2});
    decoder.step();  // these two run for long
    submit(decoder, {10, 11});
    decoder.step();
    CHECK(entered.pass());
    // The encoder is busy with one group, and callers come and go.
    Result result;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      submit(decoder, {100 + 4 * i, 101 + 4 * i, 102 + 4 * i, 103 + 4 * i});
      decoder.step();
      for (std::uint64_t k = 0; k < 4; ++k) CHECK(decoder.cancel(4 + 4 * i + k));
      while (decoder.poll(result)) CHECK(result.failure == Failure::cancelled);
    }
    CHECK(HeapSource::alive() - before <= 4 + 8);
    go.open();
    submit(decoder, {20, 21});
    decoder.end_all(Failure::cancelled, "enough");
    submit(decoder, {22, 23});
    CHECK(drain(decoder).size() == 8);
    CHECK(model.counts().encoded <= 4 + 8);
    CHECK(model.counts().batches <= 1);
    CHECK(model.counts().broken == 0);
  }
  CHECK(HeapSource::alive() == before);
}

TEST_CASE("random cancels in windows and groups lose no other sentence", "[encode_ahead]") {
  BeamSearch const search{.width = 2, .length = {.max = 12}};
  auto const seeds = numbers(1, 120);
  auto const expected = alone(seeds, search);
  auto const before = HeapSource::alive();
  std::mt19937_64 random(17);
  for (int round = 0; round < 40; ++round) {
    Intake const intake{
        .window = random() % 3 * 5, .encode_ahead = 1 + random() % 12, .encoder_thread = random() % 3 > 0};
    CheckedEncoding<> model{EncodingTable<everything>(table, {.encode =
                                                                  [](std::uint64_t seed) {
                                                                    if (seed % 16 == 5)
                                                                      throw std::runtime_error("no encoding");
                                                                  },
                                                              .start =
                                                                  [](std::uint64_t seed) {
                                                                    if (seed % 16 == 9)
                                                                      throw std::runtime_error("no start");
                                                                  }})};
    {
      Decoder decoder(model, search, Streaming{.size = 1 + random() % 9, .refill_below = 0.5}, intake);
      Results results;
      std::set<std::uint64_t> asked;
      for (std::size_t given = 0; given < seeds.size();) {
        for (auto n = random() % 30; n > 0 && given < seeds.size(); --n) submit(decoder, {seeds[given++]});
        for (auto n = random() % 12; n > 0 && given > 0; --n) {
          auto const id = random() % given;
          if (decoder.cancel(id)) CHECK(asked.insert(id).second);
        }
        decoder.step();
        collect(decoder, results);
      }
      if (round % 2 == 0) results.merge(drain(decoder));
      else {
        decoder.end_all(Failure::late, "time is up");
        collect(decoder, results);
      }
      REQUIRE(results.size() == seeds.size());
      for (auto const& [id, result] : results) {
        INFO("seed " << seeds[id] << ": " << result.message);
        CHECK((result.failure == Failure::cancelled) == asked.contains(id));
        if (result.ok()) CHECK(identical(result, expected.at(id)));
        else if (result.failure == Failure::source) CHECK((seeds[id] % 16 == 5 || seeds[id] % 16 == 9));
        else if (result.failure != Failure::cancelled) CHECK((result.failure == Failure::late && round % 2 == 1));
      }
      CHECK(decoder.waiting() == 0);
      CHECK(decoder.running() == 0);
    }
    CHECK(model.model().counts().batches == 0);
    CHECK(model.model().counts().broken == 0);
    CHECK(model.report() == "");
    CHECK(HeapSource::alive() == before);
  }
}

TEST_CASE("few slots: what is encoded waits for them", "[encode_ahead]") {
  BeamSearch const search{.width = 3, .length = {.max = 12}};
  auto const seeds = numbers(1, 40);
  auto const expected = alone(seeds, search);
  for (auto const& intake : intakes) {
    CheckedEncoding<> model{EncodingTable<everything>(table, {}, {.limits = {.slot_count = 7}})};
    {
      Decoder decoder(model, search, Streaming{.size = 20, .refill_below = 1}, intake);
      submit(decoder, seeds);
      same(drain(decoder), expected);
    }
    CHECK(model.model().counts().most_waiting <= static_cast<std::int64_t>(intake.encode_ahead));
    CHECK((intake.encode_ahead == 0 || model.model().counts().encoded == seeds.size()));
    CHECK(model.report() == "");
  }
}

TEST_CASE("encoding ahead is refused where it makes no sense", "[encode_ahead]") {
  TableModel<> none(table);
  CHECK_THROWS_AS((Decoder(none, Greedy{}, Batched{}, Intake{.encode_ahead = 1})), std::invalid_argument);
  Decoder fine(none, Greedy{}, Batched{}, Intake{.window = 4});
  EncodingTable<> model(table);
  CHECK_THROWS_AS((Decoder(model, Greedy{}, Batched{}, Intake{.encode_ahead = 2, .encode_group = 3})),
                  std::invalid_argument);
  CHECK_THROWS_AS((Decoder(model, Greedy{}, Batched{}, Intake{.encode_group = 1})), std::invalid_argument);
  CHECK(model.counts().encodes == 0);
}
