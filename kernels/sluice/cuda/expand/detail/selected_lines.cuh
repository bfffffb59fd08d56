// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines that need further passes, in three launches: the first pass, keys of the deciding numbers, and one that sorts
/// those that may be listed and cuts the list.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/select/detail/select_launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The work for LineTask::selection, for at most 16 million scores at once, and its memory. Lines without such queries
/// have no keys.
template <class T>
class SelectedLines {
 public:
  /// \param at_once  scores
  /// \throws std::invalid_argument  for a selection that is `single` and cuts
  /// \throws Error  of CUDA
  explicit SelectedLines(LineTask<T> const& task, std::ptrdiff_t at_once = 1 << 24)
      : size_(std::max<std::ptrdiff_t>(task.scores.columns, 1)) {
    most_ = std::clamp<std::ptrdiff_t>(at_once / size_, 1, std::clamp<std::ptrdiff_t>(task.scores.rows, 1, 65535));
    auto const lines = static_cast<std::size_t>(most_);
    totals_ = parts_.add<PartialSum>(lines);
    top_ = parts_.add<Candidate>(task.k > most_listed ? lines : 0);
    spare_results_ = parts_.add<LineResult>(task.k > most_listed ? lines : 0);
    if (!task.selection.draws && !task.selection.cuts) return;
    require(!task.selection.single || !task.selection.cuts, "LineSelection::single", true,
            "is for lists by noise only: cuts must be false");
    auto const all = lines * static_cast<std::size_t>(size_);
    if (task.selection.single) {  // the best of each part of a line
      perturbed_ = parts_.add<Key>(lines * static_cast<std::size_t>(parts()));
      return;
    }
    keys_ = parts_.add<Key>(task.selection.cuts ? all : 0);
    perturbed_ = parts_.add<Key>(task.selection.draws ? all : 0);
    spare_ = parts_.add<Key>(all);
  }

  std::size_t bytes() const { return parts_.size(); }

  /// Calls use(some) with the lines of one round, as a task for their lists of at most 64; if any list is longer, for
  /// only the best token.
  template <class Use>
  void each(LineTask<T> const& task, Use&& use) const {
    for (std::ptrdiff_t first = 0; first < task.scores.rows; first += most_) {
      auto some = rows_of(task, first, (std::min)(most_, task.scores.rows - first));
      if (some.k > most_listed) some.k = 1;
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
    each(task, [&](LineTask<T> some) {
      if (task.k > most_listed)  // their lists and results are already there
        some.best = part<Candidate>(memory, top_), some.results = part<LineResult>(memory, spare_results_);
      SelectLaunch<FormatOf<T>> launch;
      launch.line = prepare(some);
      launch.line.totals = part<PartialSum>(memory, totals_);
      launch_lines(launch.line, stream, start);
      start = Start::after;
      launch.selection = some.selection;
      launch.place_bits = (std::max)(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size_ - 1))));
      if (some.selection.cuts) launch.keys = part<Key>(memory, keys_);
      if (some.selection.draws) launch.perturbed = part<Key>(memory, perturbed_);
      launch.spare = part<Key>(memory, spare_);
      if (some.selection.single) launch.parts = parts();
      if (some.selection.cuts || some.selection.draws) launch_select_keys(launch, stream, behind);
      launch_selection(launch, stream, behind);
    });
  }

 private:
  std::int32_t parts() const { return select_parts<FormatOf<T>>(static_cast<std::int32_t>(size_)); }

  std::ptrdiff_t size_, most_ = 1;
  Parts parts_;
  std::size_t totals_ = 0, top_ = 0, spare_results_ = 0, keys_ = 0, perturbed_ = 0, spare_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
