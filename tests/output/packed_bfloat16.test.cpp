// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed/packed_matrix.hpp>

#include <support/catch.hpp>

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

/// x, rounded by looking for the nearer one of two neighbours.
float reference(float x) {
  auto const down = std::bit_cast<std::uint32_t>(x) & 0xffff0000u, up = down + 0x10000u;
  auto const low = double{std::bit_cast<float>(down)};
  // What comes after the largest number counts as if it had one more exponent.
  auto const high =
      std::isinf(std::bit_cast<float>(up)) ? std::copysign(0x1p128, low) : double{std::bit_cast<float>(up)};
  auto const to_low = std::abs(x - low), to_high = std::abs(high - x);
  return std::bit_cast<float>(to_low < to_high || (to_low == to_high && (down >> 16 & 1) == 0) ? down : up);
}

/// A weight as a product sees it.
float kept(float weight) {
  float const one = 1;
  float y = 0;
  PackedMatrix({&weight, 1, 1, 1}, {}, Precision::bfloat16).multiply({&one, 1, 1, 1}, {&y, 1, 1, 1});
  return y;
}

}  // namespace

TEST_CASE("weights become the nearest bfloat16, of two the even one", "[packed_bfloat16]") {
  std::mt19937 random(1);
  CHECK(kept(1) == 1);
  CHECK(kept(1 + 0x1p-8f) == 1);               // a tie, down to even
  CHECK(kept(1 + 0x3p-8f) == 1 + 0x2p-7f);     // a tie, up to even
  CHECK(kept(1 + 0x1.01p-8f) == 1 + 0x1p-7f);  // above it
  CHECK(kept(-1 - 0x1.01p-8f) == -1 - 0x1p-7f);
  CHECK(kept(0x1p-140f) == 0);
  CHECK(kept(0x1p-133f) == 0x1p-133f);  // the smallest one
  CHECK(kept(0x1.7p-132f) == 0x1.8p-132f);
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

TEST_CASE("a product in bfloat16 is that of the rounded weights in float32, bit for bit", "[packed_bfloat16]") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  auto const number = [&] { return normal(random); };
  for (int i = 0; i < 300; ++i) {
    auto const n = static_cast<std::ptrdiff_t>(1 + random() % 150), d = static_cast<std::ptrdiff_t>(random() % 70),
               rows = static_cast<std::ptrdiff_t>(random() % 30);
    std::vector<float> weights(static_cast<std::size_t>(n * d)), bias(static_cast<std::size_t>(n)),
        x(static_cast<std::size_t>(rows * (d + 2)));
    for (auto* const numbers : {&weights, &bias, &x}) std::ranges::generate(*numbers, number);
    auto rounded = weights;
    for (auto& weight : rounded) weight = reference(weight);
    PackedMatrix const matrix({weights.data(), n, d, d}, bias, Precision::bfloat16);
    PackedMatrix const expected({rounded.data(), n, d, d}, bias);
    Finish const finish{.relu = i % 2 == 0, .add = i % 3 == 0};
    std::vector<float> y(static_cast<std::size_t>(rows * n), 2), z(y);
    matrix.multiply({x.data(), rows, d, d + 2}, {y.data(), rows, n, n}, finish);
    expected.multiply({x.data(), rows, d, d + 2}, {z.data(), rows, n, n}, finish);
    INFO("n " << n << ", d " << d << ", rows " << rows);
    CHECK(y == z);
  }
}
