// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/packed_matrix.hpp>

#include <support/catch.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::vector<float> random_numbers(std::ptrdiff_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(size));
  for (auto& number : numbers) number = normal(generator);
  return numbers;
}

/// A layer with what it is made of.
struct Example {
  std::ptrdiff_t n, d;
  std::vector<float> weights = random_numbers(n * d, 1), bias = random_numbers(n, 2);
  PackedMatrix matrix{MatrixView<float const>{weights.data(), n, d, d}, bias};

  double exact(float const* x, std::ptrdiff_t j) const {
    double sum = bias[static_cast<std::size_t>(j)];
    for (std::ptrdiff_t k = 0; k < d; ++k) sum += double{x[k]} * weights[static_cast<std::size_t>(j * d + k)];
    return sum;
  }
};

MatrixView<float const> dense(std::vector<float> const& x, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return {x.data(), rows, columns, columns};
}
MatrixView<float> dense(std::vector<float>& x, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return {x.data(), rows, columns, columns};
}

}  // namespace

TEST_CASE("a packed product is the product", "[packed_matrix]") {
  for (std::ptrdiff_t const n : {1, 5, 16, 31, 32, 33, 100, 129, 300})
    for (std::ptrdiff_t const d : {0, 1, 3, 17, 64, 130}) {
      Example const e{n, d};
      for (std::ptrdiff_t const rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 25, 64}) {
        auto const x = random_numbers(rows * d, 3);
        std::vector<float> y(static_cast<std::size_t>(rows * n), -1);
        e.matrix.multiply(dense(x, rows, d), dense(y, rows, n));
        double error = 0;
        for (std::ptrdiff_t r = 0; r < rows; ++r)
          for (std::ptrdiff_t j = 0; j < n; ++j)
            error = std::max(error, std::abs(y[static_cast<std::size_t>(r * n + j)] - e.exact(x.data() + r * d, j)));
        INFO("n " << n << ", d " << d << ", rows " << rows);
        // d products of about 1, each sum rounded to 24 bits.
        CHECK(error < 1e-6 * (1 + static_cast<double>(d)));
      }
    }
}

TEST_CASE("a row's product does not depend on the other rows, nor on its place", "[packed_matrix]") {
  for (auto const& [n, d] : {std::pair<std::ptrdiff_t, std::ptrdiff_t>{333, 67}, {1024, 256}, {40, 1024}, {7, 5}}) {
    Example const e{n, d};
    constexpr std::ptrdiff_t most = 330;
    auto const x = random_numbers(most * d, 4);
    std::vector<float> alone(static_cast<std::size_t>(most * n));
    for (std::ptrdiff_t r = 0; r < most; ++r)
      e.matrix.multiply({x.data() + r * d, 1, d, d}, {alone.data() + r * n, 1, n, n});
    for (std::ptrdiff_t const rows : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 31, 64, 320})
      for (std::ptrdiff_t const first : {0, 1, 10}) {
        std::vector<float> y(static_cast<std::size_t>(rows * n));
        e.matrix.multiply({x.data() + first * d, rows, d, d}, dense(y, rows, n));
        INFO("n " << n << ", d " << d << ", rows " << rows << " from " << first);
        CHECK(std::equal(y.begin(), y.end(), alone.begin() + first * n));
      }
  }
}

