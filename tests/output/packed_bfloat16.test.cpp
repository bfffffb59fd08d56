// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed_matrix.hpp>

#include <support/catch.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// x, rounded by looking for the nearer one of two neighbours; zero for what is smaller than the smallest normal float.
float reference(float x) {
  if (std::abs(x) < std::numeric_limits<float>::min()) return std::copysign(0.0f, x);
  auto const down = std::bit_cast<std::uint32_t>(x) & 0xffff0000u, up = down + 0x10000u;
  auto const low = double{std::bit_cast<float>(down)};
  // What comes after the largest number counts as if it had one more exponent.
  auto const high =
      std::isinf(std::bit_cast<float>(up)) ? std::copysign(0x1p128, low) : double{std::bit_cast<float>(up)};
  auto const to_low = std::abs(x - low), to_high = std::abs(high - x);
  return std::bit_cast<float>(to_low < to_high || (to_low == to_high && (down >> 16 & 1) == 0) ? down : up);
}

/// weight * x as a product sees it.
float product(float weight, float x) {
  float y = 0;
  PackedMatrix({&weight, 1, 1, 1}, {}, Precision::bfloat16).multiply({&x, 1, 1, 1}, {&y, 1, 1, 1});
  return y;
}
float kept_weight(float x) { return product(x, 1); }
float kept_input(float x) { return product(1, x); }

}  // namespace

TEST_CASE("weights and inputs become the nearest bfloat16, of two the even one", "[packed_bfloat16]") {
  for (auto const kept : {kept_weight, kept_input}) {
    std::mt19937 random(1);
    CHECK(kept(1) == 1);
    CHECK(kept(1 + 0x1p-8f) == 1);               // a tie, down to even
    CHECK(kept(1 + 0x3p-8f) == 1 + 0x2p-7f);     // a tie, up to even
    CHECK(kept(1 + 0x1.01p-8f) == 1 + 0x1p-7f);  // above it
    CHECK(kept(-1 - 0x1.01p-8f) == -1 - 0x1p-7f);
    CHECK(kept(0x1p-126f) == 0x1p-126f);
    CHECK(kept(0x1.fffffcp-127f) == 0);
    CHECK(kept(0x1p-140f) == 0);
    CHECK(kept(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
    CHECK(kept(-std::numeric_limits<float>::infinity()) == -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(kept(std::numeric_limits<float>::quiet_NaN())));
    CHECK(std::isnan(kept(std::bit_cast<float>(0x7f800001u))));
    CHECK(std::isnan(kept(std::bit_cast<float>(0xffffffffu))));
    for (int i = 0; i < 20000; ++i) {
      auto const x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (std::isfinite(x)) CHECK(kept(x) == reference(x));
    }
  }
}

TEST_CASE("a product in bfloat16 is that of the rounded numbers, up to the rounding of sums", "[packed_bfloat16]") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  auto const number = [&] { return normal(random); };
  for (int i = 0; i < times(300); ++i) {
    auto const n = static_cast<std::ptrdiff_t>(1 + random() % 150), d = static_cast<std::ptrdiff_t>(random() % 150),
               rows = static_cast<std::ptrdiff_t>(random() % 70);
    std::vector<float> weights(static_cast<std::size_t>(n * d)), bias(static_cast<std::size_t>(n)),
        x(static_cast<std::size_t>(rows * (d + 2)));
    for (auto* const numbers : {&weights, &bias, &x}) std::ranges::generate(*numbers, number);
    PackedMatrix const matrix({weights.data(), n, d, d}, bias, Precision::bfloat16);
    Epilogue const epilogue{.relu = i % 2 == 0, .add = i % 3 == 0};
    std::vector<float> y(static_cast<std::size_t>(rows * n), 2);
    matrix.multiply({x.data(), rows, d, d + 2}, {y.data(), rows, n, n}, epilogue);
    double worst = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      for (std::ptrdiff_t j = 0; j < n; ++j) {
        double sum = bias[static_cast<std::size_t>(j)], size = 1 + std::abs(sum);
        for (std::ptrdiff_t k = 0; k < d; ++k) {
          auto const term = double{reference(weights[static_cast<std::size_t>(j * d + k)])} *
                            double{reference(x[static_cast<std::size_t>(r * (d + 2) + k)])};
          sum += term, size += std::abs(term);
        }
        if (epilogue.relu) sum = std::max(sum, 0.0);
        if (epilogue.add) sum += 2;
        worst = std::max(worst, std::abs(sum - y[static_cast<std::size_t>(r * n + j)]) / size);
      }
    INFO("n " << n << ", d " << d << ", rows " << rows);
    CHECK(worst < 0x1p-24 * (4 + static_cast<double>(d)));
  }
}

TEST_CASE("sums of small whole numbers are exact in bfloat16", "[packed_bfloat16]") {
  std::mt19937 random(3);
  for (std::ptrdiff_t const d : {1, 2, 31, 32, 33, 64, 255, 1000})
    for (std::ptrdiff_t const rows : {1, 5, 16, 17, 40}) {
      constexpr std::ptrdiff_t n = 70;
      auto const whole = [&] { return static_cast<float>(static_cast<int>(random() % 201) - 100); };
      std::vector<float> weights(static_cast<std::size_t>(n * d)), x(static_cast<std::size_t>(rows * d)),
          y(static_cast<std::size_t>(rows * n));
      std::ranges::generate(weights, whole), std::ranges::generate(x, whole);
      PackedMatrix({weights.data(), n, d, d}, {}, Precision::bfloat16)
          .multiply({x.data(), rows, d, d}, {y.data(), rows, n, n});
      bool same = true;
      for (std::ptrdiff_t r = 0; r < rows; ++r)
        for (std::ptrdiff_t j = 0; j < n; ++j) {
          float sum = 0;
          for (std::ptrdiff_t k = 0; k < d; ++k)
            sum += weights[static_cast<std::size_t>(j * d + k)] * x[static_cast<std::size_t>(r * d + k)];
          same = same && y[static_cast<std::size_t>(r * n + j)] == sum;
        }
      INFO("d " << d << ", rows " << rows);
      CHECK(same);
    }
}
