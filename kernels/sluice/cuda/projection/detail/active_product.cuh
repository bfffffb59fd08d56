// SPDX-License-Identifier: Apache-2.0
/// \file
/// Logits of some tokens on a device: with gathered weights, or with weights read in place.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/home_device.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::cuda::detail {

/// The product over the joint union of a step (see ClusteredProjection). Allocates nothing once it has seen its largest
/// step.
template <class T>
class ActiveProduct {
 public:
  /// \param matrix_lines  see ClusteredOptions
  ActiveProduct(MatrixView<T const> weights, std::int32_t matrix_lines)
      : weights_(weights), matrix_lines_(matrix_lines) {}

  /// Begins a step.
  /// \return whether its tokens' weights are already gathered
  bool begin(bool changed) { return gathered_ = gathered_ && !changed; }

  /// Replaces tokens in edits and probes by places in the joint union. Sets are removed: they are what is active.
  void place(LineTask<float>& task, std::span<Query const> queries, Token const* tokens, std::int32_t count,
             cudaStream_t stream) {
    PlaceLaunch launch;
    launch.tokens = tokens, launch.count = count;
    for (auto const& query : queries) {
      launch.edit_count += static_cast<std::int32_t>(query.edits.size());
      launch.probe_count += static_cast<std::int32_t>(query.probes.size());
    }
    if (task.masks != nullptr) launch.query_count = static_cast<std::int32_t>(queries.size());
    Parts parts;
    auto const at_queries = parts.add<LineQuery>(static_cast<std::size_t>(launch.query_count));
    auto const at_edits = parts.add<Edit>(static_cast<std::size_t>(launch.edit_count));
    auto const at_probes = parts.add<Token>(static_cast<std::size_t>(launch.probe_count));
    auto* const memory = places_.get(parts.size(), stream);
    launch.edits = task.edits, launch.probes = task.probes;
    launch.placed_edits = part<Edit>(memory, at_edits), launch.placed_probes = part<Token>(memory, at_probes);
    launch.queries = task.queries, launch.placed_queries = part<LineQuery>(memory, at_queries);
    launch_places(launch, stream);
    if (task.masks != nullptr) task.queries = launch.placed_queries, task.masks = nullptr;
    task.edits = launch.placed_edits, task.probes = launch.placed_probes;
  }

  /// Gathers the joint union's weights; its bias becomes the task's.
  MatrixView<T const> gather(LineTask<float>& task, float const* bias, Token const* tokens, std::int32_t count,
                             cudaStream_t stream) {
    auto const stride = (weights_.columns * sizeof(T) + 15) / 16 * 16;
    auto const rows = static_cast<std::size_t>(count);
    Parts parts;
    auto const at_rows = parts.add<unsigned char>(rows * stride);
    auto const at_bias = parts.add<float>(bias != nullptr ? rows + GatherLaunch::bias_tail : 0);
    auto* const memory = packed_.get(parts.size(), stream);
    GatherLaunch launch;
    launch.weights = reinterpret_cast<unsigned char const*>(weights_.data);
    launch.stride = weights_.stride * static_cast<std::ptrdiff_t>(sizeof(T));
    launch.row_bytes = static_cast<std::int32_t>(weights_.columns * static_cast<std::ptrdiff_t>(sizeof(T)));
    launch.tokens = tokens, launch.count = count;
    launch.packed = part<unsigned char>(memory, at_rows), launch.packed_stride = static_cast<std::ptrdiff_t>(stride);
    launch.bias = bias, launch.packed_bias = part<float>(memory, at_bias);
    if (!gathered_) {
      launch_gather(launch, stream);
      gathered_ = true;
      ++copies_;
    }
    if (bias != nullptr) task.bias = launch.packed_bias;
    return {reinterpret_cast<T const*>(launch.packed), count, weights_.columns,
            static_cast<std::ptrdiff_t>(stride / sizeof(T))};
  }

  /// Writes the logits of each line's active tokens among columns column .. column + to.columns - 1; all others are
  /// -infinity. Weights are read once per most_skinny_lines lines. The host need not know the number of active tokens.
  /// \param line   the first line
  /// \param start  of the first kernel
  /// \param behind of kernels right after one of ours
  void in_place(MatrixView<T const> hidden, float const* bias, UnionLaunch const& unions, std::ptrdiff_t line,
                std::ptrdiff_t column, MatrixView<float> to, cudaStream_t stream, Start start, Start behind) {
    using Bits = typename FormatOf<T>::Bits;
    home_.check_current("cuda::ClusteredProjection");
    FillLaunch fill;
    fill.logits = to.data, fill.stride = to.stride;
    fill.lines = static_cast<std::int32_t>(to.rows), fill.columns = static_cast<std::int32_t>(to.columns);
    launch_fill(fill, stream, start);
    SkinnyLaunch<FormatOf<T>> launch;
    launch.weights = reinterpret_cast<Bits const*>(weights_.data), launch.weight_stride = weights_.stride;
    launch.hidden_stride = hidden.stride, launch.depth = static_cast<std::int32_t>(hidden.columns);
    launch.tokens = unions.tokens, launch.listed = unions.results, launch.size = unions.size;
    launch.active = unions.active();
    launch.bias = bias, launch.stride = to.stride;
    launch.first = static_cast<std::int32_t>(column), launch.columns = static_cast<std::int32_t>(to.columns);
    launch.matrix_lines = matrix_lines_;
    for (std::ptrdiff_t i = 0; i < hidden.rows; i += most_skinny_lines) {
      launch.lines = static_cast<std::int32_t>(std::min<std::ptrdiff_t>(most_skinny_lines, hidden.rows - i));
      launch.share_among(static_cast<std::int32_t>(home_.processors()));
      launch.hidden = reinterpret_cast<Bits const*>(hidden.data + i * hidden.stride);
      launch.active.line = static_cast<std::int32_t>(line + i);
      launch.logits = to.data + i * to.stride;
      launch_skinny(launch, stream, behind);
    }
  }

  /// The number of times weights were copied.
  std::uint64_t copies() const { return copies_; }
  /// Bytes of device memory in use.
  std::size_t workspace() const { return packed_.size() + places_.size(); }

 private:
  MatrixView<T const> weights_;
  std::int32_t matrix_lines_;
  HomeDevice home_;
  Buffer<Where::device> packed_, places_;
  bool gathered_ = false;  // the weights of the last step's tokens are in packed_
  std::uint64_t copies_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
