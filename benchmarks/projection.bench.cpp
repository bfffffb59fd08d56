// SPDX-License-Identifier: Apache-2.0
// DenseProjection (hidden vectors to the 5 best tokens: product, bias, log-softmax, selection) and another library's
// product followed by LogSoftmaxTopK, alternating over the same numbers, one thread. Each has its own copy of the
// weights. Before the clock starts, all must give the same tokens, and log-probabilities within 1e-3.
//
// Counters (medians over the rounds):
//   us            of DenseProjection
//   GF/s          2 rows V d / that
//   of_1024       GF/s / that of one Eigen product 1024 x 1024 x 1024
//   of_eigen      the time with Eigen's product / ours
//   of_openblas   the time with OpenBLAS's (sgemv where there is one row) / ours, where CMake found it
//   of_float32    bfloat16 and int8: the time of DenseProjection over float32 weights / ours
//   product       the fastest packed product alone, nothing written, as a share of our time
//   of_read       our time / the time to read the packed weights once
//
// SLUICE_BENCH_ALL: V x d of 128,000 x 1024 and 250,000 x 1024 too, and all shapes in bfloat16 and int8. OpenBLAS runs
// the kernels that suit the processor: the variable OPENBLAS_CORETYPE, which forces others, is taken out of the environment.

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/output/packed_matrix.hpp>

#include "separate_passes.hpp"
#include "yardstick.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#ifdef SLUICE_OPENBLAS
#include <cblas.h>
#include <unistd.h>
#endif

namespace {

using namespace sluice;
using namespace sluice::bench;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Shape {
  std::ptrdiff_t vocabulary, depth;
};

constexpr char const* name(Precision precision) {
  switch (precision) {
    case Precision::float32: return "float32";
    case Precision::bfloat16: return "bfloat16";
    case Precision::int8: return "int8";
  }
  return "";
}

/// The weights of one shape, plain and packed; the last ones used are kept.
struct Layer {
  Matrix weights;
  std::vector<float> bias;
  std::array<std::shared_ptr<PackedMatrix const>, 3> kept_packed;

  std::shared_ptr<PackedMatrix const> const& packed(Precision precision) {
    auto& matrix = kept_packed[static_cast<std::size_t>(precision)];
    if (matrix == nullptr)
      matrix = std::make_shared<PackedMatrix const>(
          MatrixView<float const>{weights.data(), weights.rows(), weights.cols(), weights.cols()}, bias, precision);
    return matrix;
  }

  static Layer& of(Shape const& shape) {
    static std::unique_ptr<Layer> kept;
    if (kept == nullptr || kept->weights.rows() != shape.vocabulary || kept->weights.cols() != shape.depth) {
      kept.reset();
      kept = std::make_unique<Layer>(shape);
    }
    return *kept;
  }

  explicit Layer(Shape const& shape)
      : weights(Matrix::Random(shape.vocabulary, shape.depth)), bias(static_cast<std::size_t>(shape.vocabulary)) {
    weights *= 6 / std::sqrt(static_cast<float>(shape.depth));  // logits of deviation 2 for x in [-1, 1]
    array(std::span(bias)) = 0.1f * Eigen::ArrayXf::Random(shape.vocabulary);
  }
};

/// Whether both lists of all lines hold the same tokens, except for swaps due to rounding.
bool same(Expansion const& a, std::vector<std::vector<Candidate>> const& b, float tolerance) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const equal = [tolerance](Candidate x, Candidate y) {
      auto const difference = std::abs(x.log_prob - y.log_prob);
      return difference <= tolerance && (x.token == y.token || difference <= 1e-4f);
    };
    if (!std::ranges::equal(a[i].best, b[i], equal)) return false;
  }
  return true;
}

std::vector<std::vector<Candidate>> copy(Expansion const& expansion) {
  std::vector<std::vector<Candidate>> lists;
  for (std::size_t i = 0; i < expansion.size(); ++i)
    lists.emplace_back(expansion[i].best.begin(), expansion[i].best.end());
  return lists;
}

void product_with_eigen(Matrix const& x, Matrix const& weights, Matrix& y) { y.noalias() = x * weights.transpose(); }

#ifdef SLUICE_OPENBLAS
void product_with_openblas(Matrix const& x, Matrix const& weights, Matrix& y) {
  auto const v = static_cast<int>(weights.rows()), d = static_cast<int>(weights.cols());
  if (x.rows() == 1) cblas_sgemv(CblasRowMajor, CblasNoTrans, v, d, 1, weights.data(), d, x.data(), 1, 0, y.data(), 1);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(x.rows()), v, d, 1, x.data(), d,
                weights.data(), d, 0, y.data(), v);
}
#endif

