// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Order = Streaming::Order;

static_assert(Schedule<Streaming>);

std::vector<Live> alive(std::size_t count, Live const& one = {.source_length = 10}) { return {count, one}; }

std::size_t admitted(Streaming const& schedule, std::size_t live, std::size_t waiting) {
  return schedule.admit(alive(live), std::vector<std::int32_t>(waiting, 10));
}

std::vector<std::int32_t> selected(Streaming const& schedule, std::vector<Live> const& live) {
  std::vector<std::int32_t> chosen;
  schedule.select(live, chosen);
  return chosen;
}

/// A Streaming whose promises are checked while it works.
struct Watched {
  struct Seen {
    std::size_t live = 0;        // at most
    std::int32_t age = 0;        // of anybody, at most
    std::int32_t fewer_age = 0;  // of those with less than 20 tokens
    std::size_t steps = 0, admissions_while_old = 0, over_capacity = 0, mixed = 0;
  };
  Streaming schedule;
  Seen* seen;

  void check() const { schedule.check(); }
  void adapt(Abilities const& abilities) { schedule.adapt(abilities); }
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    auto const count = schedule.admit(live, waiting);
    auto const old = std::ranges::any_of(live, [&](Live const& one) { return one.age > schedule.drain_after; });
    seen->admissions_while_old += count > 0 && schedule.drain_after > 0 && old;
    return count;
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    schedule.select(live, chosen);
    ++seen->steps;
    seen->live = std::max(seen->live, live.size());
    std::int32_t rows = 0, shortest = live[0].length;
    for (auto const& one : live) {
      seen->age = std::max(seen->age, one.age), shortest = std::min(shortest, one.length);
      if (one.length < 20) seen->fewer_age = std::max(seen->fewer_age, one.age);
    }
    for (auto const i : chosen) {
      rows += live[static_cast<std::size_t>(i)].rows;
      seen->mixed += live[static_cast<std::size_t>(i)].length != shortest;
    }
    seen->over_capacity += schedule.max_rows > 0 && rows > schedule.max_rows && chosen.size() > 1;
  }
};

/// A random schedule that makes sense.
Streaming random_schedule(std::mt19937_64& random) {
  auto const pick = [&](auto first, auto... more) {
    decltype(first) const values[]{first, static_cast<decltype(first)>(more)...};
    return values[random() % (1 + sizeof...(more))];
  };
  Streaming s{.size = pick(std::size_t{1}, 2, 3, 5, 8, 20),
              .refill_below = pick(0.0, 1.0 / 12, 1.0 / 6, 0.5, 0.9, 1.0),
              .order = pick(Order::automatic, Order::oldest_first, Order::shortest_only),
              .max_rows = pick(0, 0, 1, 3, 10),
              .drain_after = pick(500, 0, 1, 20),
              .refill = {.sentences = pick(std::size_t{0}, 0, 1, 3)}};
  if (random() % 4 == 0 && s.refill_below < 1) s.refill = {.source_tokens = pick(std::int64_t{1}, 5, 12)};
  return s;
}

}  // namespace

