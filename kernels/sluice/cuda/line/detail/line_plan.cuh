// SPDX-License-Identifier: Apache-2.0
/// \file
/// How lines are split among thread blocks, and the memory that these need.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/line/detail/line_cluster.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_loads.cuh>
#include <sluice/cuda/line/detail/line_ring.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>
#include <sluice/cuda/line/line_task.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sluice::inline v0::cuda::detail {

/// A launch for whole lines, without the memory through which the blocks of a line communicate.
/// \tparam T  float, __half or __nv_bfloat16
template <class T>
class LinePlan {
 public:
  using Format = FormatOf<T>;

  /// \param processors  of the device
  /// \param tile        chunks in memory at once, if lines are computed tile by tile
  /// \param ring        persistent blocks on the device that read through rings; 0: one block per part. Lines with
  ///              masks use no ring
  /// \param of_cluster  the most blocks of a line that may be a cluster; 0: none. Few lines: clusters run at once, without
  ///              a second wave
  /// \throws std::invalid_argument  for an invalid task
  LinePlan(LineTask<T> const& task, std::int64_t processors, std::optional<std::int64_t> tile = {},
           std::int32_t ring = 0, std::int32_t of_cluster = 0) {
    auto const rows = task.scores.rows, size = task.scores.columns;
    require(size >= 1 && size < 0x7fffffff - 0x10000, "LogSoftmaxTopK: columns", size,
            "must be at least 1, and 31 bits");
    require(task.k >= 1 && task.k <= most_listed, "LogSoftmaxTopK: k", task.k, "must be in [1, 64]");
    auto const chunks = LineShape::chunks<Format>(size, line_threads);
    auto const at_once = std::min<std::int64_t>(chunks, tile.value_or(chunks));
    auto const most = at_once < chunks ? at_once : LineShape::most_chunks;
    if (task.masks != nullptr) ring = 0;
    auto const shape =
        LineShape::of(at_once, rows, residents(task, processors, ring), most).over(chunks, task.k, line_threads, most);
    require(LineShape::fits(shape.splits, task.k, line_threads), "LogSoftmaxTopK: columns", size, "are too many for k");
    require(rows <= 0x7fffffff / shape.splits, "LogSoftmaxTopK: rows", rows, "are too many");

    launch_.scores = reinterpret_cast<typename Format::Bits const*>(task.scores.data);
    launch_.stride = task.scores.stride;
    launch_.size = static_cast<std::int32_t>(size), launch_.rows = static_cast<std::int32_t>(rows);
    launch_.k = task.k, launch_.chunks = shape.chunks_of_block, launch_.splits = shape.splits;
    launch_.common = task.query, launch_.queries = task.queries, launch_.bias = task.bias;
    launch_.tokens = task.tokens, launch_.edits = task.edits, launch_.probes = task.probes;
    launch_.ring = ring;
    launch_.masks = task.masks, launch_.ascending = task.ascending ? 1 : 0;
    launch_.best = task.best, launch_.probe_values = task.probe_values, launch_.results = task.results;
    launch_.probe_parts = task.probe_parts != nullptr ? task.probe_parts : task.probe_values;
    auto const few = rows * shape.splits <= processors * line_cluster_blocks_at_once;
    auto const free = !tile && task.merge_behind == nullptr && suits_clusters(launch_);
    launch_.clusters = few && free && shape.splits <= of_cluster ? 1 : 0;
    if (shape.splits == 1) return;
    auto const lines = static_cast<std::size_t>(rows);
    keys_ = parts_.add<Key>(lines * static_cast<std::size_t>(task.k) * static_cast<std::size_t>(shape.splits));
    sums_ = parts_.add<PartialSum>(lines * static_cast<std::size_t>(chunks) * (line_threads / 32));
  }

  /// What runs of a task at once, as kernels are compiled for sm_90.
  static LineResidents residents(LineTask<T> const& task, std::int64_t processors, std::int32_t ring) {
    if (ring > 0)
      return {.processors = processors,
              .blocks = static_cast<double>(ring) / static_cast<double>(processors),
              .under_way = RingMemory<line_threads>::under_way,
              .ahead = true};
    constexpr auto loads = DirectLoads::ahead<16 / Format::wide, true>;
    constexpr auto masked = DirectLoads::ahead<16 / Format::wide, false>;
    if (task.masks != nullptr)
      return {.processors = processors, .blocks = line_blocks_at_once - 1, .under_way = masked * line_threads * 16};
    return {.processors = processors, .blocks = line_blocks_at_once, .under_way = loads * line_threads * 16};
  }

  /// Bytes of the memory through which blocks communicate; 0: every line has one block. Clusters need none, but
  /// have it all the same: how much a task needs depends on its sizes alone.
  std::size_t bytes() const { return parts_.size(); }
  /// Bytes of their tickets, which must be zero and are zero again afterwards.
  std::size_t ticket_bytes() const {
    return launch_.splits > 1 ? static_cast<std::size_t>(launch_.rows) * sizeof(unsigned) : 0;
  }

  /// The launch; its memory must be aligned to 16.
  LineLaunch<Format> launch(void* memory, void* tickets) const {
    auto launch = launch_;
    if (launch.splits == 1) return launch;
    launch.keys = part<Key>(memory, keys_), launch.sums = part<PartialSum>(memory, sums_);
    launch.tickets = static_cast<unsigned*>(tickets);
    return launch;
  }

 private:
  LineLaunch<Format> launch_;
  Parts parts_;
  std::size_t keys_ = 0, sums_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
