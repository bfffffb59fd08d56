// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/detail/line/line_scan.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();
constexpr float largest = std::numeric_limits<float>::max();

std::size_t below(std::mt19937_64& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

/// Ways to fill a line of n scores.
using Fill = std::function<float(std::mt19937_64&, std::size_t place, std::size_t n)>;
std::vector<std::pair<std::string, Fill>> const& fills() {
  static auto const normal = [](std::mt19937_64& random, double deviation) {
    return static_cast<float>(std::normal_distribution<double>(0, deviation)(random));
  };
  static std::vector<std::pair<std::string, Fill>> const all{
      {"normal", [](auto& r, auto, auto) { return normal(r, 3); }},
      {"narrow", [](auto& r, auto, auto) { return normal(r, 1e-6); }},
      {"wide", [](auto& r, auto, auto) { return normal(r, 1e4); }},
      {"ascending", [](auto&, auto i, auto n) { return static_cast<float>(i) * 30 / static_cast<float>(n); }},
      {"descending", [](auto&, auto i, auto n) { return static_cast<float>(n - i) * 30 / static_cast<float>(n); }},
      {"steps down", [](auto&, auto i, auto) { return -static_cast<float>(i / 700); }},
      {"all equal", [](auto&, auto, auto) { return -7.25f; }},
      {"all equal, above two", [](auto&, auto, auto) { return 3.25f; }},
      {"all equal, above minus two", [](auto&, auto, auto) { return -0.5f; }},
      {"few values", [](auto& r, auto, auto) { return static_cast<float>(below(r, 4)); }},
      {"rounded", [](auto& r, auto, auto) { return std::round(normal(r, 2)); }},
      {"signs of zero", [](auto& r, auto, auto) { return below(r, 2) == 0 ? 0.0f : -0.0f; }},
      {"mostly impossible", [](auto& r, auto, auto) { return below(r, 10) == 0 ? normal(r, 3) : none; }},
      {"nearly all impossible", [](auto& r, auto, auto) { return below(r, 997) == 0 ? normal(r, 3) : none; }},
      {"all impossible", [](auto&, auto, auto) { return none; }},
      {"denormals", [](auto& r, auto, auto) { return std::bit_cast<float>(static_cast<std::uint32_t>(below(r, 9))); }},
      {"negative denormals",
       [](auto& r, auto, auto) { return -std::bit_cast<float>(static_cast<std::uint32_t>(below(r, 1 << 20))); }},
      {"far above zero", [](auto& r, auto, auto) { return 1e4f + normal(r, 3); }},
      {"far below zero", [](auto& r, auto, auto) { return -1e4f + normal(r, 3); }},
      {"huge", [](auto& r, auto, auto) { return (below(r, 2) == 0 ? 3e38f : -3e38f) + 1e36f * normal(r, 1); }},
      {"masked by the lowest float", [](auto& r, auto, auto) { return below(r, 2) == 0 ? normal(r, 3) : -largest; }},
      {"all the lowest float", [](auto&, auto, auto) { return -largest; }},
      {"one huge outlier", [](auto& r, auto i, auto n) { return i == n / 2 ? 3e38f : normal(r, 3); }},
      {"an early outlier", [](auto& r, auto i, auto) { return i == 5 ? 1e30f : normal(r, 3); }},
      {"two outliers", [](auto& r, auto i, auto n) { return i == n / 3 ? 3e38f
                                                            : i == 0   ? -3e38f
                                                                       : normal(r, 3); }},
      {"one lane is best", [](auto& r, auto i, auto) { return normal(r, 1) + (i % 64 == 5 ? 20.0f : 0.0f); }},
      {"a cliff of 200", [](auto& r, auto, auto) { return normal(r, 1) - (below(r, 3) == 0 ? 200.0f : 0.0f); }},
      {"maximum last", [](auto& r, auto i, auto n) { return i + 1 == n ? 50.0f : normal(r, 1); }},
  };
  return all;
}

/// What a scan has to find, in double precision.
struct Truth {
  explicit Truth(std::vector<float> const& line) {
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] > none) order.push_back(static_cast<std::int32_t>(i));
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      auto const x = line[static_cast<std::size_t>(a)], y = line[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    });
    if (order.empty()) return;
    maximum = line[static_cast<std::size_t>(order.front())];
    double sum = 0;
    for (auto const x : line) sum += std::exp(static_cast<double>(x) - static_cast<double>(maximum));
    log_sum = std::log(sum);
  }
  std::vector<std::int32_t> order;  // best first, without the impossible
  float maximum = none;
  double log_sum = 0;
};