TEST_CASE("options of Streaming that make no sense are refused by name and value", "[streaming]") {
  auto const message = [](Streaming const& schedule) -> std::string {
    try {
      schedule.check();
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "";
  };
  auto const holds = [](std::string const& text, std::string const& name, std::string const& value) {
    INFO(text);
    return text.find(name) != std::string::npos && text.find(value) != std::string::npos;
  };
  CHECK(message({}).empty());
  CHECK(message({.refill_below = 0}).empty());
  CHECK(message({.refill_below = 1, .max_rows = 1, .drain_after = 0}).empty());
  CHECK(holds(message({.size = 0}), "size", "0"));
  CHECK(holds(message({.refill_below = -0.5}), "refill_below", "-0.5"));
  CHECK(holds(message({.refill_below = 1.5}), "refill_below", "1.5"));
  CHECK(holds(message({.refill_below = std::nan("")}), "refill_below", "nan"));
  CHECK(holds(message({.max_rows = -1}), "max_rows", "-1"));
  CHECK(holds(message({.drain_after = -7}), "drain_after", "-7"));
  CHECK(holds(message({.refill = {.source_tokens = -2}}), "source_tokens", "-2"));
  CHECK(holds(message({.refill_below = 1, .refill = {.source_tokens = 9}}), "refill_below", "1"));
  CHECK(holds(message({.refill = {.sentences = 4, .source_tokens = 9}}), "sentences", "4"));
  TableModel<everything> model(Table{});
  CHECK_THROWS_AS(Decoder(model, Greedy{}, Streaming{.size = 0}), std::invalid_argument);
}

TEST_CASE("a refill comes when so much is left, and brings so much", "[streaming]") {
  Streaming const sixth{.size = 12};
  CHECK(admitted(sixth, 0, 100) == 12);
  CHECK(admitted(sixth, 2, 100) == 10);  // 2 = 12 / 6
  CHECK(admitted(sixth, 3, 100) == 0);
  CHECK(admitted(sixth, 2, 0) == 0);
  Streaming const top_up{.size = 12, .refill_below = 0.5};
  CHECK(admitted(top_up, 7, 100) == 0);
  CHECK(admitted(top_up, 6, 100) == 6);
  Streaming const at_once{.size = 12, .refill_below = 1};
  CHECK(admitted(at_once, 11, 100) == 1);
  CHECK(admitted(at_once, 12, 100) == 0);
  Streaming const batches{.size = 12, .refill_below = 0};
  CHECK(admitted(batches, 1, 100) == 0);
  CHECK(admitted(batches, 0, 100) == 12);
  Streaming const portions{.size = 12, .refill_below = 0.5, .refill = {.sentences = 4}};
  CHECK(admitted(portions, 6, 100) == 4);
  CHECK(admitted(portions, 7, 100) == 0);
  CHECK(admitted({.size = 12, .refill_below = 1, .refill = {.sentences = 4}}, 10, 100) == 2);  // never more than size

  // In source tokens: a batch of 60 is n = 72 of epsilon = 1/6, so that 12 may be left.
  Streaming const tokens{.size = 100, .refill = {.source_tokens = 60}};
  auto const lengths = std::vector<std::int32_t>{10, 20, 30, 5, 70, 1};
  CHECK(tokens.admit({}, lengths) == 3);
  CHECK(tokens.admit(alive(1, {.source_length = 12}), lengths) == 3);
  CHECK(tokens.admit(alive(1, {.source_length = 13}), lengths) == 0);
  CHECK(tokens.admit({}, std::span(lengths).subspan(4)) == 1);  // longer than a batch
  CHECK(tokens.admit({}, std::span(lengths).subspan(3)) == 1);
}

TEST_CASE("no sentence is admitted while one is old", "[streaming]") {
  auto const waiting = std::vector<std::int32_t>(10, 1);
  auto live = alive(3);
  live[1].age = 500;
  CHECK(Streaming{.refill_below = 1}.admit(live, waiting) > 0);
  live[1].age = 501;
  CHECK(Streaming{.refill_below = 1}.admit(live, waiting) == 0);
  CHECK(Streaming{.refill_below = 1, .drain_after = 0}.admit(live, waiting) > 0);
  CHECK(Streaming{.refill_below = 1, .drain_after = 1000}.admit(live, waiting) > 0);
}

TEST_CASE("who steps", "[streaming]") {
  using Chosen = std::vector<std::int32_t>;
  std::vector<Live> const live{{.length = 7, .rows = 4},
                               {.length = 3, .rows = 2, .turn = 5},
                               {.length = 5, .rows = 3},
                               {.length = 3, .rows = 2, .turn = 1},
                               {.length = 3, .rows = 2, .turn = 2}};
  auto const with = [](Order order, std::int32_t max_rows) { return Streaming{.order = order, .max_rows = max_rows}; };
  CHECK(selected(with(Order::oldest_first, 0), live) == Chosen{0, 1, 2, 3, 4});
  CHECK(selected(with(Order::oldest_first, 9), live) == Chosen{0, 1, 2});
  CHECK(selected(with(Order::oldest_first, 8), live) == Chosen{0, 1});  // not 3, which would fit: no overtaking
  CHECK(selected(with(Order::oldest_first, 1), live) == Chosen{0});     // the first always runs
  CHECK(selected(with(Order::shortest_only, 0), live) == Chosen{1, 3, 4});
  CHECK(selected(with(Order::shortest_only, 4), live) == Chosen{3, 4});  // those that stepped last
  CHECK(selected(with(Order::shortest_only, 3), live) == Chosen{3});
  CHECK(selected(with(Order::shortest_only, 1), live) == Chosen{3});

  Streaming schedule;
  schedule.adapt({.ragged = true});
  CHECK(schedule.order == Order::oldest_first);
  schedule = {};
  schedule.adapt({});
  CHECK(schedule.order == Order::shortest_only);
  schedule.order = Order::oldest_first;
  schedule.adapt({});
  CHECK(schedule.order == Order::oldest_first);
}

// The property for one search: whatever the schedule and the model's abilities, each request has the result that it has
// alone; nothing is run twice; the schedule keeps its promises.
template <class S, class Make>
void check_schedules(std::uint64_t seed, int rounds, Make&& make_search) {
  std::mt19937_64 random(seed);
  for (auto round = 0; round < times(rounds); ++round) {
    auto const table = random_table(random, 6 + static_cast<std::int32_t>(random() % 10));
    S const search = make_search(random);
    std::vector<TableRequest<S>> requests(1 + random() % 40);
    for (auto& r : requests) {
      r.source = random() % 1000;
      r.seed = random();
      if (random() % 4 == 0) r.prompt = {bos, 3, 4};
      if (random() % 4 == 0) r.prefix = {3, 5};
      if (random() % 30 == 0) r.prefix = {99};  // makes no sense
    }
    TableOptions const options{.length_modulus = 9};
    Counters batched;
    auto const expected = run<everything>(table, requests, search, Batched{requests.size()}, options, &batched);
    for (auto trial = 0; trial < 4; ++trial) {
      Watched::Seen seen;
      Watched const watched{random_schedule(random), &seen};
      INFO("round " << round << ", size " << watched.schedule.size << ", refill below " << watched.schedule.refill_below
                    << ", max_rows " << watched.schedule.max_rows << ", drain after " << watched.schedule.drain_after);
      Counters counters;
      auto const compare = [&]<Abilities A>() {
        auto const results = run<A>(table, requests, search, watched, options, &counters);
        for (std::size_t i = 0; i < results.size(); ++i) {
          INFO("request " << i);
          REQUIRE(identical(results[i], expected[i]));
        }
        if (!A.ragged && watched.schedule.order == Order::automatic) CHECK(seen.mixed == 0);
      };
      switch (random() % 3) {
        case 0: compare.template operator()<plain>(); break;
        case 1: compare.template operator()<Abilities{.ragged = true}>(); break;
        default: compare.template operator()<everything>(); CHECK(counters.rows == batched.rows);
      }
      CHECK(counters.sources == batched.sources);
      CHECK(seen.live <= watched.schedule.size);
      CHECK(seen.over_capacity == 0);
      CHECK(seen.admissions_while_old == 0);
    }
  }
}

TEST_CASE("no schedule changes a result: greedy and beams", "[streaming]") {
  auto const max = [](auto& random) { return 4 + static_cast<std::int32_t>(random() % 20); };
  auto const width = [](auto& random) { return 1 + static_cast<std::int32_t>(random() % 6); };
  check_schedules<Greedy>(1, 400, [&](auto& random) { return Greedy{.length = {.max = max(random)}}; });
  check_schedules<BeamSearch>(2, 350, [&](auto& random) {
    auto const k = width(random);
    return BeamSearch{.width = k,
                      .n_best = 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(k)),
                      .length = {.max = max(random)}};
  });
  check_schedules<BeamSearch>(3, 450, [&](auto& random) {
    auto const k = width(random);
    auto search = presets::varstream(k, 0.5 + static_cast<double>(random() % 50) / 10,
                                     1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(k)));
    search.n_best = k, search.length.max = max(random);
    return search;
  });
  check_schedules<BeamSearch>(4, 350, [&](auto& random) {
    auto const k = width(random);
    auto search = random() % 2 == 0 ? presets::marian(k) : presets::ctranslate2(k);
    search.length.max = max(random);
    return search;
  });
}

