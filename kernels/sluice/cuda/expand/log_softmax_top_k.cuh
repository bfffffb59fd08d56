// SPDX-License-Identifier: Apache-2.0
/// \file
/// LogSoftmaxTopK on a device: the expander for models whose scores are in device memory.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/home_device.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/detail/side_stream.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/device/loads.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/detail/query_exchange.cuh>
#include <sluice/cuda/expand/detail/selected_lines.cuh>
#include <sluice/cuda/expand/detail/sorted_lines.cuh>
#include <sluice/cuda/expand/detail/tiled_lines.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_plan.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines_launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sluice::inline v0::cuda {

/// Bias, log-softmax and top-k in one launch that reads each line once. The CUDA counterpart of sluice::LogSoftmaxTopK:
/// same queries, same order of ties, and log-probabilities with an error of at most 1e-5.
///
/// Lines that ask for `mass`, `within`, `typical`, `deviations`, `at_least`, `noise`, `entropy` or penalties after the
/// softmax take further passes, in two more launches: scores (under noise, perturbed values) become keys, and one thread
/// block per line sorts those that may be listed and cuts the list. The step's other lines are no slower, except for merging: if any line asks for this,
/// whole lists are copied.
///
/// If any line wants more than 64 tokens, all lines take a slower way: three launches, and keys of 8 bytes per score (16
/// bytes of workspace per score, for at most 16 million scores at once). The answers are the same, bit for bit.
///
/// A line's answer depends only on that line, to the last bit: not on the number of lines, their address or how they
/// are split into blocks. A line's blocks run in any order; none waits for another.
///
/// An object belongs to the device that was current when it was first used, which it checks, and to one stream at a
/// time: use two objects for two concurrent streams. Allocates nothing once it has seen its tasks (a task with fewer
/// lines may need more, since lines are split further), and never if the caller provides the memory. Other streams may
/// be capturing meanwhile.
class LogSoftmaxTopK {
 public:
  LogSoftmaxTopK() = default;
  /// \param bias       added to every line, [V], in host memory, copied; empty: none
  /// \param allocator  for device memory
  /// \param step       launches, loads and copies of a step; does not change answers
  /// \throws Error  of CUDA
  explicit LogSoftmaxTopK(std::span<float const> bias, Allocator const& allocator = {}, StepOptions const& step = {})
      : step_(step),
        bias_size_(std::ssize(bias)),
        bias_memory_(allocator),
        workspace_(allocator),
        tickets_(allocator),
        order_(allocator),
        exchange_(allocator, step) {
    if (bias.empty()) return;
    check_device();
    bias_ = static_cast<float*>(bias_memory_.get((bias.size() + 8) * sizeof(float), true));
    detail::copy_now(bias_, bias.data(), bias.size_bytes());
  }

  /// Enqueues the work. May be captured in a graph, once the same task has run before; such a graph stays valid when
  /// the workspace grows, but must not outlive this object.
  /// \param start  early: only if the last kernel enqueued is one of ours
  /// \throws std::invalid_argument  for an invalid task
  /// \throws Error  of CUDA
  template <class T>
  void enqueue(LineTask<T> const& task, cudaStream_t stream, detail::Start start = detail::Start::after) {
    if (task.scores.rows == 0) return;
    auto const bytes = order_bytes(task);
    answer(task, bytes == 0 ? nullptr : order_.get(bytes, stream), stream, start,
           [&](LineTask<T> const& some) { return launch(plan(some), stream); });
  }

