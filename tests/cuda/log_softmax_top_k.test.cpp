// SPDX-License-Identifier: Apache-2.0
// On a device; skipped where there is none. What the kernel computes is tested without one: unit/cuda_host/emulation.numeric.
#include <sluice/core/query.hpp>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_plan.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/line_cases.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Expander<cuda::LogSoftmaxTopK, cuda::Scores<float>>);
static_assert(Expander<cuda::LogSoftmaxTopK, cuda::Scores<__half>>);
static_assert(Expander<cuda::LogSoftmaxTopK, cuda::Scores<__nv_bfloat16>>);

template <class T>
using Bits = typename cuda::detail::FormatOf<T>::Bits;

/// A case's scores on the device.
template <class T>
cuda::Scores<T> view(LineCase<cuda::detail::FormatOf<T>> const& lines, OnDevice<Bits<T>> const& memory) {
  cuda::Scores<T> scores;
  scores.data = reinterpret_cast<T const*>(lines.lines(memory.data()));
  scores.rows = static_cast<std::ptrdiff_t>(lines.rows), scores.columns = static_cast<std::ptrdiff_t>(lines.size);
  scores.stride = static_cast<std::ptrdiff_t>(lines.stride);
  return scores;
}

/// Whether the device has bulk copies and clusters.
bool has_rings() {
  int major = 0;
  cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  return major >= 9;
}

template <class T>
void check_case(std::uint64_t seed, std::size_t most, std::size_t rows) {
  LineCase<cuda::detail::FormatOf<T>> lines(seed, most, rows);
  lines.tokens.clear();
  INFO("seed " << seed << ", " << lines.rows << " x " << lines.size << ", stride " << lines.stride << ", offset "
               << lines.offset << ", k = " << lines.k << ", bias " << !lines.bias.empty());
  OnDevice<Bits<T>> const memory(lines.memory);
  cuda::LogSoftmaxTopK expander(lines.bias, {}, {.mapped_answers = seed % 3 > 0, .early_starts = seed % 2 > 0});
  auto const answer = expander.expand(view<T>(lines, memory), lines.queries, {});
  REQUIRE(answer.size() == lines.rows);
  for (std::size_t row = 0; row < lines.rows; ++row) {
    INFO("row " << row << ", best " << lines.queries[row].best);
    lines.check(row, answer[row]);
  }
}

bool equal(Line const& a, Line const& b) {
  return a.valid == b.valid && a.log_sum_exp == b.log_sum_exp &&
         std::equal(a.best.begin(), a.best.end(), b.best.begin(), b.best.end()) &&
         std::equal(a.probes.begin(), a.probes.end(), b.probes.begin(), b.probes.end());
}

std::vector<float> random_scores(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> x(size);
  for (auto& value : x) value = normal(random);
  return x;
}

/// Lines on the device and a plain task over them.
struct Plain {
  Plain(std::size_t rows, std::size_t size, std::int32_t k, std::uint64_t seed)
      : rows_(rows),
        size_(size),
        k_(k),
        scores(random_scores(seed, rows * size)),
        best(rows * static_cast<std::size_t>(k)),
        results(rows) {}

  cuda::LineTask<float> task() const {
    // [task]
    cuda::LineTask<float> task;
    task.scores = {scores.data(), static_cast<std::ptrdiff_t>(rows_), static_cast<std::ptrdiff_t>(size_),
                   static_cast<std::ptrdiff_t>(size_)};
    task.k = task.query.best = k_;
    task.best = best.data(), task.results = results.data();
    // [/task]
    return task;
  }
  /// Against double precision.
  void check() const {
    auto const x = scores.get();
    auto const listed = best.get();
    auto const result = results.get();
    for (std::size_t row = 0; row < rows_; ++row) {
      std::span<float const> const line(x.data() + row * size_, size_);
      Query const query{.best = k_};
      auto const k = static_cast<std::size_t>(k_);
      check_line({std::span(listed).subspan(row * k, static_cast<std::size_t>(result[row].count)),
                  {},
                  result[row].log_sum_exp,
                  0,
                  result[row].valid != 0},
                 expected_line<float>(line, Kind::logits, query), query);
    }
  }

  std::size_t rows_, size_;
  std::int32_t k_;
  OnDevice<float> scores;
  OnDevice<Candidate> best;
  OnDevice<cuda::LineResult> results;
};

}  // namespace

TEMPLATE_TEST_CASE("cuda log_softmax_top_k answers as double precision does", "[cuda][types]", float, __half,
                   __nv_bfloat16) {
  if (no_device()) return;
  for (std::uint64_t seed = 0; seed < rounds(400); ++seed) check_case<TestType>(seed, 5000, 20);
  for (std::uint64_t seed = 1000; seed < 1000 + rounds(60); ++seed) check_case<TestType>(seed, 300000, 4);
  for (std::uint64_t seed = 2000; seed < 2000 + rounds(6); ++seed) check_case<TestType>(seed, 40000, 700);
}