TEST_CASE("no schedule changes a result: samples, diverse beams, rules", "[streaming]") {
  check_schedules<Sample>(5, 250, [](auto& random) {
    return Sample{.samples = 1 + static_cast<std::int32_t>(random() % 4), .length = {.max = 15}};
  });
  check_schedules<StochasticBeam>(6, 150, [](auto& random) {
    return StochasticBeam{.width = 1 + static_cast<std::int32_t>(random() % 4), .length = {.max = 12}};
  });
  check_schedules<DiverseBeamSearch>(7, 60, [](auto&) {
    return DiverseBeamSearch{.search = {.width = 2, .n_best = 2, .length = {.max = 10}}, .groups = 2, .n_best = 3};
  });
  check_schedules<Processed<BeamSearch>>(8, 80, [](auto&) {
    return Processed{BeamSearch{.width = 3, .length = {.max = 14}}, NoRepeatNgram{2}};
  });
}

TEST_CASE("nothing left to refill is Batched, step for step", "[streaming]") {
  Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
  TableModel<everything> model(table);
  for (std::size_t const size : {1u, 7u, 64u}) {
    Decoder batched(model, Greedy{}, Batched{.size = size});
    Decoder streaming(model, Greedy{}, Streaming{.size = size, .refill_below = 0});
    for (std::uint64_t i = 0; i < 200; ++i) batched.submit({.source = i}), streaming.submit({.source = i});
    for (auto more = true; more;) {
      more = batched.step();
      CHECK(streaming.step() == more);
      CHECK(streaming.running() == batched.running());
    }
    CHECK(streaming.statistics().rows_histogram == batched.statistics().rows_histogram);
  }
}