  /// The same in the caller's memory: allocates nothing, and needs no run before a capture.
  /// \param workspace  workspace_bytes(task) or more bytes of device memory, aligned to 256, with any contents; free
  ///                   for other uses once the stream has passed this work
  /// \throws std::invalid_argument  also if the workspace is too small
  template <class T>
  void enqueue(LineTask<T> const& task, std::span<std::byte> workspace, cudaStream_t stream) {
    if (task.scores.rows == 0) return;
    require(workspace.size() >= workspace_bytes(task), "LogSoftmaxTopK: workspace.size()", workspace.size(),
            "must be at least workspace_bytes(task)");
    auto* const tickets = workspace.data() + order_bytes(task);
    answer(task, workspace.data(), stream, detail::Start::after, [&](LineTask<T> const& some) {
      detail::LinePlan<T> const lines = plan(some);
      if (lines.ticket_bytes() > 0) check(cudaMemsetAsync(tickets, 0, lines.ticket_bytes(), stream), "cudaMemsetAsync");
      return lines.launch(tickets + (lines.ticket_bytes() + 15) / 16 * 16, tickets);
    });
  }
  /// What enqueue() needs for this task, or for one that differs only in its pointers.
  /// \throws std::invalid_argument  for an invalid task
  /// \throws Error  of CUDA
  template <class T>
  std::size_t workspace_bytes(LineTask<T> const& task) {
    if (task.scores.rows == 0) return 0;
    std::size_t bytes = 0;  // the last round may have fewer lines, each split into more blocks
    auto const take = [&](LineTask<T> const& some) {
      detail::LinePlan<T> const lines = plan(some);
      bytes = (std::max)(bytes, (lines.ticket_bytes() + 15) / 16 * 16 + lines.bytes());
    };
    if (selects(task)) detail::SelectedLines<T>(task).each(task, take);
    if (task.k > most_listed) detail::SortedLines<T>(task).each(task, take);
    else if (!selects(task)) take(task);
    return order_bytes(task) + bytes;
  }

  /// The same for lines computed tile by tile, so that only one tile of them is in memory at a time. Alternates between
  /// calling product(first, count), which enqueues a kernel that writes columns first .. first + count - 1 of all lines
  /// to the first `count` columns of the tile (and may return the Start of the next kernel), and enqueuing the kernel
  /// that reads them. The answers are equal to those of enqueue() for whole lines, bit for bit.
  /// \param task  its scores have rows and columns; their memory is not read. k is at most 64
  /// \param tile  [rows, a multiple of tile_columns<T>()], with an address and stride that are multiples of 16 bytes;
  ///              not all of its columns need be used at once
  template <class T, class Product>
  void enqueue_tiles(LineTask<T> task, MatrixView<T> tile, cudaStream_t stream, Product&& product) {
    detail::SideStream none;
    enqueue_tiles(task, tile, 0, none, stream,
                  [&](std::ptrdiff_t first, std::ptrdiff_t count, T*) { return product(first, count); });
  }
  /// The same with two alternating tiles: while the lines of one are read in the stream `beside`, the caller's stream
  /// computes the other. Calls product(first, count, tile).
  /// \param apart   distance between the tiles in elements; 0: there is one tile, and everything runs in the caller's
  ///               stream
  /// \param beside  must not be used for anything else
  template <class T, class Product>
  void enqueue_tiles(LineTask<T> task, MatrixView<T> tile, std::ptrdiff_t apart, detail::SideStream& beside,
                     cudaStream_t stream, Product&& product) {
    if (task.scores.rows == 0) return;
    require(!selects(task), "LogSoftmaxTopK: selection", true, "takes whole lines, not tiles");
    auto const chunk = tile_columns<T>();
    detail::check_tile(task, tile, apart, chunk);
    task.scores.data = tile.data, task.scores.stride = tile.stride;
    auto const lines = launch(plan(task, tile.columns / chunk), stream);
    detail::tiled_lines(lines, tile, apart, chunk, beside, stream, product);
  }
  /// A tile's width is a multiple of this.
  template <class T>
  static constexpr std::ptrdiff_t tile_columns() {
    return std::ptrdiff_t{LineShape::loads} * detail::line_threads * detail::FormatOf<T>::wide;
  }