void check(detail::LineScan& scan, std::vector<float> const& line, Truth const& truth, std::size_t k, bool sum) {
  INFO("k = " << k << ", sum " << sum);
  REQUIRE(scan.valid());
  CHECK(scan.maximum() == truth.maximum);
  if (sum && !truth.order.empty()) CHECK_THAT(scan.log_sum(), WithinAbs(truth.log_sum, 3e-6));
  auto const best = scan.best();
  REQUIRE(best.size() == std::min(k, truth.order.size()));
  for (std::size_t i = 0; i < best.size(); ++i)
    if (best[i].place != truth.order[i] || best[i].score != line[static_cast<std::size_t>(best[i].place)]) {
      INFO("entry " << i << " of " << best.size() << ", score " << best[i].score);
      REQUIRE(best[i].place == truth.order[i]);
      REQUIRE(best[i].score == line[static_cast<std::size_t>(best[i].place)]);
    }
}

/// Adds a line in blocks of random size.
void add_in_blocks(detail::LineScan& scan, std::vector<float> const& line, std::mt19937_64& random, std::size_t most) {
  auto padded = line;
  padded.resize((line.size() + detail::LineScan::chunk - 1) / detail::LineScan::chunk * detail::LineScan::chunk, none);
  for (std::size_t first = 0; first < padded.size();) {
    auto const count = std::min((1 + below(random, most)) * detail::LineScan::chunk, padded.size() - first);
    std::vector<float> const block(padded.begin() + static_cast<std::ptrdiff_t>(first),
                                   padded.begin() + static_cast<std::ptrdiff_t>(first + count));
    scan.add(first, block.data(), count);
    first += count;
  }
}

std::vector<float> filled(Fill const& fill, std::mt19937_64& random, std::size_t n) {
  std::vector<float> line(n);
  for (std::size_t i = 0; i < n; ++i) line[i] = fill(random, i, n);
  return line;
}

}  // namespace

TEST_CASE("line_scan finds maximum, sum and the k best of any line, however it is cut", "[line_scan]") {
  std::vector<std::size_t> const sizes{1,    2,    3,    15,   16,   63,    64,    65,    1000,  1023,
                                       1024, 1025, 2047, 2048, 2049, 32767, 32768, 32769, 33792, 65537};
  detail::LineScan scan, blocks;  // one for all: what they held must not matter
  std::uint64_t seed = 0;
  int first = 0;
  for (auto const& [name, fill] : fills())
    for (int round = first++ % slowed; round < 12; round += slowed) {
      std::mt19937_64 random(++seed);
      auto const n = round < 9 ? sizes[below(random, sizes.size())] : 1 + below(random, round == 9 ? 70000 : 5000);
      INFO(name << ", " << n << " scores, seed " << seed);
      auto const line = filled(fill, random, n);
      Truth const truth(line);
      std::vector<std::size_t> const ks{0,  1,   2,   3,    5,    17,    63,    64, 65,    66,
                                        90, 128, 129, 1000, 5000, n / 2, n - 1, n,  n + 1, n + 5000};
      for (int i = 0; i < 4; ++i) {
        auto const k = i == 0 ? 1 + below(random, 8) : ks[below(random, ks.size())];
        auto const sum = i < 2;
        scan.begin(k, sum);
        scan.run(line);
        check(scan, line, truth, k, sum);
        blocks.begin(k, sum);
        add_in_blocks(blocks, line, random, i % 2 == 0 ? 32 : 3);
        check(blocks, line, truth, k, sum);
        if (sum) CHECK(blocks.log_sum() == scan.log_sum());  // bit for bit; -infinity for an impossible line
      }
    }
}

