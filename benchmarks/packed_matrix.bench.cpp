// SPDX-License-Identifier: Apache-2.0
/// \file
/// PackedMatrix beside Eigen, in units of one Eigen product of 1024 x 1024 x 1024 in the same process.
#include <sluice/output/packed_matrix.hpp>

#include "cpu_clock.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using sluice::bench::seconds;

/// Floating-point operations a second of Eigen's product of two square matrices of 1024: the best of ten.
double unit() {
  static double const best = [] {
    Eigen::setNbThreads(1);  // single-threaded, as everything here
    Matrix const a = Matrix::Random(1024, 1024), b = Matrix::Random(1024, 1024);
    Matrix c(1024, 1024);
    auto time = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 10; ++i) {
      time = std::min(time, seconds([&] { c.noalias() = a * b; }));
      benchmark::DoNotOptimize(c.data());
    }
    return 2.0 * 1024 * 1024 * 1024 / time;
  }();
  return best;
}

struct Shape {
  std::ptrdiff_t rows, n, d;
  Matrix weights = Matrix::Random(n, d), x = Matrix::Random(rows, d), y = Matrix::Zero(rows, n);

  explicit Shape(benchmark::State const& state) : rows(state.range(2)), n(state.range(0)), d(state.range(1)) {}
};

template <class Multiply>
void run(benchmark::State& state, Shape& shape, Multiply&& multiply) {
  auto const operations = 2.0 * static_cast<double>(shape.rows * shape.n * shape.d);
  auto best = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    best = std::min(best, seconds(multiply));
    benchmark::DoNotOptimize(shape.y.data());
    benchmark::ClobberMemory();
  }
  state.counters["GF/s"] = operations / best / 1e9;
  state.counters["of_1024"] = operations / best / unit();
  state.counters["weights_GB/s"] = static_cast<double>(shape.n * shape.d) * sizeof(float) / best / 1e9;
}

template <sluice::Precision precision>
void packed_matrix(benchmark::State& state) {
  Shape shape(state);
  sluice::PackedMatrix const matrix({shape.weights.data(), shape.n, shape.d, shape.d}, {}, precision);
  sluice::PackedRows rows;
  run(state, shape, [&] {
    rows.assign({shape.x.data(), shape.rows, shape.d, shape.d}, precision);
    matrix.multiply(rows, {shape.y.data(), shape.rows, shape.n, shape.n});
  });
  state.counters["weights_GB/s"] *= static_cast<double>(matrix.bytes()) / static_cast<double>(shape.n * shape.d * 4);
}

void eigen(benchmark::State& state) {
  Shape shape(state);
  run(state, shape, [&] { shape.y.noalias() = shape.x * shape.weights.transpose(); });
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"n", "d", "rows"});
  for (auto const& [n, d] : {std::pair<std::int64_t, std::int64_t>{8000, 256}, {1024, 256}, {256, 1024}, {32000, 512}})
    for (std::int64_t const rows : {1, 5, 8, 16, 64, 320}) benchmark->Args({n, d, rows});
}

constexpr auto float32 = sluice::Precision::float32, bfloat16 = sluice::Precision::bfloat16,
               int8 = sluice::Precision::int8;
BENCHMARK(packed_matrix<float32>)->Apply(shapes);
BENCHMARK(packed_matrix<bfloat16>)->Apply(shapes);
BENCHMARK(packed_matrix<int8>)->Apply(shapes);
BENCHMARK(eigen)->Apply(shapes);

}  // namespace
