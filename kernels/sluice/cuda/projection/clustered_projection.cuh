// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusteredProjection on a device: an output layer for only the tokens that are likely near the hidden vector.
/// Programs link CUDA::cublas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/hidden.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/clustered_options.cuh>
#include <sluice/cuda/projection/detail/active_product.cuh>
#include <sluice/cuda/projection/detail/cluster_unions.cuh>
#include <sluice/cuda/projection/detail/gemm.cuh>
#include <sluice/cuda/projection/detail/product_choice.cuh>
#include <sluice/cuda/projection/detail/product_pass.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>
#include <sluice/output/clusters.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::inline v0::cuda {

/// The output layer over clusters of hidden vectors (Amer et al. 2022, "Fast Vocabulary Projection Method via
/// Clustering for Multilingual Machine Translation on GPU"). The CUDA counterpart of sluice::ClusteredProjection: a
/// line may give the tokens of its union (of the clusters of its sentence's lines, or of all lines of the step), and
/// log-probabilities are normalised over these.
///
/// Also active: `always`, probes, and tokens whose score the search raises. All tokens are active if a union is larger
/// than `full_above` or has fewer tokens than the search asks for, and for sentences of a direction other than 0 (with
/// Union::batch, one such sentence makes them active for all). An edit of an inactive token has no effect. If the lines
/// of a sentence share a shortlist, or an `only` before the softmax, that replaces the union; all tokens are active if
/// these differ between lines, or if `only` acts after the softmax. Supports the queries of cuda::LogSoftmaxTopK. A
/// step whose lists by probability did not fit is answered twice, and counted twice.
///
/// Differences from the host's version: centroids are rounded to T, and products are cuBLAS's, so a vector almost
/// equally near to two centroids may get the other cluster. As in cuda::DenseProjection, last bits depend on the number
/// of lines and on how logits are computed (all of them, only the active tokens', for few lines, with or without matrix
/// units). One set of clusters; no audit.
///
/// A step: a product with the centroids and their selection, three small launches for the unions, the logits,
/// selection, and the wait for the answers. For few lines, only the active tokens' logits are computed, with weights
/// read in place; their number is known only on the device. With small weights, all logits are computed, and those
/// outside a sentence's union are masked. For more lines and larger weights, the host waits once before the product,
/// because cuBLAS must know the number of active tokens: their weights are gathered, or reused from the last step if
/// the union has not changed.
///
/// A line costs (clusters + active) d products; memory is clusters V / 8 bytes. An object serves one stream at a time.
/// Allocates nothing once it has seen its largest step.
/// \tparam T  type of weights and hidden vectors: float, __half or __nv_bfloat16
template <class T>
class ClusteredProjection {
 public:
  /// \param weights  [V, d], in device memory; referred to, must outlive this
  /// \param bias     [V] or empty, in host memory; copied
  /// \param clusters copied to the device
  /// \throws std::invalid_argument  if clusters, bias or options do not fit the weights
  /// \throws Error  of CUDA
  ClusteredProjection(MatrixView<T const> weights, std::span<float const> bias, Clusters const& clusters,
                      ClusteredOptions options = {})
      : weights_(weights),
        unions_(fitting(weights, bias, clusters, options), options),
        choice_(options, weights),
        product_(weights, options.matrix_lines),
        output_({}, {}, options.step),
        pass_(options.tile_bytes, {}, options.step),
        behind_ours_(options.step.behind_ours()) {
    if (bias.empty()) return;
    auto const size = (bias.size() + detail::GatherLaunch::bias_tail) * sizeof(float);
    bias_ = static_cast<float*>(kept_.get(size, true));
    detail::copy_now(bias_, bias.data(), bias.size_bytes());
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \param groups  the sentences; empty: every line is a sentence of its own
  /// \throws std::invalid_argument  if the vectors have another size, or for a query that the device does not support
  /// \throws Error  of CUDA
  Expansion expand(Hidden<T> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    require(hidden.columns == weights_.columns, "cuda::ClusteredProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    LineTask<float> task;
    task.scores.columns = weights_.rows;
    unions_.forget();  // after a step that failed
    auto const answers =
        output_.exchange(task, Kind::logits, hidden.stream, queries, groups, [&](LineTask<float> const& all) {
          MatrixView<T const> const vectors{hidden.data, all.scores.rows, hidden.columns, hidden.stride};
          answer(all, vectors, queries, groups, hidden.stream);
        });
    count();
    return answers;
  }

  /// Enqueues the work and does not wait: may be captured in a graph, as LogSoftmaxTopK::enqueue(). For at most
  /// ClusteredOptions::few_lines lines, if weights can be read in place, only the active tokens' logits are computed;
  /// otherwise all, since cuBLAS must know their number. Not counted in statistics().
  /// \param task    the work on the lines; it names tokens, and its scores are ignored
  /// \param hidden  [lines, d]
  /// \param each    adjacent lines per sentence, all of direction 0
  /// \throws std::invalid_argument  if the vectors have another size, or for an invalid task
  /// \throws Error  of CUDA
  void enqueue(LineTask<float> const& task, MatrixView<T const> hidden, std::int32_t each, cudaStream_t stream) {
    require(hidden.columns == weights_.columns, "cuda::ClusteredProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    require(each >= 1, "cuda::ClusteredProjection: each", each, "must be at least 1");
    if (hidden.rows == 0) return;
    auto const product =
        choice_(hidden) == detail::Product::in_place ? detail::Product::in_place : detail::Product::all;
    unions_.form(task, hidden, each, product, gemm_, stream);
    if (product == detail::Product::in_place) answer_in_place(task, hidden, stream, behind_ours_);
    else answer_all(task, hidden, stream);
  }

  ClusteredStatistics const& statistics() const { return statistics_; }
  std::int32_t vocabulary_size() const { return static_cast<std::int32_t>(weights_.rows); }
  std::ptrdiff_t hidden_size() const { return weights_.columns; }
  /// Bytes of device memory in use besides the weights.
  std::size_t workspace() const {
    return kept_.size() + unions_.workspace() + product_.workspace() + output_.workspace() + pass_.workspace() +
           gemm_.workspace();
  }

 private:
  /// Returns the clusters, after checking all arguments.
  static Clusters const& fitting(MatrixView<T const> weights, std::span<float const> bias, Clusters const& clusters,
                                 ClusteredOptions const& options) {
    std::string const who = "cuda::ClusteredProjection: ";
    sluice::detail::check_fit(who, clusters, weights.rows, weights.columns);
    require(bias.empty() || std::ssize(bias) == weights.rows, who + "bias.size()", bias.size(),
            "must be 0 or the number of rows of the weights");
    sluice::detail::check_clustered(who, options, weights.rows);
    sluice::detail::check_nearest(who, options.nearest, clusters);
    require(options.token_cost >= 0, who + "token_cost", options.token_cost, "must not be negative");
    require(options.few_lines >= 0, who + "few_lines", options.few_lines, "must not be negative");
    require(options.matrix_lines >= 1, who + "matrix_lines", options.matrix_lines, "must be at least 1");
    return clusters;
  }

  void answer(LineTask<float> const& task, MatrixView<T const> hidden, std::span<Query const> queries,
              std::span<Group const> groups, cudaStream_t stream) {
    count();  // a step that is answered again counts as a step
    auto product = choice_(hidden);
    unions_.form(task, hidden, groups, product, gemm_, stream);
    unions_.tell(stream);
    if (unions_.launch().unions == 0) product = detail::Product::all;
    if (product == detail::Product::gathered) {  // cuBLAS must know the number of tokens
      check(cudaStreamSynchronize(stream), "cuda::ClusteredProjection");
      auto const full = unions_.count(statistics_).value_or(true);
      auto const cached = product_.begin(unions_.changed());
      product = full ? detail::Product::all : choice_.of(unions_.size(), cached);
      counted(product);
      if (product == detail::Product::gathered) return answer_gathered(task, hidden, queries, stream);
    }
    in_place_ = product == detail::Product::in_place;
    if (product == detail::Product::all) answer_all(task, hidden, stream);
    else answer_in_place(task, hidden, stream, detail::Start::after);  // after a copy of the input
  }

  /// Counts a step whose result the host had not read before its answers came.
  void count() {
    if (auto const full = unions_.count(statistics_))
      counted(in_place_ && !*full ? detail::Product::in_place : detail::Product::all);
  }
  void counted(detail::Product product) {
    ++statistics_.steps;
    if (product != detail::Product::all) ++statistics_.reduced;
  }

  static MatrixView<T const> lines_of(MatrixView<T const> hidden, std::ptrdiff_t first, std::ptrdiff_t count) {
    return {hidden.data + first * hidden.stride, count, hidden.columns, hidden.stride};
  }

  void answer_all(LineTask<float> task, MatrixView<T const> hidden, cudaStream_t stream) {
    task.bias = bias_;
    task.scores = {nullptr, hidden.rows, weights_.rows, 0};
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t token, MatrixView<float> to) {
      gemm_.enqueue<T>(lines_of(hidden, line, to.rows),
                       {weights_.data + token * weights_.stride, to.columns, weights_.columns, weights_.stride}, to,
                       stream);
      if (unions_.launch().unions == 0) return detail::Start::after;
      unions_.mask(nullptr, line, token, to, stream);
      return behind_ours_;
    });
  }

  /// Answers over lines of all tokens, of which only the active ones are computed.
  /// \param start  of the first kernel
  void answer_in_place(LineTask<float> task, MatrixView<T const> hidden, cudaStream_t stream, detail::Start start) {
    task.scores = {nullptr, hidden.rows, weights_.rows, 0};
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t token, MatrixView<float> to) {
      product_.in_place(lines_of(hidden, line, to.rows), bias_, unions_.launch(), line, token, to, stream, start,
                        behind_ours_);
      return start = behind_ours_;
    });
  }

  /// Answers over lines of the joint union's tokens.
  void answer_gathered(LineTask<float> task, MatrixView<T const> hidden, std::span<Query const> queries,
                       cudaStream_t stream) {
    auto const count = unions_.size();
    auto const* const tokens = unions_.launch().tokens;
    product_.place(task, queries, tokens, count, stream);
    task.tokens = tokens;
    task.scores = {nullptr, hidden.rows, count, 0};
    auto const packed = product_.gather(task, bias_, tokens, count, stream);
    statistics_.gathered = product_.copies();
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t first, MatrixView<float> to) {
      gemm_.enqueue<T>(lines_of(hidden, line, to.rows),
                       {packed.data + first * packed.stride, to.columns, packed.columns, packed.stride}, to, stream);
      if (!unions_.several()) return detail::Start::after;
      unions_.mask(tokens, line, first, to, stream);
      return behind_ours_;
    });
  }

  MatrixView<T const> weights_;
  detail::ClusterUnions<T> unions_;
  detail::ProductChoice<T> choice_;
  detail::ActiveProduct<T> product_;
  LogSoftmaxTopK output_;
  detail::ProductPass pass_;
  detail::Gemm gemm_;
  detail::Buffer<detail::Where::device> kept_;
  float* bias_ = nullptr;
  ClusteredStatistics statistics_;
  detail::Start behind_ours_;
  bool in_place_ = false;  // the last step computed logits only for the active tokens, and not all were active
};

}  // namespace sluice::inline v0::cuda