TEST_CASE("refilling at once keeps the batch full until the input ends", "[streaming]") {
  Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
  TableModel<everything> model(table);
  Decoder decoder(model, Greedy{}, Streaming{.size = 16, .refill_below = 1});
  for (std::uint64_t i = 0; i < 300; ++i) decoder.submit({.source = i});
  for (;;) {
    auto const rows = decoder.statistics().rows;
    if (!decoder.step()) break;
    if (decoder.waiting() > 0) CHECK(decoder.statistics().rows - rows == 16);
  }
  CHECK(decoder.statistics().sentences == 300);
}

TEST_CASE("a long sentence in a long stream waits no longer than the guard", "[streaming]") {
  Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
  TableModel<everything> model(table);
  auto const search = Greedy{.length = {.max = 10}};
  struct Outcome {
    Watched::Seen seen;
    std::size_t end = 0;  // step in which the long one ended
    std::size_t steps = 0;
  };
  auto const outcome = [&](Order order, std::int32_t drain_after) {
    Outcome o;
    Decoder decoder(model, search, Watched{{.size = 12, .order = order, .drain_after = drain_after}, &o.seen});
    for (std::uint64_t i = 0; i < 5000; ++i) {
      auto const long_one = i == 3;
      decoder.submit(
          {.source = i, .search = Greedy{.length = {.min = long_one ? 300 : 1, .max = long_one ? 300 : 10}}});
    }
    for (Result result; decoder.step(); ++o.steps)
      while (decoder.poll(result)) {
        CHECK(result.ok());
        if (result.id == 3) o.end = o.steps;
      }
    CHECK(decoder.statistics().sentences == 5000);
    return o;
  };
  auto const starved = outcome(Order::shortest_only, 0);
  auto const guarded = outcome(Order::shortest_only, 50);
  CHECK(starved.end + 1 == starved.steps);  // the paper: it waits for the end of the input
  CHECK(guarded.end < 50 + 300 + 50);
  CHECK(guarded.seen.fewer_age < 50 + 50);  // as do all others: steps until the guard, and until those alive have ended
  CHECK(guarded.seen.age < 50 + 300 + 50);
  auto const fifo = outcome(Order::oldest_first, 50);
  CHECK(fifo.end == 299);
  CHECK(fifo.seen.fewer_age < 20);
}

TEST_CASE("each request is answered once, whatever is cancelled or fails", "[streaming]") {
  std::mt19937_64 random(11);
  for (auto round = 0; round < times(100); ++round) {
    auto const table = random_table(random, 9);
    TableModel<everything> sound(table);
    BeamSearch const search{.width = 3, .length = {.max = 12}};
    Decoder decoder(sound, search, random_schedule(random));
    std::vector<int> answers;
    std::vector<Result> results;
    std::vector<std::uint64_t> sources;
    auto const collect = [&] {
      for (Result result; decoder.poll(result);) {
        ++answers.at(result.id);
        results.at(result.id) = result;
      }
    };
    for (auto turn = 0; turn < 60; ++turn) {
      for (auto n = random() % 4; n > 0; --n) {
        sources.push_back(random() % 100);
        decoder.submit({.source = sources.back()});
        answers.push_back(0), results.emplace_back();
      }
      if (!answers.empty() && random() % 3 == 0) decoder.cancel(random() % answers.size());
      decoder.step();
      collect();
    }
    while (decoder.step()) {
    }
    collect();
    CHECK(std::ranges::all_of(answers, [](int n) { return n == 1; }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok()) CHECK(identical(results[i], run_one(table, sources[i], search)));
      else CHECK(results[i].failure == Failure::cancelled);
    }
  }
}
