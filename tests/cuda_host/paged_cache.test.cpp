// SPDX-License-Identifier: Apache-2.0
// The books and the program of cuda::PagedCache, over memory of the host, on an emulated device.
#include <sluice/cuda/cache/detail/page_books.cuh>
#include <sluice/model/paged_cache.hpp>

#include <support/catch.hpp>
#include <support/emulated_caches.hpp>
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

namespace {

/// The same steps for the host's cache.
template <class T>
void step(PagedCache<T>& cache, std::span<Slot const> released, std::span<Row const> rows) {
  for (auto const slot : released) cache.release(slot);
  for (auto const& row : rows)
    if (row.from != row.to) cache.fork(row.from, row.to, row.length);
  for (auto const& row : rows) cache.truncate(row.to, row.length);
  for (auto const& row : rows)
    for (auto n = row.tokens.size(); n > 0; --n) cache.append(row.to);
}

}  // namespace

TEMPLATE_TEST_CASE("pages on a device hold what the host's hold, in the same number", "[cuda]", float, std::uint8_t) {
  std::size_t copies = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto const slots = std::array{1, 5, 12}[seed % 3];
    cuda::PagedCacheOptions options{.elements_per_position = seed % 4 == 3 ? 96u : 6u,
                                    .positions_per_page = seed % 2 == 0 ? 16 : 8,
                                    .planes = std::array{1, 2, 3}[seed / 2 % 3],
                                    .max_pages = 200,
                                    .max_rows = slots,
                                    .max_length = 100};
    if (options.plane_size() * sizeof(TestType) % 16 != 0) options.planes = 1, options.positions_per_page = 8;
    INFO("seed " << seed << ", slots " << slots << ", planes " << options.planes);
    EmulatedPages<TestType> pages(options);
    PagedCache<TestType> host(
        {.elements_per_position = options.elements_per_position, .positions_per_page = options.positions_per_page});
    RandomSteps steps(seed, slots, slots, 100);
    std::vector<Slot> all;
    for (Slot slot = 0; slot < slots; ++slot) all.push_back(slot);
    for (int i = 0; i < 80; ++i) {
      INFO("step " << i);
      steps.next();
      for (auto const slot : steps.released) pages.books.release(slot);
      pages.step(steps.rows, seed + static_cast<std::uint64_t>(i));
      step(host, steps.released, steps.rows);
      for (std::size_t row = 0; row < steps.rows.size(); ++row)
        REQUIRE(pages.holds(static_cast<std::int32_t>(row), steps.tokens[steps.rows[row].to]));
      copies += pages.books.copies().size();
      pages.books.list(all);
      for (auto const slot : all) REQUIRE(pages.holds(slot, steps.tokens[slot]));
      auto const mine = pages.books.table().use(), its = host.use();
      REQUIRE(std::array{mine.pages, mine.peak, mine.allocated} == std::array{its.pages, its.peak, its.allocated});
      REQUIRE(std::array{mine.forks, mine.copies} == std::array{its.forks, its.copies});
      REQUIRE(mine.bytes == its.bytes);
    }
    for (auto const slot : all) pages.books.release(slot);
    CHECK(pages.books.table().use().pages == 0);
    CHECK(pages.device.failure() == "");
  }
  CHECK(copies > 500);
}

TEST_CASE("copies of a step read no page that another of them writes", "[cuda]") {
  cuda::detail::PageBooks books(
      {.elements_per_position = 4, .positions_per_page = 4, .max_pages = 30, .max_rows = 9, .max_length = 40}, 4);
  RandomSteps steps(5, 9, 9, 40);
  int full = 0, copies = 0;
  for (int i = 0; i < 500; ++i) {
    steps.next();
    for (auto const slot : steps.released) books.release(slot);
    try {
      books.step(steps.rows);
    } catch (std::length_error const&) {  // these slots hold anything: what begins them anew has to work
      for (auto const& row : steps.rows) books.release(row.to), steps.tokens.clear(row.to);
      ++full;
      continue;
    }
    std::vector<std::int32_t> written;
    for (auto const& copy : books.copies()) written.push_back(copy.to);
    std::ranges::sort(written);
    CHECK(std::ranges::adjacent_find(written) == written.end());
    for (auto const& copy : books.copies()) CHECK(!std::ranges::binary_search(written, copy.from));
    copies += static_cast<int>(written.size());
  }
  CHECK(full > 2);
  CHECK(copies > 100);
}

TEST_CASE("the books of pages refuse what makes no sense, and say when they are full", "[cuda]") {
  using Options = cuda::PagedCacheOptions;
  auto const make = [](auto change) {
    Options options{
        .elements_per_position = 8, .positions_per_page = 4, .max_pages = 3, .max_rows = 2, .max_length = 12};
    change(options);
    return cuda::detail::PageBooks(options, 2);
  };
  CHECK_THROWS_AS(make([](Options& o) { o.elements_per_position = 0; }), std::invalid_argument);
  CHECK_THROWS_AS(make([](Options& o) { o.positions_per_page = 0; }), std::invalid_argument);
  CHECK_THROWS_AS(make([](Options& o) { o.planes = 3; }), std::invalid_argument);
  CHECK_THROWS_AS(make([](Options& o) { o.planes = 0; }), std::invalid_argument);
  CHECK_THROWS_WITH(make([](Options& o) { o.planes = 8; }),
                    "sluice: PagedCache: bytes of a plane = 8: must be a multiple of 16");
  CHECK_THROWS_AS(make([](Options& o) { o.max_pages = 0; }), std::invalid_argument);
  CHECK_THROWS_AS(make([](Options& o) { o.max_rows = 0; }), std::invalid_argument);
  CHECK_THROWS_AS(make([](Options& o) { o.max_length = 0; }), std::invalid_argument);

  auto books = make([](Options&) {});
  std::vector<Token> const fed(13);
  auto const tokens = [&](std::size_t n) { return std::span(fed).first(n); };
  auto const step = [&](std::vector<Row> const& rows) { books.step(rows); };
  CHECK_THROWS_AS(step({{0, 0, 0, tokens(13)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{0, 0, 1, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{0, 0, 0, tokens(1)}, {1, 1, 0, tokens(1)}, {2, 2, 0, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{1, 0, 0, tokens(1)}, {0, 1, 0, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{-1, 0, 0, tokens(1)}}), std::invalid_argument);
  CHECK_THROWS_AS(step({{0, 0, 0, {}}}), std::invalid_argument);
  CHECK(books.table().use().pages == 0);
  step({{0, 0, 0, tokens(6)}, {1, 1, 0, tokens(2)}});
  CHECK_THROWS_WITH(step({{0, 1, 6, tokens(4)}}), "sluice: PagedCache: all 3 pages are in use");
  books.release(1);
  CHECK_NOTHROW(step({{0, 1, 6, tokens(2)}}));
  CHECK(books.copies().size() == 1);
}
