// SPDX-License-Identifier: Apache-2.0
// PackedMatrix and oneDNN's products with weights in its own packed layout; in float32 also OpenBLAS and Eigen. All
// alternate over the same numbers, one thread. Before the clock starts and after it stops, all must have the same sums.
//
// oneDNN gets its inputs in the type it multiplies (float32, bfloat16, unsigned bytes with signed ones) and writes its
// sums (float32, float32, 32-bit integers): it converts nothing, neither inputs nor sums. Ours writes float32 always; in
// int8 it is therefore also set beside oneDNN writing float32, multiplied by a scale for each output (ours adds a scale
// for each row, what makes the inputs' offset good, and a bias). On processors without VNNI its sums of 8-bit weights
// overflow, so its weights have 7 bits there, and its sums are held against an exact product of those. Of its two operations (matmul, inner product) the
// faster counts; the label has its name for the code that ran.
//
// Counters (medians over the rounds):
//   ours_GFs            2 rows n d / our time, the rows already in our precision
//   assigned_GFs        the same with PackedRows::assign, that is, rounding of the rows
//   onednn_GFs          the same of oneDNN
//   ours_over_onednn    oneDNN's time / ours, the rows already in our precision
//   onednn_floats_GFs, ours_over_onednn_floats   likewise, where it writes scaled float32 (int8)
//   openblas_GFs, ours_over_openblas, eigen_GFs, ours_over_eigen   likewise, float32
//
// SLUICE_BENCH_ALL: n x d of 32,000 x 512 too. The program starts itself again in an environment that lets OpenBLAS choose
// its kernels, and OpenMP no second thread.

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/quantise.hpp>
#include <sluice/output/packed_matrix.hpp>

#include "onednn_product.hpp"
#include "yardstick.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#ifdef SLUICE_OPENBLAS
#include <cblas.h>
#endif

namespace {

using namespace sluice;
using namespace sluice::bench;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Shape {
  std::ptrdiff_t n, d;
};

constexpr char const* names[] = {"float32", "bfloat16", "int8"};

MatrixView<float const> view(Matrix const& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols(), matrix.cols()};
}

/// The bytes of a matrix [rows, columns], each row whole multiples of its scale.
template <class Byte>
struct Bytes {
  std::ptrdiff_t rows, columns;
  AlignedVector<Byte> numbers;  // as Eigen's: rows begin with a cache line
  Eigen::VectorXf scales;

  /// \param shift  is added to every number
  Bytes(Matrix const& from, int shift)
      : rows(from.rows()), columns(from.cols()), numbers(static_cast<std::size_t>(from.size())), scales(from.rows()) {
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      scales[r] = detail::int8::quantise(view(from)[r], numbers.data() + r * columns, shift);
  }
};

/// A product [rows, n] of x [rows, d] and weights [n, d], and what oneDNN takes for it.
struct Problem {
  static constexpr int shift = 128;  // oneDNN's unsigned inputs are larger by that
  Precision precision;
  Matrix const &weights, &x;
  std::ptrdiff_t rows = x.rows(), n = weights.rows(), d = weights.cols();
  std::vector<onednn::Product> peers;
  std::vector<onednn::Product> scaled;  // that write scaled float32, in int8

  Problem(Precision kind, Matrix const& w, Matrix const& inputs) : precision(kind), weights(w), x(inputs) {
    auto const whole = [](Matrix const& m) { return onednn::view(m.data(), onednn::Type::f32, m.rows(), m.cols()); };
    auto const rounded = [&](Matrix const& m) {
      return onednn::converted(whole(m), {{m.rows(), m.cols()}, onednn::Type::bf16, onednn::Tag::ab});
    };
    switch (precision) {
      case Precision::float32: add(whole(x), whole(weights), onednn::Type::f32); break;
      case Precision::bfloat16: add(rounded(x), rounded(weights), onednn::Type::f32); break;
      case Precision::int8:
        inputs8 = std::make_unique<Bytes<std::uint8_t>>(x, shift);
        weights8 = std::make_unique<Bytes<std::int8_t>>(weights, 0);
        if (halved())
          for (auto& number : weights8->numbers) number = static_cast<std::int8_t>(number / 2);
        add(onednn::view(inputs8->numbers.data(), onednn::Type::u8, rows, d),
            onednn::view(weights8->numbers.data(), onednn::Type::s8, n, d), onednn::Type::s32);
        for (auto const operation : {onednn::Operation::matmul, onednn::Operation::inner_product})
          if (auto peer = onednn::Product::make(
                  operation, onednn::view(inputs8->numbers.data(), onednn::Type::u8, rows, d),
                  onednn::view(weights8->numbers.data(), onednn::Type::s8, n, d), onednn::Type::f32, rows, n, d,
                  {weights8->scales.begin(), weights8->scales.end()}))
            scaled.push_back(std::move(*peer));
        break;
    }
  }

