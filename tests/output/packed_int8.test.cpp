// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed_matrix.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<float>::infinity();

/// A row in 8 bits, said as plainly as possible.
struct Quantised {
  float scale = 0;
  std::vector<int> numbers;

  explicit Quantised(std::span<float const> x) : numbers(x.size()) {
    float most = 0;
    for (auto const value : x) {
      if (!std::isfinite(value)) scale = not_a_number;
      most = std::max(most, std::abs(value));
    }
    if (std::isnan(scale) || most / 127 < std::numeric_limits<float>::min()) return;
    scale = most / 127;
    for (std::size_t k = 0; k < x.size(); ++k) {
      float const volatile scaled = x[k] * (127 / most);
      numbers[k] = static_cast<int>(std::nearbyint(scaled));
    }
  }
};

struct Layer {
  std::ptrdiff_t n, d;
  std::vector<float> weights = std::vector<float>(static_cast<std::size_t>(n * d));
  std::vector<float> bias = std::vector<float>(static_cast<std::size_t>(n));

  PackedMatrix packed() const { return PackedMatrix({weights.data(), n, d, d}, bias, Precision::int8); }
  std::span<float const> row(std::ptrdiff_t j) const {
    return std::span(weights).subspan(static_cast<std::size_t>(j * d), static_cast<std::size_t>(d));
  }
  float reference(std::span<float const> x, std::ptrdiff_t j) const {
    Quantised const a(x), b(row(j));
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) sum += a.numbers[k] * b.numbers[k];
    float const volatile scale = b.scale * a.scale;  // volatile: each operation rounds
    float const volatile product = static_cast<float>(sum) * scale;
    return product + bias[static_cast<std::size_t>(j)];
  }
};

std::vector<float> multiply(Layer const& layer, std::vector<float> const& x) {
  std::vector<float> y(static_cast<std::size_t>(layer.n));
  layer.packed().multiply({x.data(), 1, layer.d, layer.d}, {y.data(), 1, layer.n, layer.n});
  return y;
}

}  // namespace

TEST_CASE("an int8 product is exactly what plain integers say, on every processor", "[packed_int8]") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto const number = [&] { return normal(random); };
  for (int i = 0; i < times(300); ++i) {
    auto const large = i % 50 == 0;  // several strips of tiles, rows longer than what stays in the nearest cache
    auto const rows = static_cast<std::ptrdiff_t>(random() % (large ? 80 : 28));
    Layer layer{static_cast<std::ptrdiff_t>(1 + random() % 150),
                static_cast<std::ptrdiff_t>(large ? 900 + random() % 400 : random() % 80)};
    auto const stride = layer.d + static_cast<std::ptrdiff_t>(random() % 3);
    std::vector<float> x(static_cast<std::size_t>(rows * stride));
    for (auto* const numbers : {&layer.weights, &layer.bias, &x}) std::ranges::generate(*numbers, number);
    Epilogue const epilogue{.relu = i % 2 == 0, .add = i % 3 == 0};
    std::vector<float> y(static_cast<std::size_t>(rows * layer.n), 2);
    layer.packed().multiply({x.data(), rows, layer.d, stride}, {y.data(), rows, layer.n, layer.n}, epilogue);
    bool same = true;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
      std::span const row(x.data() + r * stride, static_cast<std::size_t>(layer.d));
      for (std::ptrdiff_t j = 0; j < layer.n; ++j) {
        auto expected = layer.reference(row, j);
        if (epilogue.relu) expected = std::max(expected, 0.0f);
        if (epilogue.add) expected += 2;
        same = same && y[static_cast<std::size_t>(r * layer.n + j)] == expected;
      }
    }
    INFO("n " << layer.n << ", d " << layer.d << ", rows " << rows);
    CHECK(same);
  }
}

TEST_CASE("ties are rounded to even", "[packed_int8]") {
  // A scale of 1: the numbers are what they are.
  // Eleven times eight numbers: what is rounded 64 at a time, a vector at a time, one by one.
  Layer layer{1, 88};
  layer.weights.assign(88, 0.0f);
  std::vector<float> x, expected;
  for (int i = 0; i < 11; ++i) {
    for (auto const number : {127.0f, 0.5f, 1.5f, -0.5f, -1.5f, 2.5f, -2.5f, 126.5f}) x.push_back(number);
    for (auto const number : {127, 0, 2, 0, -2, 2, -2, 126}) expected.push_back(static_cast<float>(number));
  }
  for (std::size_t k = 0; k < x.size(); ++k) {
    std::ranges::fill(layer.weights, 0.0f);
    layer.weights[k] = 127;
    CHECK(multiply(layer, x)[0] == 127 * expected[k]);
  }
}

