// SPDX-License-Identifier: Apache-2.0
#include <sluice/model/paged_cache.hpp>

#include <support/catch.hpp>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

using namespace sluice;

namespace {

/// A cache beside the plain thing that it stands for: every slot with its own copy of its numbers.
template <class T>
struct Pair {
  static constexpr std::int32_t page = 4;
  static constexpr std::size_t elements = 3;
  PagedCache<T> cache;
  std::vector<std::vector<T>> copies;

  explicit Pair(std::size_t slots, std::int32_t max_pages = 0)
      : cache({.elements_per_position = elements, .positions_per_page = page, .max_pages = max_pages}), copies(slots) {}

  std::vector<T>& copy(Slot slot) { return copies[static_cast<std::size_t>(slot)]; }
  std::int32_t length(Slot slot) { return static_cast<std::int32_t>(copy(slot).size() / elements); }

  void append(Slot slot, T value) {
    auto const place = cache.append(slot);
    for (std::size_t i = 0; i < elements; ++i) {
      place.page[static_cast<std::size_t>(place.position) * elements + i] = value;
      copy(slot).push_back(value);
    }
  }
  void fork(Slot from, Slot to, std::int32_t length) {
    cache.fork(from, to, length);
    auto prefix = copy(from);
    prefix.resize(static_cast<std::size_t>(length) * elements);
    copy(to) = prefix;
  }
  void truncate(Slot slot, std::int32_t length) {
    cache.truncate(slot, length);
    copy(slot).resize(static_cast<std::size_t>(length) * elements);
  }
  void release(Slot slot) { cache.release(slot), copy(slot).clear(); }