  /// Whether oneDNN's weights are half of ours: without VNNI it adds pairs of products in 16 bits, which overflow where
  /// weights have 8 bits (its developer guide, "Nuances of int8 computations").
  bool halved() const {
    return precision == Precision::int8 && !__builtin_cpu_supports("avx512vnni") && !__builtin_cpu_supports("avxvnni");
  }

  /// What a peer's sums mean where its weights are half of ours.
  Matrix halved_product() const {
    using Integers = Eigen::Matrix<std::int8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using Inputs = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Matrix const w = Eigen::Map<Integers const>(weights8->numbers.data(), n, d).cast<float>();
    Matrix const in = Eigen::Map<Inputs const>(inputs8->numbers.data(), rows, d).cast<float>().array() - shift;
    Matrix const sums = in * w.transpose();  // below 2^24: exact
    return inputs8->scales.asDiagonal() * sums * weights8->scales.asDiagonal();
  }

  /// A peer's sums converted to floats.
  Matrix meaning(onednn::Product const& peer) const {
    if (precision != Precision::int8) return Eigen::Map<Matrix const>(static_cast<float const*>(peer.sums()), rows, n);
    using Integers = Eigen::Matrix<std::int32_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::Map<Integers const> const sums(static_cast<std::int32_t const*>(peer.sums()), rows, n);
    Eigen::Map<Eigen::Matrix<std::int8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> const> const w(
        weights8->numbers.data(), n, d);
    auto const excess = (shift * w.cast<std::int32_t>().rowwise().sum().transpose()).eval();
    return inputs8->scales.asDiagonal() * (sums.rowwise() - excess).cast<float>() * weights8->scales.asDiagonal();
  }

  /// The same for a peer that has multiplied its sums by the scales of the outputs.
  Matrix meaning_of_scaled(onednn::Product const& peer) const {
    Eigen::Map<Matrix const> const y(static_cast<float const*>(peer.sums()), rows, n);
    Eigen::Map<Eigen::Matrix<std::int8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> const> const w(
        weights8->numbers.data(), n, d);
    Eigen::RowVectorXf const excess =
        (shift * w.cast<std::int32_t>().rowwise().sum().transpose()).cast<float>() * weights8->scales.asDiagonal();
    return inputs8->scales.asDiagonal() * (y.rowwise() - excess);
  }

 private:
  void add(dnnl::memory const& in, dnnl::memory const& packed, onednn::Type sums) {
    for (auto const operation : {onednn::Operation::matmul, onednn::Operation::inner_product})
      if (auto peer = onednn::Product::make(operation, in, packed, sums, rows, n, d)) peers.push_back(std::move(*peer));
  }

  std::unique_ptr<Bytes<std::uint8_t>> inputs8;
  std::unique_ptr<Bytes<std::int8_t>> weights8;
};

/// Numbers are in [-1, 1]: another order of summation changes a hundredth of this, wrongly rounded inputs several times
/// this.
bool same(Matrix const& a, Matrix const& b, std::ptrdiff_t d) {
  return (a - b).cwiseAbs().maxCoeff() <= 1e-4f * std::sqrt(static_cast<float>(d));  // false for NaN
}