TEMPLATE_TEST_CASE("cuda log_softmax_top_k lists 33 to 64 of lines of odd lengths at odd addresses", "[cuda][types]",
                   float, __half, __nv_bfloat16) {
  if (no_device()) return;
  using Format = cuda::detail::FormatOf<TestType>;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0, 3);
  cuda::LogSoftmaxTopK expander;
  for (std::size_t const size : {8191, 50257, 131073}) {
    std::size_t const rows = 3, stride = size + 2;  // so that every line begins at another odd place
    std::vector<Bits<TestType>> memory(1 + rows * stride + 16);
    for (auto& bits : memory) bits = encode<Format>(normal(random));
    OnDevice<Bits<TestType>> const device(memory);
    auto scores = cuda::scores<TestType>(reinterpret_cast<TestType const*>(device.data()) + 1, rows,
                                         static_cast<std::ptrdiff_t>(size));
    scores.stride = static_cast<std::ptrdiff_t>(stride);
    auto const step = static_cast<std::int32_t>(32 / rounds(32));  // the largest always
    for (std::int32_t k = 64; k > 32; k -= step) {
      std::vector<Query> const queries(rows, Query{.best = k});
      auto const answer = expander.expand(scores, queries, {});
      for (std::size_t row = 0; row < rows; ++row) {
        INFO("V = " << size << ", k = " << k << ", row " << row);
        std::vector<float> line(size);
        for (std::size_t v = 0; v < size; ++v) line[v] = Format::value(memory[1 + row * stride + v]);
        auto const expected = expected_line<float>(line, Kind::logits, queries[row]);
        check_line(answer[row], expected, queries[row]);
        REQUIRE(answer[row].best.size() == static_cast<std::size_t>(k));
        for (std::size_t i = 0; i < answer[row].best.size(); ++i)
          REQUIRE(answer[row].best[i].token == expected.list[i]);  // ties, of which halves have many
      }
    }
  }
}

TEST_CASE("cuda log_softmax_top_k names tokens by their index, where scores are those of some", "[cuda]") {
  if (no_device()) return;
  for (std::size_t const size : {100, 50257}) {
    Plain const plain(4, size, 40, size);
    std::vector<Token> tokens;
    for (std::size_t v = 0; v < size; ++v) tokens.push_back(static_cast<Token>(3 * v + 1));
    OnDevice<Token> const names(tokens);
    cuda::LogSoftmaxTopK expander;
    expander.enqueue(plain.task(), nullptr);
    auto const places = plain.best.get();
    auto task = plain.task();
    task.tokens = names.data();
    expander.enqueue(task, nullptr);
    auto const named = plain.best.get();
    REQUIRE(named.size() == places.size());
    for (std::size_t i = 0; i < named.size(); ++i) {
      CHECK(named[i].token == 3 * places[i].token + 1);
      CHECK(named[i].log_prob == places[i].log_prob);
    }
  }
}

TEST_CASE("cuda log_softmax_top_k answers a line the same, bit for bit, in any company", "[cuda]") {
  if (no_device()) return;
  for (std::size_t const size : {1000, 32001, 250000}) {
    std::size_t const rows = rounds(1200), stride = size + 3;
    OnDevice<float> const memory(random_scores(size, rows * stride));
    Query const query{.best = 10};
    std::vector<Query> const queries(rows, query);
    cuda::LogSoftmaxTopK together, single;
    cuda::Scores<float> all;
    all.data = memory.data(), all.rows = static_cast<std::ptrdiff_t>(rows);
    all.columns = static_cast<std::ptrdiff_t>(size), all.stride = static_cast<std::ptrdiff_t>(stride);
    auto const answer = together.expand(all, queries, {});
    for (std::size_t row = 0; row < rows; row += 17) {
      auto one = all;
      one.data += row * stride, one.rows = 1;
      INFO("V = " << size << ", row " << row);
      CHECK(equal(answer[row], single.expand(one, std::span(&query, 1), {})[0]));
    }
  }
}

TEMPLATE_TEST_CASE("cuda log_softmax_top_k says the same, bit for bit, through rings and by clusters", "[cuda][types]",
                   float, __half, __nv_bfloat16) {
  if (no_device() || !has_rings()) return;
  auto const of_cluster = cuda::detail::line_clusters<cuda::detail::FormatOf<TestType>>();
  int processors = 0, clustered = 0;
  cuda::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  for (std::uint64_t seed = 0; seed < rounds(120); ++seed) {
    auto const large = seed % 4 == 0;
    LineCase<cuda::detail::FormatOf<TestType>> lines(seed,
                                                     seed % 4 == 0   ? 300000
                                                     : seed % 4 == 2 ? 60000
                                                                     : 5000,
                                                     seed % 16 == 1 ? 700 : 20);
    INFO("seed " << seed << ", " << lines.rows << " x " << lines.size << ", stride " << lines.stride << ", offset "
                 << lines.offset << ", k = " << lines.k);
    OnDevice<Bits<TestType>> const memory(lines.memory);
    cuda::LogSoftmaxTopK direct(lines.bias), ring(lines.bias, {}, {.loads = cuda::Loads::ring});
    cuda::LogSoftmaxTopK clusters(lines.bias, {}, {.clusters = true});
    auto const scores = view<TestType>(lines, memory);
    auto const expected = direct.expand(scores, lines.queries, {});
    cuda::LineTask<TestType> task;
    task.scores = scores, task.k = lines.k;
    clustered +=
        cuda::detail::LinePlan<TestType>(task, processors, {}, 0, of_cluster).launch(nullptr, nullptr).clusters;
    for (int i = 0; i < 3; ++i) {
      for (auto* const other : {&ring, &clusters}) {
        auto const answer = other->expand(scores, lines.queries, {});
        for (std::size_t row = 0; row < lines.rows; ++row) {
          INFO("row " << row << ", clusters " << (other == &clusters));
          REQUIRE(equal(answer[row], expected[row]));
        }
      }
    }
  }
  CHECK((of_cluster == 0 || clustered > 0 || rounds(120) < 120));
}

