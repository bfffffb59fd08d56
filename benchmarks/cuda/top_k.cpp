// SPDX-License-Identifier: Apache-2.0
// Compares cuda::LogSoftmaxTopK with its limits and with other ways of doing the same; one line of JSON per figure.
//
//   sluice.bench.cuda.top_k [--shapes usual|all|smoke] [--seconds N] [--list]
//   sluice.bench.cuda.top_k --rows 320 --columns 250000 --k 5 [--type float32|float16|bfloat16] [--list]
//
// The second form runs only sluice, for one shape, for use with a profiler. "sluice" uses direct loads; "sluice, ring"
// uses rings (Loads::ring) on devices that support them, "sluice, clusters" StepOptions::clusters, for few lines. Each way's answers are compared with double precision before
// it is timed. Inputs are cold: they alternate until together they are four times as large as the L2 cache; if one fits
// into it, it is also timed warm. Exit code 1 if an answer was wrong, 3 if there is no device, 4 if there was not
// enough time for all shapes.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>

#include <device_array.hpp>
#include <device_work.hpp>
#include <graph_timer.hpp>
#include <peer.hpp>
#include <program.hpp>
#include <record.hpp>
#include <reference.hpp>
#include <shapes.hpp>
#if defined(SLUICE_SORTED_LINES)
#include <sorted_lines.hpp>
#endif

#if defined(SLUICE_CUBLAS)
#include <cublas_v2.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace sluice;
using namespace sluice::bench;

namespace {

Data data_of(Shape const& shape) {
  for (auto const data : {Data::normal, Data::ascending, Data::equal, Data::masked})
    if (shape.data == name(data)) return data;
  throw std::invalid_argument("no such data: " + std::string(shape.data));
}

/// The inputs of a shape, and the ways of answering it.
template <class T>
class Bench {
  using Format = cuda::detail::FormatOf<T>;
  using Bits = typename Format::Bits;

 public:
  Bench(Machine& machine, Shape const& shape)
      : machine_(&machine),
        shape_(shape),
        sets_(cold_sets(shape.bytes(), machine.cache)),
        size_(static_cast<std::size_t>(shape.rows * shape.columns)),
        scores_(size_ * static_cast<std::size_t>(sets_)),
        best_(static_cast<std::size_t>(shape.rows * shape.k)) {
    fill_scores<Format>(scores_.data(), static_cast<std::int64_t>(scores_.size()), shape.columns, 1, data_of(shape));
    if (shape.bias) {
      DeviceArray<std::uint32_t> random(static_cast<std::size_t>(shape.columns));
      fill_scores<cuda::detail::Float32>(random.data(), shape.columns, shape.columns, 2);
      for (auto const bits : random.get(0, random.size())) bias_.push_back(0.1f * cuda::detail::Float32::value(bits));
      device_bias_ = DeviceArray<float>(bias_.size());
      device_bias_.set(bias_);
    }
    for (auto const row : std::set<std::int64_t>{0, shape.rows / 2, shape.rows - 1}) {
      auto const columns = static_cast<std::size_t>(shape.columns);
      auto const bits = scores_.get(static_cast<std::size_t>(row) * columns, columns);
      std::vector<float> line(columns);
      for (std::size_t v = 0; v < columns; ++v) line[v] = Format::value(bits[v]) + (bias_.empty() ? 0.0f : bias_[v]);
      references_.emplace_back(row, Reference(line, shape.k));
    }
  }

  void run() {
    time(ours("sluice", {}));
    if (machine_->rings) time(ours("sluice, ring", {.loads = cuda::Loads::ring}));
    if (machine_->rings && shape_.rows <= 16) time(ours("sluice, clusters", {.clusters = true}));
    if (shape_.experiment == "all") return;
    time_read();
    if (shape_.experiment == "peers") {
      Place const place{device_bias_.data(), best_.data(), machine_->processors};
      for (auto const& peer :
           {online_softmax(shape_, place), thread_lists(shape_, place, false), thread_lists(shape_, place, true)}) {
        if (peer) time(*peer);
      }
      if constexpr (std::is_same_v<Format, cuda::detail::Float32>) time_sorting();
    }
    if (shape_.experiment == "fused") {
      if constexpr (std::is_same_v<Format, cuda::detail::Float32>) time_passes();
    }
  }