void compare(benchmark::State& state, Precision precision, Shape const& shape, std::ptrdiff_t rows) {
  one_thread();
  auto const n = shape.n, d = shape.d;
  static Matrix weights;
  if (weights.rows() != n || weights.cols() != d) weights = Matrix::Random(n, d);
  Matrix const x = Matrix::Random(rows, d);
  Matrix y = Matrix::Zero(rows, n), z = y;
  MatrixView<float> const out{y.data(), rows, n, n};
  PackedMatrix const matrix(view(weights), {}, precision);
  PackedRows const ready(view(x), precision);
  PackedRows assigned;
  Problem problem(precision, weights, x);

  auto const operations = 2.0 * static_cast<double>(rows * n * d);
  auto const product = [&] { matrix.multiply(ready, out); };
  product();
  // Many calls, since one takes microseconds; several calls before, until the caches have recovered from the other
  // products.
  auto const once = bench::seconds(product);
  auto const times = once < 8e-3 ? std::max(4, static_cast<int>(5e-4 / once)) : 1;
  Turns turns(true);
  auto const add = [&](auto work) {
    work();
    return turns.add([=] {
      for (int i = 0; i < times; ++i) work();
      benchmark::ClobberMemory();
    });
  };
  auto const ours = add(product);
  auto const with_assigning = add([&] {
    assigned.assign(view(x), precision);
    matrix.multiply(assigned, out);
  });

  std::vector<std::pair<std::size_t, std::string>> onednn;
  for (auto& peer : problem.peers) onednn.emplace_back(add([&peer] { peer.run(); }), peer.name());
  std::vector<std::size_t> floats;
  for (auto& peer : problem.scaled) floats.push_back(add([&peer] { peer.run(); }));
  std::vector<std::pair<char const*, std::size_t>> others;
  if (precision == Precision::float32) {
    others.emplace_back("eigen", add([&] { z.noalias() = x * weights.transpose(); }));
    if (!same(y, z, d)) return state.SkipWithError("Eigen's product differs");
#ifdef SLUICE_OPENBLAS
    openblas_set_num_threads(1);
    others.emplace_back("openblas", add([&] {
                          auto const v = static_cast<int>(n), depth = static_cast<int>(d), m = static_cast<int>(rows);
                          auto const *const w = weights.data(), *const in = x.data();
                          if (m == 1)
                            cblas_sgemv(CblasRowMajor, CblasNoTrans, v, depth, 1, w, depth, in, 1, 0, z.data(), 1);
                          else
                            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, v, depth, 1, in, depth, w, depth, 0,
                                        z.data(), v);
                        }));
    if (!same(y, z, d)) return state.SkipWithError("OpenBLAS's product differs");
#endif
  }

  Matrix const expected = problem.halved() ? problem.halved_product() : y;
  auto const agreed = [&] {
    return std::ranges::all_of(problem.peers,
                               [&](auto const& peer) { return same(expected, problem.meaning(peer), d); }) &&
           std::ranges::all_of(problem.scaled,
                               [&](auto const& peer) { return same(expected, problem.meaning_of_scaled(peer), d); });
  };
  if (!agreed()) return state.SkipWithError("oneDNN's product differs");
  for (auto _ : state) turns.round();
  if (!agreed()) return state.SkipWithError("oneDNN's product differs after others have run");

  auto const speed = [&](std::size_t who) { return 1e-9 * operations * times / turns.seconds(who); };
  state.counters["ours_GFs"] = speed(ours);
  state.counters["assigned_GFs"] = speed(with_assigning);
  auto label = "ours " + std::string(instruction_set(precision));
  if (!onednn.empty()) {
    auto const& [who, name] =
        *std::ranges::max_element(onednn, {}, [&](auto const& peer) { return speed(peer.first); });
    others.emplace(others.begin(), "onednn", who);
    label += ", oneDNN " + name;
  }
  if (!floats.empty()) others.emplace_back("onednn_floats", *std::ranges::max_element(floats, {}, speed));
  for (auto const& [name, who] : others) {
    state.counters[std::string(name) + "_GFs"] = speed(who);
    state.counters[std::string("ours_over_") + name] = turns.ratio(who, ours);
  }
  state.SetLabel(label);
}

void register_all() {
  std::vector<Shape> shapes{{8000, 256}, {1024, 256}, {256, 1024}};
  if (all_shapes()) shapes.push_back({32000, 512});
  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (auto const shape : shapes)
      for (std::ptrdiff_t const rows : {1, 5, 16, 64, 320}) {
        auto const full = std::string("peer_onednn/") + names[static_cast<std::size_t>(precision)] +
                          "/n:" + std::to_string(shape.n) + "/d:" + std::to_string(shape.d) +
                          "/rows:" + std::to_string(rows);
        auto const run = [=](benchmark::State& state) { compare(state, precision, shape, rows); };
        benchmark::RegisterBenchmark(full.c_str(), run)->Unit(benchmark::kMillisecond);
      }
}

/// Libraries have read the environment before main() runs.
bool environment_changed() {
  auto const* const threads = std::getenv("OMP_NUM_THREADS");
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr && threads != nullptr && std::string_view(threads) == "1")
    return false;
  return unsetenv("OPENBLAS_CORETYPE") == 0 && setenv("OMP_NUM_THREADS", "1", 1) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (environment_changed()) execv("/proc/self/exe", argv);
  auto const* const onednn = dnnl::version();
  benchmark::AddCustomContext("onednn", std::to_string(onednn->major) + "." + std::to_string(onednn->minor) + "." +
                                            std::to_string(onednn->patch));
  benchmark::AddCustomContext("eigen", std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) +
                                           "." + std::to_string(EIGEN_MINOR_VERSION));
#ifdef SLUICE_OPENBLAS
  benchmark::AddCustomContext("openblas", openblas_get_config());
#endif
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