TEST_CASE("cuda log_softmax_top_k says the same a thousand times, on two streams at once", "[cuda]") {
  if (no_device()) return;
  Plain const a(5, 32000, 50, 1), b(64, 50257, 7, 2);
  auto const times = static_cast<int>(rounds(1000));
  cuda::LogSoftmaxTopK first, second;
  cudaStream_t streams[2];
  for (auto& stream : streams) cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  first.enqueue(a.task(), streams[0]), second.enqueue(b.task(), streams[1]);
  cuda::check(cudaDeviceSynchronize(), "first run");
  a.check(), b.check();
  auto const best_a = a.best.get(), best_b = b.best.get();
  for (int i = 1; i <= times; ++i) {
    first.enqueue(a.task(), streams[0]), second.enqueue(b.task(), streams[1]);
    if (i % 100 != 0 && i != times) continue;
    cuda::check(cudaDeviceSynchronize(), "run");
    CHECK(a.best.get() == best_a);
    CHECK(b.best.get() == best_b);
  }
  for (auto& stream : streams) cuda::check(cudaStreamDestroy(stream), "stream");
}

TEST_CASE("cuda log_softmax_top_k says the same in every run, lists or no lists", "[cuda]") {
  if (no_device()) return;
  for (std::int32_t const k : {1, 5, 64}) {
    Plain const plain(7, 128257, k, 3);
    cuda::LogSoftmaxTopK expander;
    expander.enqueue(plain.task(), nullptr);
    plain.check();
    auto const best = plain.best.get();
    auto const results = plain.results.get();
    for (std::uint64_t i = 0; i < rounds(1000); ++i) {
      cuda::check(cudaMemset(plain.best.data(), 0xff, best.size() * sizeof(Candidate)), "cudaMemset");
      expander.enqueue(plain.task(), nullptr);
      REQUIRE(plain.best.get() == best);
      auto const again = plain.results.get();
      for (std::size_t row = 0; row < again.size(); ++row) REQUIRE(again[row].log_sum_exp == results[row].log_sum_exp);
    }
  }
}

TEST_CASE("cuda log_softmax_top_k in a graph sees new data, and survives its workspace growing", "[cuda]") {
  if (no_device()) return;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  Plain small(5, 32000, 5, 1);
  Plain const large(80, 250001, 64, 2);
  cuda::LogSoftmaxTopK expander;

  // Nothing may be allocated while a graph is captured.
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  CHECK_THROWS_AS(expander.enqueue(small.task(), stream), cuda::Error);
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream, &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());

  expander.enqueue(small.task(), stream);
  cuda::check(cudaStreamSynchronize(stream), "warm");
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  // [enqueue]
  expander.enqueue(small.task(), stream);
  // [/enqueue]
  cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  for (std::uint64_t seed = 10; seed < 20; ++seed) {
    small.scores.set(random_scores(seed, 5 * 32000));
    cuda::check(cudaGraphLaunch(runnable, stream), "graph");
    if (seed == 15) expander.enqueue(large.task(), stream);
    cuda::check(cudaStreamSynchronize(stream), "graph");
    small.check();
  }
  large.check();
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}

TEST_CASE("cuda log_softmax_top_k lists more than 64, in a graph too", "[cuda]") {
  if (no_device()) return;
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  Plain lines(5, 32000, 300, 1);
  Plain const many(100, 250001, 65, 2);  // more keys than are sorted at once
  cuda::LogSoftmaxTopK expander;
  expander.enqueue(lines.task(), stream), expander.enqueue(many.task(), stream);
  cuda::check(cudaStreamSynchronize(stream), "run");
  lines.check(), many.check();

  cudaGraph_t graph = nullptr;
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  expander.enqueue(lines.task(), stream);
  cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  for (std::uint64_t seed = 10; seed < 14; ++seed) {
    lines.scores.set(random_scores(seed, 5 * 32000));
    cuda::check(cudaGraphLaunch(runnable, stream), "graph");
    cuda::check(cudaStreamSynchronize(stream), "graph");
    lines.check();
  }
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}