  bool same(Slot slot) {
    std::vector<T const*> pages;
    cache.pages(slot, pages);
    if (cache.length(slot) != length(slot) || std::ssize(pages) != (length(slot) + page - 1) / page) return false;
    std::vector<T> numbers;
    for (auto const* const p : pages) numbers.insert(numbers.end(), p, p + page * static_cast<std::int32_t>(elements));
    numbers.resize(copy(slot).size());
    return numbers == copy(slot);
  }
  bool same() {
    for (std::size_t i = 0; i < copies.size(); ++i)
      if (!same(static_cast<Slot>(i))) return false;
    return true;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("whatever is forked, cut, appended and released, no slot sees another", "[paged_cache]", float,
                   std::uint16_t) {
  auto const seed = GENERATE(range(0u, 8u));
  INFO("seed " << seed);
  std::mt19937 random(seed);
  auto const below = [&](std::int32_t n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  constexpr std::int32_t slots = 7;
  Pair<TestType> pair(slots);
  std::uint16_t value = 0;
  for (int i = 0; i < 3000; ++i) {
    auto const slot = below(slots);
    switch (below(8)) {
      case 0: pair.release(slot); break;
      case 1: pair.truncate(slot, below(pair.length(slot) + 1)); break;
      case 2: pair.fork(slot, below(slots), below(pair.length(slot) + 1)); break;
      case 3: pair.fork(slot, below(slots), pair.length(slot)); break;
      default: pair.append(slot, static_cast<TestType>(++value));
    }
    REQUIRE(pair.same());
  }
  CHECK(pair.cache.use().copies > 0);
  for (Slot slot = 0; slot < slots; ++slot) pair.release(slot);
  auto const use = pair.cache.use();
  CHECK(use.pages == 0);
  CHECK(use.peak == use.allocated);  // freed pages were used again
  CHECK(use.bytes == static_cast<std::size_t>(use.allocated) * 4 * 3 * sizeof(TestType));
}

TEST_CASE("a fork shares, and the first to append copies", "[paged_cache]") {
  auto const length = GENERATE(1, 3, 4, 5, 8);
  INFO("length " << length);
  Pair<float> pair(3);
  for (std::int32_t i = 0; i < length; ++i) pair.append(0, static_cast<float>(i));
  auto const pages = pair.cache.use().pages;
  pair.fork(0, 1, length);
  pair.fork(0, 2, length);
  CHECK(pair.cache.use().pages == pages);
  CHECK(pair.cache.use().copies == 0);
  pair.append(1, 100);
  pair.append(0, 200);
  pair.append(2, 300);  // nobody else is left in the page
  CHECK(pair.same());
  CHECK(pair.cache.use().copies == (length % 4 == 0 ? 0 : 2));
  CHECK(pair.cache.use().forks == 2);
}

TEST_CASE("a roll-back into a shared page copies at the next append", "[paged_cache]") {
  Pair<float> pair(2);
  for (std::int32_t i = 0; i < 7; ++i) pair.append(0, static_cast<float>(i));
  pair.fork(0, 1, 7);
  pair.truncate(1, 2);
  CHECK(pair.cache.use().copies == 0);
  pair.append(1, 50);
  CHECK(pair.cache.use().copies == 1);
  CHECK(pair.same());
  pair.truncate(0, 4);  // drops its second page alone
  pair.append(0, 60);
  CHECK(pair.cache.use().copies == 1);
  CHECK(pair.same());
}

TEST_CASE("a model may say how its pages are copied", "[paged_cache]") {
  PagedCache<float> cache({.elements_per_position = 2, .positions_per_page = 4});
  auto const unused = [](std::span<float const>, std::span<float>, std::int32_t) { FAIL("no page is shared"); };
  for (int i = 0; i < 3; ++i) {
    auto const place = cache.append(0, unused);
    place.page[static_cast<std::size_t>(place.position)] = static_cast<float>(i);       // the first numbers of all
    place.page[4 + static_cast<std::size_t>(place.position)] = static_cast<float>(-i);  // positions, then the second
  }
  cache.fork(0, 1, 2);
  int calls = 0;
  auto const place = cache.append(1, [&](std::span<float const> from, std::span<float> to, std::int32_t filled) {
    ++calls;
    CHECK(filled == 2);
    for (std::size_t i = 0; i < 2; ++i) to[i] = from[i], to[4 + i] = from[4 + i];
  });
  CHECK(calls == 1);
  CHECK(place.position == 2);
  CHECK(place.page[1] == 1);
  CHECK(place.page[5] == -1);
}

TEST_CASE("a bounded cache says when it is full, and goes on after", "[paged_cache]") {
  Pair<float> pair(3, 3);
  for (std::int32_t i = 0; i < 8; ++i) pair.append(0, static_cast<float>(i));
  pair.append(1, 1);
  CHECK_THROWS_AS(pair.cache.append(2), std::length_error);
  CHECK_THROWS_AS(pair.cache.append(0), std::length_error);
  pair.fork(0, 2, 7);
  CHECK_THROWS_AS(pair.cache.append(2), std::length_error);  // would need a copy
  CHECK(pair.same());
  pair.release(1);
  pair.append(2, 5);
  CHECK(pair.same());
  CHECK(pair.cache.use().peak == 3);
}

TEST_CASE("pages that nobody uses go back", "[paged_cache]") {
  Pair<float> pair(2, 3);
  for (std::int32_t i = 0; i < 8; ++i) pair.append(0, static_cast<float>(i));
  pair.fork(0, 1, 6);
  pair.release(0);
  pair.cache.trim();  // one is in use
  CHECK(pair.cache.use().allocated == 2);
  CHECK(pair.same());
  pair.release(1);
  pair.cache.trim();
  CHECK((pair.cache.use().allocated == 0 && pair.cache.use().bytes == 0 && pair.cache.use().peak == 2));
  for (std::int32_t i = 0; i < 9; ++i) pair.append(1, static_cast<float>(-i));
  CHECK(pair.same());
  CHECK((pair.cache.use().allocated == 3 && pair.cache.use().pages == 3));
}

TEST_CASE("senseless calls are refused", "[paged_cache]") {
  CHECK_THROWS_AS(PagedCache<float>({.elements_per_position = 0}), std::invalid_argument);
  CHECK_THROWS_AS(PagedCache<float>({.elements_per_position = 1, .positions_per_page = 0}), std::invalid_argument);
  CHECK_THROWS_AS(PagedCache<float>({.elements_per_position = 1, .max_pages = -1}), std::invalid_argument);
  PagedCache<float> cache({.elements_per_position = 1});
  CHECK_THROWS_AS(cache.fork(0, 1, 1), std::invalid_argument);
  CHECK_THROWS_AS(cache.truncate(0, -1), std::invalid_argument);
  CHECK_THROWS_AS(cache.append(-1), std::invalid_argument);
  CHECK_NOTHROW(cache.release(1000));
  CHECK(cache.length(1000) == 0);
}
