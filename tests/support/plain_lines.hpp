// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines in host memory, as if on a device, and a plain task over them. Use host_cuda/ in place of CUDA's headers.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/line/line_task.cuh>

#include <support/device_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::test {

/// Lines on the emulated device and a plain task over them.
struct PlainLines {
  PlainLines(std::size_t rows, std::size_t size, std::int32_t k)
      : rows_(rows), size_(size), k_(k), scores(rows * size), best(rows * static_cast<std::size_t>(k)), results(rows) {
    std::mt19937_64 random(rows * size);
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> x(rows * size);
    for (auto& value : x) value = normal(random);
    scores.set(x);
  }
  cuda::LineTask<float> task() const {
    cuda::LineTask<float> task;
    auto const columns = static_cast<std::ptrdiff_t>(size_);
    task.scores = {scores.data(), static_cast<std::ptrdiff_t>(rows_), columns, columns};
    task.k = task.query.best = k_;
    task.best = best.data(), task.results = results.data();
    return task;
  }
  /// Waits, returns the answer, and clears it.
  std::vector<Candidate> answer() const {
    cuda::check(cudaStreamSynchronize(nullptr), "wait");
    auto const found = best.get();
    cuda::detail::fill_now(best.data(), 0xff, found.size() * sizeof(Candidate));
    return found;
  }

  std::size_t rows_, size_;
  std::int32_t k_;
  OnDevice<float> scores;
  OnDevice<Candidate> best;
  OnDevice<cuda::LineResult> results;
};

}  // namespace sluice::test