 private:
  Bits const* set(int i) const { return scores_.data() + size_ * static_cast<std::size_t>(i); }

  /// \throws std::runtime_error  if an answer is wrong
  void check(bool exact) {
    for (auto const& [row, reference] : references_) {
      auto const k = static_cast<std::size_t>(shape_.k);
      auto const answer = best_.get(static_cast<std::size_t>(row) * k, k);
      try {
        reference.check(answer, exact ? 2e-5 : 1e-3, exact);
      } catch (std::runtime_error const& error) {
        throw std::runtime_error("line " + std::to_string(row) + ", " + error.what());
      }
    }
  }

  void time(Peer const& peer) {
    Record record(peer.name, shape_);
    record.add("launches", peer.launches).add("workspace", peer.workspace);
    try {
      best_.poison();
      auto const stream = machine_->timer.stream();
      peer.work(set(0), stream);
      cuda::check(cudaStreamSynchronize(stream), peer.name.c_str());
      check(peer.exact);
    } catch (std::runtime_error const& error) {
      machine_->wrong = true;
      record.add("error", error.what()).write(std::cout);
      return;
    }
    measure(
        record, [&](int i, cudaStream_t stream) { peer.work(set(i), stream); }, peer.graph);
  }

  /// Cold, and warm if an input fits into the cache.
  template <class Work>
  void measure(Record const& record, Work const& work, bool graph = true) {
    Record(record).add("cold", machine_->timer(sets_, work, graph)).write(std::cout);
    if (shape_.bytes() <= machine_->cache / 4 * 3)
      Record(record).add("warm", machine_->timer(1, work, graph)).write(std::cout);
  }
  Peer ours(char const* name, cuda::StepOptions const& step) {
    auto const expander =
        std::make_shared<cuda::LogSoftmaxTopK>(std::span<float const>(bias_), cuda::Allocator{}, step);
    auto const results = std::make_shared<DeviceArray<cuda::LineResult>>(static_cast<std::size_t>(shape_.rows));
    Peer peer{name};
    peer.exact = true;
    peer.work = [=, this](void const* scores, cudaStream_t stream) {
      cuda::LineTask<T> task;
      task.scores = {static_cast<T const*>(scores), shape_.rows, shape_.columns, shape_.columns};
      task.k = task.query.best = shape_.k;
      task.best = best_.data(), task.results = results->data();
      expander->enqueue(task, stream);
    };
    peer.work(set(0), machine_->timer.stream());
    cuda::check(cudaStreamSynchronize(machine_->timer.stream()), "LogSoftmaxTopK");
    peer.workspace = expander->workspace();
    return peer;
  }

  /// Only reads the scores once.
  void time_read() {
    DeviceArray<std::uint32_t> to(1);
    Record record("read only", shape_);
    record.add("launches", 1).add("workspace", 0);
    measure(record, [&](int i, cudaStream_t stream) {
      auto const begin = reinterpret_cast<std::uintptr_t>(set(i)) / 16 * 16;
      launch_read_only(reinterpret_cast<void const*>(begin), shape_.bytes(), to.data(), machine_->processors, stream);
    });
  }

  void time_sorting() {
#if defined(SLUICE_SORTED_LINES)
    if (SortedLines::workspace(shape_.rows, shape_.columns) > std::size_t{4} << 30) return;
    for (auto const sort : {Sort::segmented_sort, Sort::segmented_radix_sort}) {
      auto const lines = std::make_shared<SortedLines>(sort, shape_.rows, shape_.columns);
      Peer peer{sort == Sort::segmented_sort ? "CUB segmented sort" : "CUB segmented radix sort"};
      peer.launches = 4;
      peer.workspace = lines->workspace();
      peer.graph = false;
      peer.work = [this, lines](void const* scores, cudaStream_t stream) {
        lines->enqueue(static_cast<float const*>(scores), shape_.k, best_.data(), stream);
      };
      time(peer);
    }
#endif
  }

