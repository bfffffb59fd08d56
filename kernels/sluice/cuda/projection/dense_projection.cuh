// SPDX-License-Identifier: Apache-2.0
/// \file
/// DenseProjection on a device: the expander for models whose hidden vectors are in device memory. Programs link
/// CUDA::cublas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/hidden.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/detail/gemm.cuh>
#include <sluice/cuda/projection/detail/product_pass.cuh>
#include <sluice/cuda/projection/resources.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

namespace sluice::inline v0::cuda {

/// The output layer: the top k of W h + b over the whole vocabulary, with their log-probabilities. The CUDA counterpart
/// of sluice::DenseProjection. cuBLAS computes the logits in tiles of some thousand tokens, which
/// cuda::LogSoftmaxTopK reads while they are in the L2 cache. Supports the queries of LogSoftmaxTopK.
///
/// Log-probabilities differ by at most 1e-5 from those of cuBLAS's logits, which are floats unless `Logit` says
/// otherwise. Logits of 16 bits halve what is written and read, and the number of tiles, but they are rounded: a logit
/// in [16, 32) by up to 1/128 in half precision and 1/16 in bfloat16, as in engines whose output layer returns what its
/// weights are. Tokens that are as close may change places.
///
/// cuBLAS's order of summation depends on the number of lines, so a line's last bits, and the order of tokens that
/// differ only in these, may depend on it too: an answer is reproducible bit for bit only for the same batch size. Of
/// equal logits, the lower token comes first.
///
/// Two launches per tile. An object serves one stream at a time. Allocates nothing once it has seen its largest task.
/// \tparam T      type of weights and hidden vectors: float (TF32 is not used), __half or __nv_bfloat16
/// \tparam Logit  type of logits: float, or T
template <class T, class Logit = float>
class DenseProjection {
 public:
  /// \param weights     [V, d], in device memory; referred to, must outlive this
  /// \param bias        [V] or empty, in host memory; copied
  /// \param tile_bytes  see ProductPass
  /// \param resources   the program's own memory and cuBLAS
  /// \param step        launches and copies of a step
  /// \throws std::invalid_argument  if the bias has another size
  /// \throws Error  of CUDA
  explicit DenseProjection(MatrixView<T const> weights, std::span<float const> bias = {}, std::size_t tile_bytes = 0,
                           Resources const& resources = {}, StepOptions const& step = {})
      : weights_(weights),
        output_(fitting(bias, weights), resources.allocator, step),
        pass_(tile_bytes, resources.allocator, step),
        gemm_(resources) {}

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \throws std::invalid_argument  if the vectors have another size, or for a query that the device does not support
  /// \throws Error  of CUDA
  Expansion expand(Hidden<T> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    check_size(hidden);
    LineTask<Logit> task;
    task.scores.columns = weights_.rows;
    return output_.exchange(task, Kind::logits, hidden.stream, queries, groups, [&](LineTask<Logit> const& all) {
      enqueue(all, {hidden.data, all.scores.rows, hidden.columns, hidden.stride}, hidden.stream);
    });
  }

  /// Enqueues the work, under the rules of LogSoftmaxTopK::enqueue().
  /// \param task    the work on W h + b; its scores are ignored
  /// \param hidden  [lines, d]
  void enqueue(LineTask<Logit> task, MatrixView<T const> hidden, cudaStream_t stream) {
    check_size(hidden);
    task.scores = {nullptr, hidden.rows, weights_.rows, 0};
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t token, MatrixView<Logit> to) {
      gemm_.enqueue<T>({hidden.data + line * hidden.stride, to.rows, hidden.columns, hidden.stride},
                       {weights_.data + token * weights_.stride, to.columns, weights_.columns, weights_.stride}, to,
                       stream);
      return detail::Start::after;  // after cuBLAS
    });
  }

  std::ptrdiff_t vocabulary_size() const { return weights_.rows; }
  std::ptrdiff_t hidden_size() const { return weights_.columns; }
  /// Bytes of device memory in use besides the weights.
  std::size_t workspace() const { return output_.workspace() + pass_.workspace() + gemm_.workspace(); }

 private:
  void check_size(MatrixView<T const> hidden) const {
    require(hidden.columns == weights_.columns, "cuda::DenseProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
  }
  static std::span<float const> fitting(std::span<float const> bias, MatrixView<T const> weights) {
    require(bias.empty() || std::ssize(bias) == weights.rows, "cuda::DenseProjection: bias.size()", bias.size(),
            "must be 0 or the number of rows of the weights");
    return bias;
  }

  MatrixView<T const> weights_;
  LogSoftmaxTopK output_;
  detail::ProductPass pass_;
  detail::Gemm gemm_;
};

}  // namespace sluice::inline v0::cuda