TEST_CASE("line_scan finds ties in the order of their places across chunks and blocks", "[line_scan]") {
  detail::LineScan scan;
  for (std::uint64_t seed = 0; seed < times(60u); ++seed) {
    std::mt19937_64 random(seed);
    auto const n = 1 + below(random, 140000 >> below(random, 8));
    std::vector<float> line(n, -1);
    for (auto i = below(random, 400); i > 0; --i) line[below(random, n)] = static_cast<float>(below(random, 3));
    Truth const truth(line);
    for (auto const k : {1 + below(random, 400), 1 + below(random, n), std::size_t{64}}) {
      INFO("seed " << seed << ", " << n << " scores");
      scan.begin(k, false);
      add_in_blocks(scan, line, random, 1 + below(random, 32));
      check(scan, line, truth, k, false);
    }
  }
}

TEST_CASE("line_scan marks a line with a NaN or +infinity, and forgets it with the next line", "[line_scan]") {
  detail::LineScan scan;
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  for (std::uint64_t seed = 0; seed < times(500u); ++seed) {
    std::mt19937_64 random(seed);
    auto const n = 1 + below(random, seed % 10 == 0 ? 70000 : 3000);
    auto line = filled(fills()[below(random, fills().size())].second, random, n);
    auto const bad = std::vector<float>{nan, -nan, -none, std::numeric_limits<float>::signaling_NaN()}[seed % 4];
    auto const at = seed % 3 == 0 ? n - 1 : seed % 3 == 1 ? 0 : below(random, n);
    auto const good = std::exchange(line[at], bad);
    auto const k = below(random, 4) == 0 ? 0 : below(random, 100);
    INFO("seed " << seed << ", " << n << " scores, " << bad << " at " << at << ", k = " << k);
    scan.begin(k, seed % 2 == 0);
    if (seed % 5 == 0) add_in_blocks(scan, line, random, 32);
    else scan.run(line);
    CHECK_FALSE(scan.valid());
    line[at] = good;
    scan.begin(k, seed % 2 == 0);
    scan.run(line);
    check(scan, line, Truth(line), k, seed % 2 == 0);
  }
}

TEST_CASE("line_scan sums a quarter of a million exponentials to 1e-5", "[line_scan]") {
  detail::LineScan scan;
  auto const deviation = GENERATE(0.0, 0.01, 0.5, 1.0, 3.0, 12.0, 60.0);
  auto const offset = GENERATE(0.0, -30.0, 1000.0);
  for (std::size_t const n : {262144u, 262143u, 250001u}) {
    std::mt19937_64 random(n);
    std::normal_distribution<double> normal(0, deviation > 0 ? deviation : 1);
    std::vector<float> line(n);
    for (auto& x : line) x = static_cast<float>(offset + (deviation > 0 ? normal(random) : 0));
    auto const top = static_cast<double>(*std::max_element(line.begin(), line.end()));
    double sum = 0;
    for (auto const x : line) sum += std::exp(static_cast<double>(x) - top);
    scan.begin(1, true);
    scan.run(line);
    INFO("deviation " << deviation << ", offset " << offset << ", " << n << " scores");
    CHECK_THAT(scan.log_sum(), WithinAbs(std::log(sum), 5e-6));
  }
}