  /// Bias, softmax and search one after another, together and separately; and the product before them.
  void time_passes() {
    auto const passes = std::make_shared<DeviceArray<float>>(size_);
    auto const columns = shape_.columns;
    auto const bias = [=, this](void const* scores, cudaStream_t stream) {
      launch_bias_pass(static_cast<float const*>(scores), device_bias_.data(), shape_.rows, columns, passes->data(),
                       stream);
    };
    auto const softmax = [=, this](void const*, cudaStream_t stream) {
      launch_softmax_pass(passes->data(), shape_.rows, columns, stream);
    };
    auto const search = [=, this](void const*, cudaStream_t stream) {
      launch_search_pass(passes->data(), shape_.rows, columns, shape_.k, best_.data(), stream);
    };
    Peer peer{"separate passes"};
    peer.launches = 3;
    peer.workspace = passes->bytes();
    peer.work = [=](void const* scores, cudaStream_t stream) {
      bias(scores, stream), softmax(scores, stream), search(scores, stream);
    };
    time(peer);
    auto const part = [&](char const* what, auto const& work) {
      measure(Record(what, shape_).add("launches", 1), [&](int i, cudaStream_t stream) { work(set(i), stream); });
    };
    part("separate: bias", bias), part("separate: softmax", softmax), part("separate: search", search);
    time_product(*passes);
  }

  void time_product(DeviceArray<float>& to) {
#if defined(SLUICE_CUBLAS)
    constexpr int depth = 512;
    auto const rows = static_cast<int>(shape_.rows);
    DeviceArray<std::uint32_t> hidden(static_cast<std::size_t>(rows) * depth);
    DeviceArray<std::uint32_t> weights(static_cast<std::size_t>(shape_.columns) * depth);
    fill_scores<cuda::detail::Float32>(hidden.data(), static_cast<std::int64_t>(hidden.size()), depth, 3);
    fill_scores<cuda::detail::Float32>(weights.data(), static_cast<std::int64_t>(weights.size()), depth, 4);
    cublasHandle_t handle = nullptr;
    auto const must = [](cublasStatus_t status) {
      if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
    };
    must(cublasCreate(&handle));
    DeviceArray<unsigned char> workspace(std::size_t{32} << 20);
    must(cublasSetWorkspace(handle, workspace.data(), workspace.bytes()));
    measure(Record("multiplication, float32, d = 512", shape_).add("launches", 1), [&](int, cudaStream_t stream) {
      float const one = 1, zero = 0;
      must(cublasSetStream(handle, stream));
      must(cublasSetWorkspace(handle, workspace.data(), workspace.bytes()));
      must(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, shape_.columns, rows, depth, &one,
                       reinterpret_cast<float const*>(weights.data()), depth,
                       reinterpret_cast<float const*>(hidden.data()), depth, &zero, to.data(), shape_.columns));
    });
    must(cublasDestroy(handle));
#else
    static_cast<void>(to);
#endif
  }

  Machine* machine_;
  Shape shape_;
  int sets_;
  std::size_t size_;
  DeviceArray<Bits> scores_;
  DeviceArray<Candidate> best_;
  std::vector<float> bias_;
  DeviceArray<float> device_bias_;
  std::vector<std::pair<std::int64_t, Reference>> references_;
};

void run(Machine& machine, Shape const& shape) {
  switch (shape.type) {
    case Type::float32: Bench<float>(machine, shape).run(); break;
    case Type::float16: Bench<__half>(machine, shape).run(); break;
    case Type::bfloat16: Bench<__nv_bfloat16>(machine, shape).run(); break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::optional<Shape> one;
  try {
    one = take_shape(arguments);
  } catch (std::invalid_argument const& error) {
    std::cerr << "sluice.bench.cuda.top_k: " << error.what() << '\n';
    return 2;
  }
  return run_program(
      "sluice.bench.cuda.top_k", static_cast<int>(arguments.size()), arguments.data(),
      [&](std::string const& which) { return one ? std::vector<Shape>{*one} : shapes(which); },
      [](char const* name, Shape const& shape) { return Record(name, shape); },
      [](Machine& machine, Shape const& shape) { run(machine, shape); });
}
