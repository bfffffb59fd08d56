// SPDX-License-Identifier: Apache-2.0
/// \file
/// LogSoftmaxTopK on a device: the expander for models whose scores are there.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/home_device.cuh>
#include <sluice/cuda/device/detail/loads.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/detail/side_stream.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>
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
#include <sluice/cuda/merge/detail/merge_tail.cuh>
#include <sluice/cuda/merge/detail/merge_tail_launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sluice::inline v0::cuda {

/// Bias, softmax and selection in one launch that reads each line once; see sluice::LogSoftmaxTopK, of which this is the
/// twin: same queries, same order of ties, and log-probabilities that err by at most 1e-5.
///
/// Lines that ask for `mass`, `within`, `typical`, `deviations`, `at_least`, `noise`, `entropy` or penalties after the softmax are
/// looked at again: their scores (under noise, perturbed values) as keys, a sort of these, and a block a line that cuts the list.
/// The other lines of the step are none the slower, but for merging: where any line asks so, whole lists are copied.
///
/// Where any line wants more than 64, all of them take a slower way: three passes over the scores, and a sort of 8 bytes for each
/// (CUB's, so 16 bytes of workspace a score, for at most 16 million scores at once). Its answers are the same, bit for bit.
///
/// A line's answer depends on that line alone, to the last bit: not on the number of lines, their address or how they are
/// shared out. The order of a line's blocks does not matter; none waits for another.
///
/// An object belongs to the device that was current when it was first used, which it checks, and to one stream at a time: two
/// streams at once need two objects. Allocates nothing once it has seen its tasks (one of fewer lines may need more, being
/// split further); never where the caller gives the memory. Others may be capturing while it does.
class LogSoftmaxTopK {
 public:
  LogSoftmaxTopK() = default;
  /// \param bias       added to every line, [V], in the host's memory, copied; empty: none
  /// \param allocator  of the device's memory
  /// \param step       what a step's launches, loads and copies are like; answers do not depend on it
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
    copy_now(bias_, bias.data(), bias.size_bytes());
  }

  /// Adds the work to the stream. May be captured in a graph, once the same task has run before; such a graph stays good
  /// when the workspace grows, and lives no longer than this object.
  /// \param start  early: only where a kernel of ours is what was added last
  /// \throws std::invalid_argument  for a task that makes no sense
  /// \throws Error  of CUDA
  template <class T>
  void enqueue(LineTask<T> const& task, cudaStream_t stream, Start start = Start::after) {
    if (task.scores.rows == 0) return;
    auto const bytes = order_bytes(task);
    answer(task, bytes == 0 ? nullptr : order_.get(bytes, stream), stream, start,
           [&](LineTask<T> const& some) { return launch(plan(some), stream); });
  }

  /// The same in memory of the caller's: nothing is allocated, and a capture needs no run before it.
  /// \param workspace  workspace_bytes(task) or more of the device's memory, at a multiple of 256, with any contents; free
  ///                   for other uses once the stream has come past this work
  /// \throws std::invalid_argument  if the workspace is too small, too
  template <class T>
  void enqueue(LineTask<T> const& task, std::span<std::byte> workspace, cudaStream_t stream) {
    if (task.scores.rows == 0) return;
    require(workspace.size() >= workspace_bytes(task), "LogSoftmaxTopK: workspace.size()", workspace.size(),
            "must be at least workspace_bytes(task)");
    auto* const tickets = workspace.data() + order_bytes(task);
    answer(task, workspace.data(), stream, Start::after, [&](LineTask<T> const& some) {
      LinePlan<T> const lines = plan(some);
      if (lines.ticket_bytes() > 0) check(cudaMemsetAsync(tickets, 0, lines.ticket_bytes(), stream), "cudaMemsetAsync");
      return lines.launch(tickets + (lines.ticket_bytes() + 15) / 16 * 16, tickets);
    });
  }
  /// What enqueue() needs for this task, or for one that differs from it in its pointers alone.
  /// \throws std::invalid_argument  for a task that makes no sense
  /// \throws Error  of CUDA
  template <class T>
  std::size_t workspace_bytes(LineTask<T> const& task) {
    if (task.scores.rows == 0) return 0;
    std::size_t bytes = 0;  // the last lines may be fewer, and be shared out among more blocks
    auto const take = [&](LineTask<T> const& some) {
      LinePlan<T> const lines = plan(some);
      bytes = (std::max)(bytes, (lines.ticket_bytes() + 15) / 16 * 16 + lines.bytes());
    };
    if (selects(task)) SelectedLines<T>(task).each(task, take);
    if (task.k > most_listed) SortedLines<T>(task).each(task, take);
    else if (!selects(task)) take(task);
    return order_bytes(task) + bytes;
  }

  /// The same for lines that are made tile by tile, so that no more of them than a tile ever lies in memory: calls
  /// product(first, count), which adds to the stream what writes columns first .. first + count - 1 of all lines to the
  /// first `count` columns of the tile (and may return the Start of what follows), then adds what reads them. The answers
  /// are those of enqueue() for whole lines, bit for bit.
  /// \param task  its scores have rows and columns; their memory is not looked at. k is at most 64
  /// \param tile  [rows, a multiple of tile_columns<T>()], at an address and with a stride that are multiples of 16 bytes;
  ///              not all of its columns need be used at once
  template <class T, class Product>
  void enqueue_tiles(LineTask<T> task, MatrixView<T> tile, cudaStream_t stream, Product&& product) {
    SideStream nobody;
    enqueue_tiles(task, tile, 0, nobody, stream,
                  [&](std::ptrdiff_t first, std::ptrdiff_t count, T*) { return product(first, count); });
  }
  /// The same with two tiles by turns: while the lines of one are read, in the stream beside the caller's, the caller's makes
  /// the other. Calls product(first, count, tile).
  /// \param apart   numbers from the tile to the other one; 0: there is none, and all is done in the caller's stream
  /// \param beside  is used for nothing else
  template <class T, class Product>
  void enqueue_tiles(LineTask<T> task, MatrixView<T> tile, std::ptrdiff_t apart, SideStream& beside,
                     cudaStream_t stream, Product&& product) {
    if (task.scores.rows == 0) return;
    require(!selects(task), "LogSoftmaxTopK: selection", true, "takes whole lines, not tiles");
    auto const chunk = tile_columns<T>();
    check_tile(task, tile, apart, chunk);
    task.scores.data = tile.data, task.scores.stride = tile.stride;
    auto const lines = launch(plan(task, tile.columns / chunk), stream);
    tiled_lines(lines, tile, apart, chunk, beside, stream, product);
  }
  /// What the width of a tile is a multiple of.
  template <class T>
  static constexpr std::ptrdiff_t tile_columns() {
    return std::ptrdiff_t{LineShape::loads} * line_threads * FormatOf<T>::wide;
  }

  /// The answers in the host's memory: one copy there, one launch, one copy back where answers are large (StepOptions), and a
  /// wait for the stream. Where groups ask to keep some of their candidates alone (Group::keep, at most 256 of at most 128
  /// lines, of lists of at most 64), a second launch merges their lists, and only what is kept comes back.
  /// \throws std::invalid_argument  for a query that the device does not answer, naming the field
  /// \throws Error  of CUDA
  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    LineTask<T> task;
    task.scores = scores;
    return exchange(task, scores.kind, scores.stream, queries, groups,
                    [&](LineTask<T> const& all) { enqueue(all, scores.stream); });
  }
  /// What expand() does around the work: puts the queries where `task` says what of the lines, calls add(task), which adds
  /// to the stream what answers it, a kernel of ours last, and fetches the answers.
  template <class T, class Add>
  Expansion exchange(LineTask<T> const& task, Kind kind, cudaStream_t stream, std::span<Query const> queries,
                     std::span<Group const> groups, Add&& add) {
    QueryExchange::check_all(queries);  // needs no device
    if (!queries.empty()) check_device();
    return exchange_.run(task, kind, stream, queries, groups, std::forward<Add>(add));
  }

  /// \throws std::invalid_argument  unless the current device is the one that was when this was first used
  void check_device() { home_.check_current("LogSoftmaxTopK"); }

  /// Bytes of the device's memory in use, old pieces not counted.
  std::size_t workspace() const { return workspace_.size() + tickets_.size() + order_.size() + exchange_.workspace(); }

 private:
  template <class T>
  LinePlan<T> plan(LineTask<T> task, std::optional<std::int64_t> tile = {}) {
    check_device();
    require(task.bias != nullptr || bias_ == nullptr || bias_size_ == task.scores.columns,
            "LogSoftmaxTopK: bias.size()", bias_size_, "must be 0 or the number of columns");
    if (task.bias == nullptr) task.bias = bias_;
    return LinePlan<T>(task, home_.processors(), tile, ring());
  }
  /// Blocks that read through rings on the whole device; 0: none do.
  std::int32_t ring() {
    if (step_.loads == Loads::direct || ring_ > 0) return ring_;
    auto const blocks = line_ring_blocks<line_threads>();
    require(blocks > 0, "StepOptions: loads", "Loads::ring",
            "needs a device of compute capability 9.0 or newer, and kernels compiled for one");
    return ring_ = static_cast<std::int32_t>(blocks * home_.processors());
  }
  /// Lists, and the merge behind them where one launch can do both.
  template <class T>
  static void add_lines(LineTask<T> const& task, LineLaunch<FormatOf<T>> const& launch, cudaStream_t stream,
                        Start start) {
    if (task.tail == nullptr || !merges_behind(launch, task.tail->launch.merge))
      return launch_lines(launch, stream, start);
    launch_merging_lines(launch, task.tail->launch, stream, start);
    task.tail->merged = true;
  }
  template <class T>
  static bool selects(LineTask<T> const& task) {
    return task.selection.queries != nullptr;
  }
  /// Of the memory for keys; one way's are no use to the other.
  template <class T>
  static std::size_t order_bytes(LineTask<T> const& task) {
    return (std::max)(selects(task) ? SelectedLines<T>(task).bytes() : 0,
                      task.k > most_listed ? SortedLines<T>(task).bytes() : 0);
  }
  /// \param memory   order_bytes() of it
  /// \param prepare  a LineTask becomes the launch that answers it
  template <class T, class Prepare>
  void answer(LineTask<T> const& task, void* memory, cudaStream_t stream, Start start, Prepare&& prepare) {
    auto const behind = step_.behind_ours();
    if (task.k > most_listed) SortedLines<T>(task).enqueue(task, memory, stream, start, behind, prepare);
    else if (!selects(task)) add_lines(task, prepare(task), stream, start);
    if (selects(task)) SelectedLines<T>(task).enqueue(task, memory, stream, Start::after, behind, prepare);
  }
  template <class T>
  LineLaunch<FormatOf<T>> launch(LinePlan<T> const& lines, cudaStream_t stream) {
    if (lines.bytes() == 0) return lines.launch(nullptr, nullptr);
    auto* const memory = workspace_.get(lines.bytes(), stream);
    return lines.launch(memory, tickets_.get(lines.ticket_bytes(), stream, true));
  }

  StepOptions step_;
  std::ptrdiff_t bias_size_ = 0;
  std::int32_t ring_ = 0;  // blocks; once known
  float* bias_ = nullptr;
  HomeDevice home_;
  Buffer<Where::device> bias_memory_, workspace_, tickets_, order_;
  QueryExchange exchange_;
};

}  // namespace sluice::inline v0::cuda
