// SPDX-License-Identifier: Apache-2.0
// What loops over whole vectors and words of a line, against plain loops.
#include <sluice/output/detail/line/line_counts.hpp>
#include <sluice/output/detail/line/line_norm.hpp>

#include <support/catch.hpp>
#include <support/fenced.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();
constexpr float infinite = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("counts of what is good enough are those of a plain loop, and nothing beyond the line is read", "[line]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    auto values = drawn_line(random, seed);
    if (seed % 7 == 0) values[below(random, values.size())] = std::numeric_limits<float>::lowest();
    Fenced<float> const fenced(values, seed % 2 == 0);
    std::span<float const> const line(fenced.data(), values.size());
    auto const best = *std::max_element(values.begin(), values.end());
    INFO("seed " << seed << ", V = " << values.size());
    CHECK(detail::largest(line) == best);
    auto const from = [&](double bar) {
      return static_cast<std::size_t>(
          std::ranges::count_if(values, [&](float x) { return x > none && static_cast<double>(x) >= bar; }));
    };
    auto const some = static_cast<double>(values[below(random, values.size())]);
    for (auto const bar : {some, some + 1e-9, some - 1e-9, 0.5, -1e300, 1e300, -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::infinity()})
      CHECK(detail::count_from(line, bar) == from(bar));
    CHECK(detail::count_within(line, 0.2) == from(static_cast<double>(best) + std::log(0.2)));
    long double count = 0, mean = 0, variance = 0;
    for (auto const x : values)
      if (x > none) count += 1, mean += static_cast<long double>(x);
    if (count == 0 || seed % 7 == 0) continue;
    mean /= count;
    for (auto const x : values)
      if (x > none) variance += (static_cast<long double>(x) - mean) * (static_cast<long double>(x) - mean) / count;
    for (auto const deviations : {0.1, 0.9, 2.3}) {
      auto const bar = static_cast<double>(best) - deviations * static_cast<double>(std::sqrt(variance));
      auto const found = detail::count_near(line, deviations);
      if (from(bar - 1e-6) == from(bar + 1e-6)) CHECK(found == from(bar));
    }
  }
}

TEST_CASE("masks and copies of whole words are those of single places", "[line]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto const size = below(random, 300), first = below(random, 200);
    auto line = normal_numbers(random, static_cast<std::ptrdiff_t>(size), 3);
    if (seed % 3 == 0)
      for (auto& x : line) x = below(random, 4) == 0 ? none : below(random, 4) == 0 ? -3.4e38f : x;
    TokenSet only;
    auto const every = below(random, 3) == 0 ? 40 : 1 + below(random, 3);
    for (std::size_t v = 0, end = below(random, 600); v < end; ++v)
      if (below(random, every) == 0) only.insert(static_cast<Token>(v));
    if (seed % 4 == 0)
      for (Token v = 64; v < 192; ++v) only.insert(v);
    if (seed % 8 == 0)
      for (Token v = 64; v < 192; v += 32) only.erase(v);
    auto masked = line;
    detail::mask(masked, first, only);
    std::vector<float> copied, all;
    detail::copy_scores(line, &only, copied);
    detail::copy_scores(line, nullptr, all);
    REQUIRE(copied.size() == size);
    REQUIRE(all.size() == size);
    INFO("seed " << seed);
    for (std::size_t i = 0; i < size; ++i) {
      auto const expected = only.contains(static_cast<Token>(first + i)) ? line[i] : none;
      if (!same_bits(masked[i], expected)) CHECK(masked[i] == expected);
      if (!same_bits(all[i], line[i])) CHECK(all[i] == line[i]);
      auto far = true;  // none of its 64 neighbours is in the set
      for (auto v = i / 64 * 64; v < i / 64 * 64 + 64; ++v) far = far && !only.contains(static_cast<Token>(v));
      if (!same_bits(copied[i], far ? none : line[i])) CHECK(copied[i] == (far ? none : line[i]));
    }
  }
}

TEST_CASE("the score of a log-probability is the nearest float that is no more probable", "[line]") {
  constexpr auto most = std::numeric_limits<float>::max();
  std::mt19937_64 random(3);
  auto const uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int i = 0; i < 20'000; ++i) {
    auto const wide = std::array<double, 5>{0, 1e-3, 30, 5000, 3e38}[random() % 5];
    auto const top = static_cast<double>(static_cast<float>(wide * (2 * uniform() - 1)));
    detail::LineNorm const norm{.maximum = top, .log_sum = i % 3 == 0 ? 0 : 12 * uniform()};
    auto const deep = std::array<double, 4>{0, 1e-7, 20, 3e38}[random() % 4];
    auto const log_prob = static_cast<float>(-deep * uniform());
    auto const x = norm.score(log_prob);
    INFO("maximum " << norm.maximum << ", log_sum " << norm.log_sum << ", log_prob " << log_prob << ", score " << x);
    REQUIRE(std::abs(x) <= most);
    if (x > -most) REQUIRE(norm(x) <= static_cast<double>(log_prob));
    auto const above = std::nextafter(std::nextafter(x, infinite), infinite);  // two floats: the nearest may be above
    if (above <= most) REQUIRE(norm(above) >= static_cast<double>(log_prob));
  }
  CHECK(detail::LineNorm{.maximum = 7, .log_sum = 1}.score(none) == none);
  CHECK(detail::LineNorm{}.score(-0.3f) == -0.3f);
}

TEST_CASE("edits of log-probabilities keep finite scores finite, and impossible ones impossible", "[line]") {
  constexpr auto most = std::numeric_limits<float>::max();
  detail::LineNorm const norm{.maximum = 2, .log_sum = 0.5};
  CHECK(detail::changed(3e38f, {0, 2e38f, 1}, norm) == most);
  CHECK(detail::changed(-3e38f, {0, -2e38f, 1}, norm) == -most);
  CHECK(detail::changed(1, Edit::forbid(0), norm) == none);
  CHECK(detail::changed(none, {0, 5, 1}, norm) == none);
  CHECK(detail::changed(none, {0, 5, 2}, norm) == none);
  CHECK(detail::changed(1.25f, {0, 0.5f, 1}, norm) == 1.75f);
  CHECK(detail::changed(1.25f, {0, 0.5f, 2}, norm) == 0.5f);  // log-probability -1.25, times 2, plus 0.5: -2
}