void compare(benchmark::State& state, Precision precision, Shape const& shape, std::ptrdiff_t rows) {
  one_thread();
  auto& layer = Layer::of(shape);
  auto const packed = layer.packed(precision);
  auto const plain = precision == Precision::float32;
  Matrix const x = Matrix::Random(rows, shape.depth);
  auto const in = hidden(x.data(), rows, shape.depth);
  std::vector<Query> const queries(static_cast<std::size_t>(rows), Query{.best = 5});
  DenseProjection projection(packed), exact(layer.packed(Precision::float32));
  LogSoftmaxTopK selection(layer.bias);
  ProductAlone product_alone;
  Matrix logits(rows, shape.vocabulary);
  auto const select = [&] {
    return selection.expand(scores<float>(logits.data(), rows, shape.vocabulary), queries, {});
  };

  auto const lists = copy(projection.expand(in, queries, {}));
  packed->multiply(in, {logits.data(), rows, shape.vocabulary, shape.vocabulary});
  if (!same(LogSoftmaxTopK().expand(scores<float>(logits.data(), rows, shape.vocabulary), queries, {}), lists, 1e-5f))
    return state.SkipWithError("differs from product and selection");

  Turns turns(true);
  auto const expand = [&](DenseProjection& who) {
    return turns.add([&] { benchmark::DoNotOptimize(who.expand(in, queries, {})[0].best.data()); });
  };
  auto const ours = expand(projection);
  auto const product = turns.add([&] { product_alone(*packed, in); });
  AlignedVector<float> const memory(packed->bytes() / sizeof(float), 1.0f);
  auto const reading = turns.add([&] { read(memory); });
  std::vector<std::pair<char const*, std::size_t>> others;
  if (plain) {
    auto const add = [&](char const* counter, auto const& multiply) {
      multiply(x, layer.weights, logits);
      if (!same(select(), lists, 1e-3f)) state.SkipWithError(counter);
      others.emplace_back(counter, turns.add([&, multiply] {
        multiply(x, layer.weights, logits);
        benchmark::DoNotOptimize(select()[0].best.data());
      }));
    };
    add("of_eigen", product_with_eigen);
#ifdef SLUICE_OPENBLAS
    openblas_set_num_threads(1);
    add("of_openblas", product_with_openblas);
#endif
  } else {
    others.emplace_back("of_float32", expand(exact));
  }
  auto const before = eigen_gflops();
  for (auto _ : state) turns.round();

  auto const gflops = 2e-9 * static_cast<double>(rows * shape.vocabulary * shape.depth) / turns.seconds(ours);
  state.counters["us"] = 1e6 * turns.seconds(ours);
  state.counters["GF/s"] = gflops;
  state.counters["of_1024"] = gflops / median({before, eigen_gflops()});
  for (auto const& [counter, other] : others) state.counters[counter] = turns.ratio(other, ours);
  state.counters["product"] = turns.ratio(product, ours);
  state.counters["of_read"] = turns.ratio(ours, reading);
}

bool const registered = [] {
  std::vector<Shape> shapes{{8000, 256}, {32000, 256}, {32000, 512}, {32000, 1024}};
  if (all_shapes()) shapes.insert(shapes.end(), {{128000, 1024}, {250000, 1024}});
  for (auto const& shape : shapes)  // outermost: the weights of one shape are kept
    for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      if (precision != Precision::float32 && shape.vocabulary == 32000 && shape.depth != 512 && !all_shapes()) continue;
      for (std::ptrdiff_t const rows : {1, 4, 5, 8, 16, 64, 320}) {
        auto const full = std::string("projection/") + name(precision) + "/V:" + std::to_string(shape.vocabulary) +
                          "/d:" + std::to_string(shape.depth) + "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& state) {
          compare(state, precision, shape, rows);
        })->Unit(benchmark::kMillisecond);
      }
    }
  return true;
}();

}  // namespace

#ifdef SLUICE_OPENBLAS
// OpenBLAS has read the environment before main() runs, so the program restarts without the variable.
int main(int argc, char** argv) {
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) {  // NOLINT(concurrency-mt-unsafe): there is one thread
    unsetenv("OPENBLAS_CORETYPE");                    // NOLINT(concurrency-mt-unsafe)
    execv("/proc/self/exe", argv);
  }
  benchmark::AddCustomContext("openblas", openblas_get_config());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
#endif
