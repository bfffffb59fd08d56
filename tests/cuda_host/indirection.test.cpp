// SPDX-License-Identifier: Apache-2.0
// The device's program of CacheIndirection, run on an emulated device, and the host's books of it.
#include <sluice/cuda/cache/detail/indirection_books.cuh>

#include <support/catch.hpp>
#include <support/emulated_caches.hpp>
#include <support/emulated_device.hpp>
#include <support/random_steps.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a cache behind an indirection holds what a copied one holds", "[cuda]") {
  EmulatedDevice<EmulatedCache::threads> device;
  device.racing = true;
  int others = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto const width = std::array{1, 2, 5, 7, 40, 70}[seed % 6];
    auto const slots = std::max(12, width) + (seed % 4 == 0 ? 3 : 0);  // the last group may be smaller
    auto const positions = std::array{31, 63, 100}[seed % 5 % 3];
    INFO("seed " << seed << ", width " << width << ", slots " << slots);
    EmulatedCache cache({slots, positions, width});
    RandomSteps steps(seed, slots, width, positions);
    for (int i = 0; i < 20; ++i) {
      INFO("step " << i);
      steps.next();
      cache.step(device, steps.released, steps.rows, seed + static_cast<std::uint64_t>(i));
      for (Slot slot = 0; slot < slots; ++slot) REQUIRE(cache.holds(slot, steps.tokens[slot]));
    }
    others += cache.others();
  }
  CHECK(device.failure() == "");
  CHECK(others > 100);
}

TEST_CASE("a beam without roll-backs writes to its slots' own memory", "[cuda]") {
  EmulatedDevice<EmulatedCache::threads> device;
  EmulatedCache cache({4, 40, 4});
  detail::SlotTokens tokens;
  std::vector<Token> const fed{1, 2, 3, 4};
  auto const token = [&](std::size_t i) { return std::span(fed).subspan(i, 1); };
  std::vector<Row> const opening{{0, 0, 0, token(0)}};
  cache.step(device, {}, opening, 1), tokens.apply(opening);
  for (std::int32_t length = 1; length < 40; ++length) {
    auto const stays = length % 4;
    std::vector<Row> rows;
    for (Slot slot = 0; slot < 4; ++slot)
      rows.push_back({length == 1               ? 0
                      : slot == (stays + 1) % 4 ? stays
                                                : slot,
                      slot, length, token(static_cast<std::size_t>(slot))});
    cache.step(device, {}, rows, static_cast<std::uint64_t>(length)), tokens.apply(rows);
    for (Slot slot = 0; slot < 4; ++slot) REQUIRE(cache.holds(slot, tokens[slot]));
  }
  CHECK(cache.others() == 0);
}

TEST_CASE("memory that a fork still reads is left alone, and that of another slot found", "[cuda]") {
  EmulatedDevice<EmulatedCache::threads> device;
  EmulatedCache cache({40, 8, 40});
  detail::SlotTokens tokens;
  Token token = 0;
  std::vector<Row> rows;
  std::vector<Token> fed(41);
  for (auto& t : fed) t = ++token;
  auto const step = [&] { cache.step(device, {}, rows, 1), tokens.apply(rows); };
  for (Slot slot = 0; slot < 40; ++slot)
    rows.push_back({slot, slot, 0, std::span(fed).subspan(static_cast<std::size_t>(slot), 1)});
  step();
  rows = {{0, 39, 1, std::span(fed).first(1)}};  // slot 39 reads slot 0's, so its own is free
  step();
  CHECK(cache.others() == 0);
  rows = {{0, 0, 0, std::span(fed).last(1)}};
  step();
  CHECK(cache.others() == 1);
  for (Slot slot = 0; slot < 40; ++slot) CHECK(cache.holds(slot, tokens[slot]));
}

TEST_CASE("every barrier of the device's indirection is missed", "[cuda]") {
  EmulatedDevice<EmulatedCache::threads> device;
  auto const missed = [&](cuda::detail::Barrier barrier) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      EmulatedCache cache({40, 60, 40});
      RandomSteps steps(seed, 40, 40, 60);
      for (int i = 0; i < 60; ++i) {
        steps.next();
        cache.step(device, steps.released, steps.rows, seed, {.skipped = barrier});
        for (Slot slot = 0; slot < 40; ++slot)
          if (!cache.holds(slot, steps.tokens[slot])) return true;
      }
    }
    return false;
  };
  for (auto const barrier : {cuda::detail::Barrier::forked, cuda::detail::Barrier::free, cuda::detail::Barrier::used,
                             cuda::detail::Barrier::own}) {
    INFO("barrier " << static_cast<int>(barrier));
    device = {};
    device.racing = true;
    CHECK(missed(barrier));
    CHECK(device.has_seen(barrier));
  }
}

TEST_CASE("the books of an indirection refuse what no model is given", "[cuda]") {
  using cuda::detail::IndirectionBooks;
  CHECK_THROWS_AS(IndirectionBooks({0, 10, 1}), std::invalid_argument);
  CHECK_THROWS_AS(IndirectionBooks({1, 0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(IndirectionBooks({1, 10, 0}), std::invalid_argument);
  CHECK_THROWS_AS(IndirectionBooks({2000, 10, 1025}), std::invalid_argument);
  IndirectionBooks books({6, 10, 3});
  std::vector<Token> const fed(11);
  auto const tokens = [&](std::size_t n) { return std::span(fed).first(n); };
  auto const step = [&](std::vector<Row> const& rows) { books.step(rows); };
  step({{0, 0, 0, tokens(4)}});
  CHECK_THROWS_AS(step({{0, 6, 1, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{-1, 0, 0, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_WITH(step({{0, 3, 1, tokens(1)}}),
                    "sluice: CacheIndirection: row.from = 0: is not in the group of row.to");
  CHECK_THROWS_AS(step({{0, 0, 5, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{0, 0, 4, tokens(7)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{0, 1, 4, tokens(1)}, {0, 1, 4, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{1, 0, 0, tokens(1)}, {0, 1, 4, tokens(1)}}), std::invalid_argument);  // a swap
  CHECK(books.length(0) == 4);
  CHECK(books.length(1) == 0);
  CHECK_NOTHROW(step({{0, 0, 4, tokens(6)}}));
  CHECK(books.active() == 10);
  books.done();
  books.release(0);
  CHECK(books.active() == 10);
  CHECK_NOTHROW(books.release(100));
}
