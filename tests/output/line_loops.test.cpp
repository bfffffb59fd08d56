// SPDX-License-Identifier: Apache-2.0
// What loops over whole vectors and words of a line, against plain loops.
#include <sluice/output/line/line_counts.hpp>
#include <sluice/output/line/line_norm.hpp>

#include <support/catch.hpp>
#include <support/fenced.hpp>
#include <support/random_query.hpp>

#include <algorithm>
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
    CHECK(largest(line) == best);
    auto const from = [&](double bar) {
      return static_cast<std::size_t>(
          std::ranges::count_if(values, [&](float x) { return x > none && static_cast<double>(x) >= bar; }));
    };
    auto const some = static_cast<double>(values[below(random, values.size())]);
    for (auto const bar : {some, some + 1e-9, some - 1e-9, 0.5, -1e300, 1e300, -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::infinity()})
      CHECK(count_from(line, bar) == from(bar));
    CHECK(count_within(line, 0.2) == from(static_cast<double>(best) + std::log(0.2)));
    long double count = 0, mean = 0, variance = 0;
    for (auto const x : values)
      if (x > none) count += 1, mean += static_cast<long double>(x);
    if (count == 0 || seed % 7 == 0) continue;
    mean /= count;
    for (auto const x : values)
      if (x > none) variance += (static_cast<long double>(x) - mean) * (static_cast<long double>(x) - mean) / count;
    for (auto const deviations : {0.1, 0.9, 2.3}) {
      auto const bar = static_cast<double>(best) - deviations * static_cast<double>(std::sqrt(variance));
      auto const found = count_near(line, deviations);
      if (from(bar - 1e-6) == from(bar + 1e-6)) CHECK(found == from(bar));
    }
  }
}

TEST_CASE("masks and log-probabilities of whole words are those of single places", "[line]") {
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
    mask(masked, first, only);
    LineNorm const norm{.maximum = 1.5, .log_sum = seed % 2 == 0 ? 0.75 : 1e37};
    std::vector<float> rounded, all;
    round_all(line, norm, &only, rounded);
    round_all(line, norm, nullptr, all);
    REQUIRE(rounded.size() == size);
    REQUIRE(all.size() == size);
    INFO("seed " << seed);
    for (std::size_t i = 0; i < size; ++i) {
      auto const expected = only.contains(static_cast<Token>(first + i)) ? line[i] : none;
      if (!same_bits(masked[i], expected)) CHECK(masked[i] == expected);
      auto const exact = static_cast<double>(line[i]) - norm.maximum - norm.log_sum;
      auto const bounded = std::max(exact, static_cast<double>(std::numeric_limits<float>::lowest()));
      auto const value = line[i] == none ? none : static_cast<float>(bounded);
      if (!same_bits(all[i], value)) CHECK(all[i] == value);
      auto far = true;  // none of its 64 neighbours is in the set
      for (auto v = i / 64 * 64; v < i / 64 * 64 + 64; ++v) far = far && !only.contains(static_cast<Token>(v));
      if (!same_bits(rounded[i], far ? none : value)) CHECK(rounded[i] == (far ? none : value));
    }
  }
}