TEST_CASE("exp_of_negative is within what it says of exp", "[line_scan]") {
  std::mt19937_64 random(1);
  auto worst = 0.0;
  for (int i = 0; i < times(200000); ++i) {
    auto const x = i == 0 ? 0.0f : -static_cast<float>(std::exp(std::uniform_real_distribution(-20.0, 4.46)(random)));
    auto const y = static_cast<double>(detail::simd::exp_of_negative(detail::simd::broadcast(x))[0]);
    auto const exact = std::exp(static_cast<double>(x));
    if (x > -87) worst = std::max(worst, std::abs(y - exact) / (exact * 2e-7 * (1 + std::abs(static_cast<double>(x)))));
  }
  CHECK(worst <= 1);
  CHECK(detail::simd::exp_of_negative(detail::simd::broadcast(0))[0] == 1);
  CHECK(detail::simd::exp_of_negative(detail::simd::broadcast(-0.0f))[0] == 1);
  for (auto const x : {-87.5f, -100.0f, -1e10f, -largest, none}) {
    auto const y = detail::simd::exp_of_negative(detail::simd::broadcast(x))[0];
    CHECK((y >= 0 && y < 1.3e-38f));
  }
}

TEST_CASE("sums of exponentials err by less than a millionth of themselves, whatever the scores", "[line_scan]") {
  // Equal scores err alike, so that nothing cancels: the worst that a line can do. All fractions of a power of two.
  std::mt19937_64 random(7);
  auto worst = 0.0;
  for (auto const near : {0.0f, -3.7f, 11.3f, 90.0f, -1234.5f, 31000.0f, -32768.0f})
    for (int i = 0; i < times(20000); ++i) {
      detail::simd::Exponentials const exponentials(near);
      // With fused multiply-adds it does not matter how far away a score is.
      auto const far = static_cast<double>(detail::simd::has_fused ? (i % 2 == 0 ? 30 : 3) : 3);
      auto const x = near + static_cast<float>(std::uniform_real_distribution(-far, 11.0)(random));
      if (x > near + detail::simd::Exponentials::above) continue;
      auto const y = static_cast<double>(exponentials.add(detail::simd::Vec{}, detail::simd::broadcast(x))[0]);
      auto const exact = std::exp(static_cast<double>(x) - exponentials.reference());
      worst = std::max(worst, std::abs(y / exact - 1));
    }
  INFO("worst " << worst);
  CHECK(worst <= (detail::simd::has_fused ? 1e-6 : 3e-6));

  detail::simd::Exponentials const exponentials(5);
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(exponentials.add(detail::simd::Vec{}, detail::simd::broadcast(nan))[0]));
  for (auto const x : {-100.0f, -1e10f, -largest, none}) {
    auto const y = exponentials.add(detail::simd::Vec{}, detail::simd::broadcast(x))[0];
    CHECK((y > 0 && y < 1e-32f));
  }
}

TEST_CASE("the log-probability of the best is within 1e-6 of double precision", "[line_scan]") {
  detail::LineScan scan;
  std::mt19937_64 random(8);
  auto worst = 0.0;
  for (int i = 0; i < times(400); ++i) {
    // Lines whose weight lies in equal scores, one of which is the first of its line, and which the rest only disturbs.
    auto const n = i % 2 == 0 ? std::size_t{32000} : 1 + below(random, 5000);
    auto const level = static_cast<float>(std::uniform_real_distribution(-20.0, 20.0)(random));
    auto const step = static_cast<float>(std::exp2(std::uniform_real_distribution(-12.0, 4.0)(random)));
    std::vector<float> line(n);
    for (std::size_t j = 0; j < n; ++j)
      line[j] = i % 4 < 2 ? level - step * static_cast<float>(j % 7) : level + step * static_cast<float>(j / 1024);
    Truth const truth(line);
    scan.begin(1, true);
    scan.run(line);
    worst = std::max(worst, std::abs(scan.log_sum() - truth.log_sum));
  }
  INFO("worst " << worst);
  CHECK(worst <= (detail::simd::has_fused ? 1e-6 : 3e-6));
}

