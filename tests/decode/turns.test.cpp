// SPDX-License-Identifier: Apache-2.0
// Schedules that want to see some, choose the youngest, or look at turns; models and searches that throw where few do.
#include <sluice/core/error.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const turned{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};
Greedy const greedy{.length = {.min = 2, .max = 9}};

/// Lets in a few at random and chooses some at random; holds what it is told of turns against a list.
struct Turning {
  struct Seen {
    std::mt19937_64 random{5};
    std::vector<std::size_t> list{};  // whose turn it is, by place among the live
    std::size_t wrong = 0, steps = 0;
  };
  Seen* seen;

  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    return live.empty() ? 1 : std::min<std::size_t>(waiting.size(), seen->random() % 2);
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    auto& [random, list, wrong, steps] = *seen;
    while (list.size() < live.size()) list.push_back(list.size());
    ++steps;
    std::vector<std::size_t> order(list.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return live[i].turn; });
    wrong += order != list;
    for (std::size_t i = 0; i < live.size(); ++i)
      if (random() % 3 == 0) chosen.push_back(static_cast<std::int32_t>(i));
    if (chosen.empty()) chosen.push_back(0);
    auto const steps_now = [&](std::size_t i) { return std::ranges::count(chosen, static_cast<std::int32_t>(i)) > 0; };
    auto others = list;
    std::erase_if(others, steps_now);
    std::erase_if(list, [&](std::size_t i) { return !steps_now(i); });
    list.insert(list.end(), others.begin(), others.end());
  }
};

/// Begins with four, or not at all.
struct FourAtOnce {
  static std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) {
    return live.empty() && waiting.size() >= 4 ? 4 : 0;
  }
  static void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) {
    for (std::size_t i = 0; i < live.size(); ++i) chosen.push_back(static_cast<std::int32_t>(i));
  }
};

/// Steps the youngest alone, or the two youngest.
struct YoungestFirst {
  std::size_t count = 1;
  static std::size_t admit(std::span<Live const>, std::span<std::int32_t const> waiting) { return waiting.size(); }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    for (auto i = live.size() - std::min(count, live.size()); i < live.size(); ++i)
      chosen.push_back(static_cast<std::int32_t>(i));
  }
};

/// Greedy whose progress cannot be told, from some length on.
struct Vague : Greedy {
  std::size_t until = 99;
  Progress progress(State const& s) const {
    if (s.tokens.size() >= until) throw std::runtime_error("no progress");
    return Greedy::progress(s);
  }
};

/// A table that has no room to start more than three.
class Narrow : public TableModel<everything> {
 public:
  Narrow() : TableModel<everything>(turned) {}
  void start(std::span<std::uint64_t const* const> sources, std::span<Slot const> slots) {
    for (auto const slot : slots)
      if (slot >= 3) throw NoRoom("three are enough");
    TableModel<everything>::start(sources, slots);
  }
};

}  // namespace

TEST_CASE("those that step move to the front of the turns, and newcomers to the end", "[decoder]") {
  Table const endless{.size = 12, .has_eos = false};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    TableModel<everything> model(endless);
    Turning::Seen seen{.random = std::mt19937_64(seed)};
    Decoder decoder(model, Greedy{.length = {.max = 1 << 20}}, Turning{&seen});
    for (std::uint64_t i = 0; i < 12; ++i) decoder.submit({.source = i});
    for (int step = 0; step < 50; ++step) REQUIRE(decoder.step());
    CHECK(seen.list.size() == 12);
    CHECK(seen.steps == 50);
    CHECK(seen.wrong == 0);
  }
}

TEST_CASE("a schedule that cannot begin with what it sees is shown more", "[decode_each]") {
  TableModel<everything> model(turned);
  auto const inputs = std::views::iota(std::uint64_t{0}, std::uint64_t{24});
  for (std::size_t const window : {0u, 1u, 5u}) {
    std::size_t count = 0;
    decode_each(
        model, inputs | std::views::filter([](std::uint64_t) { return true; }), greedy,
        [&](Result&& result) { CHECK(identical(result, run_one(turned, count++, greedy))); }, FourAtOnce{}, {},
        Intake{.window = window});
    INFO("window " << window);
    CHECK(count == 24);
  }
}

TEST_CASE("whoever waits for the beginning of a prompt does not keep others from stepping", "[cache budget]") {
  for (std::size_t const count : {1u, 2u, 3u}) {
    std::vector<Request<EmptySource, Greedy>> requests(6);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].prompt.assign(20, 4);
      requests[i].prompt.push_back(static_cast<Token>(3 + i));
    }
    CellModel<everything> model(turned, 1 << 20, false), plain_model(turned, 1 << 20, false);
    auto const expected = decode(plain_model, requests, greedy);
    auto const results =
        decode(model, requests, greedy, YoungestFirst{count}, LogSoftmaxTopK{}, Intake{.shared_tokens = 500});
    REQUIRE(results.size() == requests.size());
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(identical(results[i], expected[i]));
    CHECK(model.fed < plain_model.fed);
  }
}

TEST_CASE("a search whose progress throws fails alone", "[decoder]") {
  std::vector<TableRequest<Vague>> requests;
  for (std::uint64_t i = 0; i < 9; ++i)
    requests.push_back({.source = i, .search = Vague{greedy, i % 3 == 1 ? i / 3 : 99}});
  auto const results = run(everything, turned, requests, Vague{});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i % 3 != 1) CHECK(identical(results[i], run_one(turned, i, greedy)));
    else CHECK((results[i].failure == Failure::search && results[i].message == "no progress"));
  }
}

TEST_CASE("who cannot be started for want of room waits until somebody has ended", "[cache budget]") {
  Narrow model;
  std::vector<std::uint64_t> sources(10);
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = i;
  auto const results = decode(model, sources, greedy, Batched{.size = 5});
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO(results[i].message);
    CHECK(identical(results[i], run_one(turned, i, greedy)));
  }
}

TEST_CASE("an expander for another vocabulary is refused", "[decoder]") {
  struct Other : LogSoftmaxTopK {
    std::int32_t vocabulary_size() const { return size; }
    std::int32_t size = 12;
  };
  TableModel<everything> model(turned);
  CHECK_NOTHROW(decode(model, std::vector<std::uint64_t>{1}, greedy, Batched{}, Other{}));
  Other other;
  other.size = 11;
  CHECK_THROWS_MATCHES(decode(model, std::vector<std::uint64_t>{1}, greedy, Batched{}, other), std::invalid_argument,
                       Message("sluice: projection.vocabulary_size = 11: the model's vocabulary has 12"));
}
