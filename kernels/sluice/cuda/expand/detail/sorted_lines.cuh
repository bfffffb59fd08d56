// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lists of any length: one pass for the sums and the probes, one that makes keys, a sort of those that may be listed,
/// and one that writes the lists.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_order.cuh>
#include <sluice/cuda/line/detail/line_order_launch.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/select/detail/narrow_launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// How many lines of a task are sorted at once (at most 16 million scores), and the memory for that.
template <class T>
class SortedLines {
 public:
  /// \throws Error  of CUDA
  explicit SortedLines(LineTask<T> const& task) : size_(std::max<std::ptrdiff_t>(task.scores.columns, 1)) {
    constexpr std::ptrdiff_t at_once = 1 << 24;
    most_ = std::clamp<std::ptrdiff_t>(at_once / size_, 1, std::clamp<std::ptrdiff_t>(task.scores.rows, 1, 65535));
    sort_keys<Key>(nullptr, sort_bytes_, nullptr, nullptr, most_, size_, nullptr, nullptr);
    keys_ = parts_.add<Key>(static_cast<std::size_t>(most_ * size_));
    narrowed_ = parts_.add<Key>(static_cast<std::size_t>(most_ * size_));
    sizes_ = parts_.add<std::int32_t>(static_cast<std::size_t>(most_));
    totals_ = parts_.add<PartialSum>(static_cast<std::size_t>(most_));
    top_ = parts_.add<Candidate>(static_cast<std::size_t>(most_));
    sort_ = parts_.add<Words>(sort_bytes_ / sizeof(Words) + 1);
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
      launch.keys = part<Key>(memory, keys_), launch.narrowed = part<Key>(memory, narrowed_);
      launch.sizes = part<std::int32_t>(memory, sizes_);
      launch_keys(launch, stream, behind);
      launch_narrowing(launch, stream, behind);
      auto bytes = sort_bytes_;
      launch.sorted = sort_keys<Key>(part<Words>(memory, sort_), bytes, launch.narrowed, launch.keys, some.scores.rows,
                                     size_, launch.sizes, stream);
      launch_lists(launch, stream, Start::after);
      best += some.scores.rows * task.k;
    });
  }

 private:
  std::ptrdiff_t size_, most_ = 1;
  std::size_t sort_bytes_ = 0;
  Parts parts_;
  std::size_t keys_ = 0, narrowed_ = 0, sizes_ = 0, totals_ = 0, top_ = 0, sort_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