TEST_CASE("any part of the columns may be had, in any precision, bit for bit", "[packed_matrix]") {
  std::mt19937 random(7);
  for (auto const& [n, d] : {std::pair<std::ptrdiff_t, std::ptrdiff_t>{333, 67}, {160, 30}, {31, 9}})
    for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      auto const weights = random_numbers(n * d, 1), bias = random_numbers(n, 2);
      PackedMatrix const matrix({weights.data(), n, d, d}, bias, precision);
      CHECK(matrix.precision() == precision);
      constexpr std::ptrdiff_t most = 40;
      auto const x = random_numbers(most * d, 4);
      std::vector<float> alone(static_cast<std::size_t>(most * n));
      for (std::ptrdiff_t r = 0; r < most; ++r)
        matrix.multiply({x.data() + r * d, 1, d, d}, {alone.data() + r * n, 1, n, n});
      PackedRows rows;
      for (int i = 0; i < times(100); ++i) {
        auto const first_row = static_cast<std::ptrdiff_t>(random() % most);
        auto const count = static_cast<std::ptrdiff_t>(random()) % (most - first_row) + 1;
        auto const first = static_cast<std::ptrdiff_t>(random()) % n / PackedMatrix::panel * PackedMatrix::panel;
        auto const columns = static_cast<std::ptrdiff_t>(random()) % (n - first + 1);
        auto const stride = columns + 3;
        std::vector<float> y(static_cast<std::size_t>(count * stride), 99);
        rows.assign({x.data() + first_row * d, count, d, d}, precision);
        matrix.multiply(rows, {y.data(), count, columns, stride}, {}, first);
        bool same = true;
        for (std::ptrdiff_t r = 0; r < count; ++r)
          for (std::ptrdiff_t j = 0; j < stride; ++j) {
            auto const expected =
                j < columns ? alone[static_cast<std::size_t>((first_row + r) * n + first + j)] : 99.0f;
            same = same && y[static_cast<std::size_t>(r * stride + j)] == expected;
          }
        INFO("n " << n << ", d " << d << ", rows " << count << ", columns " << columns << " from " << first);
        CHECK(same);
      }
    }
}

TEST_CASE("a row's product does not depend on the number of rows, in any precision, bit for bit", "[packed_matrix]") {
  std::ptrdiff_t offset = 0;
  for (auto const& [n, d] : {std::pair<std::ptrdiff_t, std::ptrdiff_t>{333, 67}, {64, 256}, {7, 5}, {97, 1024}})
    for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      auto const weights = random_numbers(n * d, 1), bias = random_numbers(n, 2);
      PackedMatrix const matrix({weights.data(), n, d, d}, bias, precision);
      constexpr std::ptrdiff_t most = slowed > 1 ? 400 : 1200;  // more than stay in a cache together
      auto const x = random_numbers(most * d, 4);
      std::vector<float> alone(static_cast<std::size_t>(most * n)), y(alone.size());
      for (std::ptrdiff_t r = 0; r < most; ++r)
        matrix.multiply({x.data() + r * d, 1, d, d}, {alone.data() + r * n, 1, n, n});
      std::vector<std::ptrdiff_t> counts{64, 65, 319, 320, most};
      for (auto rows = 1 + offset++ % slowed; rows <= 40; rows += slowed) counts.push_back(rows);
      for (auto const rows : counts)
        for (auto const epilogue : {Epilogue{}, Epilogue{.add = true}}) {
          if (slowed > 1 && epilogue.add != (rows / slowed % 2 == 0)) continue;  // each for half of them
          auto const first = (most - rows) / 2;
          std::fill(y.begin(), y.end(), 1.0f);
          matrix.multiply({x.data() + first * d, rows, d, d}, {y.data(), rows, n, n}, epilogue);
          INFO("n " << n << ", d " << d << ", rows " << rows << ", precision " << static_cast<int>(precision));
          CHECK(std::equal(y.begin(), y.begin() + rows * n, alone.begin() + first * n,
                           [&](float got, float sum) { return got == (epilogue.add ? 1.0f + sum : sum); }));
          CHECK(std::all_of(y.begin() + rows * n, y.end(), [](float untouched) { return untouched == 1.0f; }));
        }
    }
}

TEST_CASE("rows may be apart, and nothing is written between them", "[packed_matrix]") {
  Example const e{45, 20};
  constexpr std::ptrdiff_t rows = 9, x_stride = 23, y_stride = 50;
  auto const x = random_numbers(rows * x_stride, 5);
  std::vector<float> y(rows * y_stride, 99);
  e.matrix.multiply({x.data(), rows, 20, x_stride}, {y.data(), rows, 45, y_stride});
  for (std::ptrdiff_t r = 0; r < rows; ++r)
    for (std::ptrdiff_t j = 0; j < y_stride; ++j) {
      auto const value = y[static_cast<std::size_t>(r * y_stride + j)];
      if (j < 45) CHECK_THAT(value, WithinAbs(e.exact(x.data() + r * x_stride, j), 3e-5));
      else CHECK(value == 99);
    }
}