TEST_CASE("scores are counted by what they reach", "[line_scan]") {
  std::mt19937_64 random(2);
  for (int round = 0; round < times(2000); ++round) {
    auto const n = static_cast<std::size_t>(detail::simd::lanes) * (1 + below(random, 20));
    auto const line = filled(fills()[below(random, fills().size())].second, random, n);
    auto const bar = below(random, 2) == 0 ? line[below(random, n)] : static_cast<float>(below(random, 7)) - 3.5f;
    auto const count = std::count_if(line.begin(), line.end(), [&](float x) { return x >= bar; });
    CHECK(detail::simd::count_at_least(line.data(), n, bar) == static_cast<std::size_t>(count));
    auto least = std::numeric_limits<float>::infinity();
    for (auto const x : line)
      if (x >= bar) least = std::min(least, x);
    CHECK(detail::simd::least_from(line.data(), n, bar) == least);

    auto sorted = line;
    std::sort(sorted.begin(), sorted.end(), std::greater{});
    auto const possible = static_cast<std::size_t>(std::ranges::count_if(line, [](float x) { return x > none; }));
    if (possible == 0) continue;
    auto const k = 1 + below(random, possible);
    auto const found = detail::reached_by(line, k, sorted[possible - 1], sorted[0]);
    CHECK(std::ranges::find(line, found) != line.end());
    CHECK(found <= sorted[k - 1]);
  }
}

TEST_CASE("best_scores keeps the k best of what it takes", "[line_scan]") {
  detail::BestScores best;
  for (std::uint64_t seed = 0; seed < times(400u); ++seed) {
    std::mt19937_64 random(seed);
    auto const& [name, fill] = fills()[seed % fills().size()];
    auto const unit = static_cast<std::size_t>(detail::simd::lanes);
    auto const line = filled(fill, random, unit * (1 + below(random, 300)));
    Truth const truth(line);
    auto const k = 1 + below(random, seed % 3 == 0 ? line.size() + 9 : 70);
    INFO(name << ", " << line.size() << " scores, k = " << k << ", seed " << seed);
    best.begin(k);
    for (std::size_t first = 0; first < line.size();) {
      auto const count = std::min(unit * (1 + below(random, 64)), line.size() - first);
      best.take(first, line.data() + first, count, std::nextafter(best.bar(), -none));
      if (below(random, 3) != 0) best.tidy();
      auto const reach = std::count_if(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(first + count),
                                       [&](float x) { return x >= best.bar(); });
      if (best.bar() > none) CHECK(static_cast<std::size_t>(reach) >= k);
      first += count;
    }
    auto const found = best.finish();
    REQUIRE(found.size() == std::min(k, truth.order.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("entry " << i);
      REQUIRE(found[i].place == truth.order[i]);
      REQUIRE(found[i].score == line[static_cast<std::size_t>(found[i].place)]);
    }
  }
}

TEST_CASE("line_scan allocates nothing once it has seen its largest k", "[line_scan]") {
  for (auto const& [name, fill] : fills()) {
    INFO(name);
    detail::LineScan scan;
    std::mt19937_64 random(4);
    auto const usual = filled(fills()[0].second, random, 40000), line = filled(fill, random, 40000);
    for (auto const* l : {&usual, &line}) {
      scan.begin(100, true);
      scan.run(*l);
      scan.best();
    }
    auto const before = allocations();
    for (std::size_t const k : {100u, 7u}) {
      scan.begin(k, true);
      scan.run(line);
      scan.best();
    }
    CHECK(allocations() == before);
  }
}

TEST_CASE("what a line_scan allocates depends on k, not on the scores", "[line_scan]") {
  detail::LineScan scan;
  std::mt19937_64 random(4);
  auto const usual = filled(fills()[0].second, random, 70000);
  scan.begin(100, true);
  scan.run(usual);
  scan.best();
  for (auto const& [name, fill] : fills()) {
    INFO(name);
    auto const line = filled(fill, random, 70000);
    auto const before = allocations();
    scan.begin(10, true);
    scan.run(line);
    scan.best();
    CHECK(allocations() == before);
  }
}