TEST_CASE("an int8 product is near that of float64", "[packed_int8]") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (std::ptrdiff_t const d : {1, 3, 64, 256, 1000}) {
    Layer layer{50, d};
    std::vector<float> x(static_cast<std::size_t>(d));
    for (auto* const numbers : {&layer.weights, &layer.bias, &x})
      std::ranges::generate(*numbers, [&] { return normal(random); });
    auto const y = multiply(layer, x);
    auto const most = [](auto const& numbers) {
      return std::abs(double{*std::ranges::max_element(numbers, {}, [](float v) { return std::abs(v); })});
    };
    for (std::ptrdiff_t j = 0; j < layer.n; ++j) {
      // x w - x' w' = (x - x') w + x' (w - w'), where a difference is half a step at most.
      auto const w = layer.row(j);
      double sum = layer.bias[static_cast<std::size_t>(j)], bound = 1e-4;
      for (std::size_t k = 0; k < x.size(); ++k) {
        sum += double{x[k]} * w[k];
        bound += most(x) / 254 * std::abs(w[k]) + (std::abs(x[k]) + most(x) / 254) * most(w) / 254;
      }
      CHECK(std::abs(y[static_cast<std::size_t>(j)] - sum) < bound);
    }
  }
}

TEST_CASE("rows that are not finite give NaN, all zeros give the bias", "[packed_int8]") {
  Layer layer{40, 20};
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = static_cast<float>(i % 7);
  std::ranges::fill(layer.bias, 3.0f);
  auto const matrix = layer.packed();
  for (auto const bad : {not_a_number, -not_a_number, infinity, -infinity})
    for (std::size_t const at : {0u, 15u, 16u, 19u}) {
      std::vector<float> x(3 * 20, 1), y(3 * 40);
      x[20 + at] = bad;
      std::fill(x.begin() + 40, x.end(), 0.0f);
      matrix.multiply({x.data(), 3, 20, 20}, {y.data(), 3, 40, 40}, {.relu = true});
      CHECK(std::all_of(y.begin(), y.begin() + 40, [](float v) { return std::isfinite(v) && v != 3; }));
      CHECK(std::all_of(y.begin() + 40, y.begin() + 80, [](float v) { return std::isnan(v); }));
      CHECK(std::all_of(y.begin() + 80, y.end(), [](float v) { return v == 3; }));
    }
  // Weights likewise: an output of zeros, one with an infinity.
  std::fill_n(layer.weights.begin() + 20, 20, 0.0f);
  layer.weights[45] = infinity;
  auto const y = multiply(layer, std::vector<float>(20, 1));
  CHECK(y[1] == 3);
  CHECK(std::isnan(y[2]));
  CHECK(std::isfinite(y[3]));
}

TEST_CASE("very small and very large numbers", "[packed_int8]") {
  constexpr auto smallest = std::numeric_limits<float>::denorm_min(), normal = std::numeric_limits<float>::min();
  Layer layer{3, 5};
  layer.weights = {1, 2, 3, 4, 5, smallest, 0, 0, 0, smallest, -3e38f, 1e38f, 0, 0, 0};
  for (auto const size : {smallest, normal, 126 * normal, 128 * normal, 1e30f}) {
    std::vector<float> const x{size, -size, 0, 0, size / 2};
    auto const y = multiply(layer, x);
    for (std::ptrdiff_t j = 0; j < 2; ++j) CHECK(y[static_cast<std::size_t>(j)] == layer.reference(x, j));
    if (size < 127 * normal) CHECK(y == std::vector<float>(3));
    else CHECK(y[0] != 0);
  }
  auto const y = multiply(layer, {1, 0, 0, 0, 0});
  CHECK(y[1] == 0);
  CHECK_THAT(y[2], WithinRel(-3e38f, 1e-6f));
}

TEST_CASE("the longest sums do not overflow, longer ones are refused", "[packed_int8]") {
  for (std::ptrdiff_t const d : {65536, 65539, 133144})
    for (auto const sign : {1, -1}) {
      Layer layer{2, d};
      std::ranges::fill(layer.weights, 127.0f);
      std::vector<float> const x(static_cast<std::size_t>(d), static_cast<float>(127 * sign));
      auto const y = multiply(layer, x);
      CHECK(y[0] == static_cast<float>(127 * 127 * sign * d));
      CHECK(y[1] == y[0]);
    }
  Layer const layer{1, 133145};
  CHECK_NOTHROW(PackedMatrix({layer.weights.data(), 1, layer.d, layer.d}));
  try {
    layer.packed();
    FAIL("not refused");
  } catch (std::invalid_argument const& e) {
    CHECK(e.what() == std::string("sluice: PackedMatrix: weights.columns = 133145: must be <= 133144 for int8"));
  }
}

TEST_CASE("warm rows allocate nothing", "[packed_int8]") {
  Layer const layer{70, 33};
  auto const matrix = layer.packed();
  std::vector<float> const x(10 * 33, 1);
  std::vector<float> y(10 * 70);
  PackedRows rows({x.data(), 10, 33, 33}, Precision::int8);
  auto const before = allocations();
  for (std::ptrdiff_t const count : {3, 10, 1}) {
    rows.assign({x.data(), count, 33, 33}, Precision::int8);
    matrix.multiply(rows, {y.data(), count, 70, 70});
  }
  CHECK(allocations() == before);
}