TEST_CASE("a product can be rectified and added", "[packed_matrix]") {
  Example const e{37, 10};
  for (std::ptrdiff_t const rows : {1, 7}) {
    auto const x = random_numbers(rows * 10, 6);
    std::vector<float> plain(static_cast<std::size_t>(rows * 37)), relu(plain), added(plain.size(), 1), both(added);
    e.matrix.multiply(dense(x, rows, 10), dense(plain, rows, 37));
    e.matrix.multiply(dense(x, rows, 10), dense(relu, rows, 37), {.relu = true});
    e.matrix.multiply(dense(x, rows, 10), dense(added, rows, 37), {.add = true});
    e.matrix.multiply(dense(x, rows, 10), dense(both, rows, 37), {.relu = true, .add = true});
    for (std::size_t i = 0; i < plain.size(); ++i) {
      CHECK(relu[i] == std::max(plain[i], 0.0f));
      CHECK(added[i] == 1 + plain[i]);
      CHECK(both[i] == 1 + relu[i]);
    }
  }
  std::vector<float> const x(10, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> y(37);
  e.matrix.multiply(dense(x, 1, 10), dense(y, 1, 37), {.relu = true});
  CHECK(std::ranges::all_of(y, [](float value) { return std::isnan(value); }));
}

TEST_CASE("without a bias nothing is added", "[packed_matrix]") {
  std::vector<float> const weights{1, 2, 3, 4, 5, 6}, x{1, 10};
  PackedMatrix const matrix({weights.data(), 3, 2, 2});
  std::vector<float> y(3);
  matrix.multiply({x.data(), 1, 2, 2}, {y.data(), 1, 3, 3});
  CHECK(y == std::vector<float>{21, 43, 65});
}

TEST_CASE("fewer bits take less memory", "[packed_matrix]") {
  std::vector<float> const weights(64 * 1024);
  auto const bytes = [&](Precision precision) {
    return PackedMatrix({weights.data(), 64, 1024, 1024}, {}, precision).bytes();
  };
  CHECK(bytes(Precision::float32) < 4 * weights.size() + 5000);
  CHECK(bytes(Precision::bfloat16) < 2 * weights.size() + 5000);
  CHECK(bytes(Precision::int8) < weights.size() + 5000);
}

TEST_CASE("shapes that do not fit are refused", "[packed_matrix]") {
  std::vector<float> memory(64);
  MatrixView<float const> const weights{memory.data(), 3, 2, 2};
  CHECK_THROWS_AS(PackedMatrix(weights, std::vector<float>(2)), std::invalid_argument);
  PackedMatrix const matrix(weights);
  auto const multiply = [&](std::ptrdiff_t x_rows, std::ptrdiff_t d, std::ptrdiff_t y_rows, std::ptrdiff_t n) {
    matrix.multiply({memory.data(), x_rows, d, d}, {memory.data() + 32, y_rows, n, n});
  };
  CHECK_THROWS_AS(multiply(1, 3, 1, 3), std::invalid_argument);
  CHECK_THROWS_AS(multiply(1, 2, 2, 3), std::invalid_argument);
  CHECK_THROWS_AS(multiply(1, 2, 1, 2), std::invalid_argument);
  CHECK_NOTHROW(multiply(1, 2, 1, 3));

  std::vector<float> const wide(40);
  PackedMatrix const two_panels({wide.data(), 40, 1, 1}, {}, Precision::int8);
  auto const part = [&](Precision precision, std::ptrdiff_t first, std::ptrdiff_t n) {
    two_panels.multiply(PackedRows({memory.data(), 1, 1, 1}, precision), {memory.data() + 1, 1, n, n}, {}, first);
  };
  CHECK_THROWS_AS(part(Precision::int8, 32, 9), std::invalid_argument);
  CHECK_THROWS_AS(part(Precision::int8, 16, 4), std::invalid_argument);
  CHECK_THROWS_AS(part(Precision::int8, -32, 4), std::invalid_argument);
  CHECK_THROWS_AS(part(Precision::int8, 64, 0), std::invalid_argument);
  CHECK_THROWS_AS(part(Precision::float32, 0, 4), std::invalid_argument);
  CHECK_NOTHROW(part(Precision::int8, 32, 8));
}