  /// The answers in host memory: one copy to the device, one launch, one copy back if answers are large (StepOptions),
  /// and a wait for the stream. If groups keep only some of their candidates (Group::keep, at most 256 of at most 128
  /// lines, of lists of at most 64), a second launch merges their lists, and only the kept candidates are copied.
  /// \throws std::invalid_argument  for a query that the device does not support, naming the field
  /// \throws Error  of CUDA
  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    LineTask<T> task;
    task.scores = scores;
    return exchange(task, scores.kind, scores.stream, queries, groups,
                    [&](LineTask<T> const& all) { enqueue(all, scores.stream); });
  }
  /// The frame of expand(): puts the queries into `task`, calls add(task), which enqueues what answers it, one of our
  /// kernels last, and fetches the answers.
  template <class T, class Add>
  Expansion exchange(LineTask<T> const& task, Kind kind, cudaStream_t stream, std::span<Query const> queries,
                     std::span<Group const> groups, Add&& add) {
    detail::QueryExchange::check_all(queries);  // needs no device
    if (!queries.empty()) check_device();
    return exchange_.run(task, kind, stream, queries, groups, std::forward<Add>(add));
  }

  /// \throws std::invalid_argument  unless the device of the first use is current
  void check_device() { home_.check_current("LogSoftmaxTopK"); }

  /// Bytes of device memory in use, without old pieces.
  std::size_t workspace() const { return workspace_.size() + tickets_.size() + order_.size() + exchange_.workspace(); }

 private:
  template <class T>
  detail::LinePlan<T> plan(LineTask<T> task, std::optional<std::int64_t> tile = {}) {
    check_device();
    require(task.bias != nullptr || bias_ == nullptr || bias_size_ == task.scores.columns,
            "LogSoftmaxTopK: bias.size()", bias_size_, "must be 0 or the number of columns");
    if (task.bias == nullptr) task.bias = bias_;
    return detail::LinePlan<T>(task, home_.processors(), tile, ring(), clusters());
  }
  /// Blocks on the whole device that read through rings; 0: none.
  std::int32_t ring() {
    if (step_.loads == Loads::direct || ring_ > 0) return ring_;
    auto const blocks =
        (std::min)({detail::line_ring_blocks<detail::Float32>(), detail::line_ring_blocks<detail::Float16>(),
                    detail::line_ring_blocks<detail::BFloat16>()});
    require(blocks > 0, "StepOptions: loads", "Loads::ring",
            "needs a device of compute capability 9.0 or newer, and kernels compiled for one");
    return ring_ = static_cast<std::int32_t>(blocks * home_.processors());
  }
  /// The most blocks of a line that may be a cluster; 0: none.
  std::int32_t clusters() {
    if (step_.clusters && !clusters_)
      clusters_ = (std::min)({detail::line_clusters<detail::Float32>(), detail::line_clusters<detail::Float16>(),
                              detail::line_clusters<detail::BFloat16>()});
    return clusters_.value_or(0);
  }
  /// Lists, and the merge after them if one launch can do both.
  template <class T>
  static void add_lines(LineTask<T> const& task, detail::LineLaunch<detail::FormatOf<T>> const& launch,
                        cudaStream_t stream, detail::Start start) {
    if (task.merge_behind == nullptr || !detail::merges_behind(launch, task.merge_behind->launch.merge))
      return detail::launch_lines(launch, stream, start);
    detail::launch_merging_lines(launch, task.merge_behind->launch, stream, start);
    task.merge_behind->merged = true;
  }
  template <class T>
  static bool selects(LineTask<T> const& task) {
    return task.selection.queries != nullptr;
  }
  /// Bytes of memory for keys; the two ways do not share it.
  template <class T>
  static std::size_t order_bytes(LineTask<T> const& task) {
    return (std::max)(selects(task) ? detail::SelectedLines<T>(task).bytes() : 0,
                      task.k > most_listed ? detail::SortedLines<T>(task).bytes() : 0);
  }
  /// \param memory   of order_bytes() bytes
  /// \param prepare  turns a LineTask into the launch that answers it
  template <class T, class Prepare>
  void answer(LineTask<T> const& task, void* memory, cudaStream_t stream, detail::Start start, Prepare&& prepare) {
    auto const behind = step_.behind_ours();
    if (task.k > most_listed) detail::SortedLines<T>(task).enqueue(task, memory, stream, start, behind, prepare);
    else if (!selects(task)) add_lines(task, prepare(task), stream, start);
    if (selects(task))
      detail::SelectedLines<T>(task).enqueue(task, memory, stream, detail::Start::after, behind, prepare);
  }
  template <class T>
  detail::LineLaunch<detail::FormatOf<T>> launch(detail::LinePlan<T> const& lines, cudaStream_t stream) {
    if (lines.bytes() == 0) return lines.launch(nullptr, nullptr);
    auto* const memory = workspace_.get(lines.bytes(), stream);
    return lines.launch(memory, tickets_.get(lines.ticket_bytes(), stream, true));
  }

  StepOptions step_;
  std::ptrdiff_t bias_size_ = 0;
  std::int32_t ring_ = 0;                 // blocks; once known
  std::optional<std::int32_t> clusters_;  // once known
  float* bias_ = nullptr;
  detail::HomeDevice home_;
  detail::Buffer<detail::Where::device> bias_memory_, workspace_, tickets_, order_;
  detail::QueryExchange exchange_;
};

}  // namespace sluice::inline v0::cuda
