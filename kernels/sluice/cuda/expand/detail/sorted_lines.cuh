// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lists of any length, in three launches: one for the sums and the probes, one that makes keys, and one that sorts
/// those that may be listed and writes the lists.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/select/detail/line_order.cuh>
#include <sluice/cuda/select/detail/line_order_launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// How many lines of a task are listed at once (at most 16 million scores), and the memory for that.
template <class T>
class SortedLines {
 public:
  /// \throws Error  of CUDA
  explicit SortedLines(LineTask<T> const& task) : size_(std::max<std::ptrdiff_t>(task.scores.columns, 1)) {
    constexpr std::ptrdiff_t at_once = 1 << 24;
    most_ = std::clamp<std::ptrdiff_t>(at_once / size_, 1, std::clamp<std::ptrdiff_t>(task.scores.rows, 1, 65535));
    keys_ = parts_.add<Key>(static_cast<std::size_t>(most_ * size_));
    spare_ = parts_.add<Key>(static_cast<std::size_t>(most_ * size_));
    totals_ = parts_.add<PartialSum>(static_cast<std::size_t>(most_));
    top_ = parts_.add<Candidate>(static_cast<std::size_t>(most_));
  }

  std::size_t bytes() const { return parts_.size(); }

  /// Calls use(some) with the lines of one round, as a task for only their best token.
  template <class Use>
  void each(LineTask<T> const& task, Use&& use) const {
    for (std::ptrdiff_t first = 0; first < task.scores.rows; first += most_) {
      auto some = rows_of(task, first, (std::min)(most_, task.scores.rows - first));
      some.k = 1;
      use(some);
    }
  }

  /// Enqueues the work.
  /// \param start    of the first kernel
  /// \param behind   of a kernel right after one of ours
  /// \param prepare  turns a LineTask into the launch that answers it; may enqueue work if start is Start::after
  template <class Prepare>
  void enqueue(LineTask<T> const& task, void* memory, cudaStream_t stream, Start start, Start behind,
               Prepare&& prepare) const {
    auto* best = task.best;
    each(task, [&](LineTask<T> some) {
      some.best = part<Candidate>(memory, top_);
      OrderLaunch<FormatOf<T>> launch;
      launch.line = prepare(some);
      launch.line.totals = part<PartialSum>(memory, totals_);
      launch_lines(launch.line, stream, start);
      start = Start::after;
      launch.line.k = task.k, launch.line.best = best;
      launch.keys = part<Key>(memory, keys_), launch.spare = part<Key>(memory, spare_);
      launch_keys(launch, stream, behind);
      launch_lists(launch, stream, behind);
      best += some.scores.rows * task.k;
    });
  }

 private:
  std::ptrdiff_t size_, most_ = 1;
  Parts parts_;
  std::size_t keys_ = 0, spare_ = 0, totals_ = 0, top_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
