// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusteredProjection on a device: an output layer for the tokens that are likely where the hidden vector is. Programs link
/// CUDA::cublas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
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
#include <sluice/output/clusters/clusters.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::inline v0::cuda {

/// The output layer over clusters of hidden vectors (Amer et al. 2022, "Fast Vocabulary Projection Method via Clustering
/// for Multilingual Machine Translation on GPU"); see sluice::ClusteredProjection, of which this is the twin: a line may give
/// the tokens of its union (of the clusters of its sentence's lines, or of all lines of the step), and log-probabilities are
/// normalised over these.
///
/// Active beside the clusters' tokens: `always`, probes, and tokens whose score the search raises. All tokens are active for
/// a union that is larger than `full_above`, or has fewer tokens than the search asks for, and for sentences of a direction
/// other than 0 (with Union::batch, if there is one, for all). An edit of a token that is not active edits nothing.
/// Where the lines of a sentence share a shortlist, or `only` before the softmax, that is what is active; all tokens are where they
/// differ, or `only` acts after the softmax. Queries are those that cuda::LogSoftmaxTopK answers. A step whose lists by probability
/// had no room is answered twice, and counted twice.
///
/// What differs from the host's: centroids are rounded to T, and products are cuBLAS's, so that a vector nearly as near to two
/// centroids may belong to the other one; last bits depend on the number of lines and on how logits were made (all of
/// them, those of the active tokens, those for few lines, on matrix units or without), as with cuda::DenseProjection. One set of
/// clusters; no audit.
///
/// A step: a product with the centroids and their selection, three small launches for the unions, the logits, selection, and the wait
/// for the answers. For few lines the logits are those of the active tokens, whose number the device alone knows, with weights read
/// where they are; of small weights, those of all tokens, what is not a sentence's own masked. For more lines and larger weights the
/// host waits once before, to tell cuBLAS how many tokens are active: their weights are gathered, or kept from the last step if the
/// union has not changed.
///
/// Costs (clusters + active) d products a line, and clusters V / 8 bytes of memory. An object serves one stream at a time.
/// Allocates nothing once it has seen its largest step.
/// \tparam T  of weights and hidden vectors: float, __half or __nv_bfloat16
template <class T>
class ClusteredProjection {
 public:
  /// \param weights  [V, d], in the device's memory; referred to, must outlive this
  /// \param bias     [V] or empty, in the host's memory; copied
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
    auto const size = (bias.size() + GatherLaunch::bias_tail) * sizeof(float);
    bias_ = static_cast<float*>(kept_.get(size, true));
    copy_now(bias_, bias.data(), bias.size_bytes());
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \param groups  the sentences; empty: every line is one
  /// \throws std::invalid_argument  if the vectors have another size, or for a query that the device does not answer
  /// \throws Error  of CUDA
  Expansion expand(Hidden<T> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    require(hidden.columns == weights_.columns, "cuda::ClusteredProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    LineTask<float> task;
    task.scores.columns = weights_.rows;
    unions_.forget();  // of a step that failed
    auto const answers =
        output_.exchange(task, Kind::logits, hidden.stream, queries, groups, [&](LineTask<float> const& all) {
          MatrixView<T const> const vectors{hidden.data, all.scores.rows, hidden.columns, hidden.stride};
          answer(all, vectors, queries, groups, hidden.stream);
        });
    count();
    return answers;
  }

  /// Adds the work to the stream, and waits for nobody: may be captured in a graph, as LogSoftmaxTopK::enqueue(). Logits are those of
  /// the active tokens for at most ClusteredOptions::few_lines lines, where weights can be read in place; all are made for more
  /// lines, since cuBLAS has to be told how many. Not counted in statistics().
  /// \param task    what to do with the lines; tokens are tokens, its scores are not looked at
  /// \param hidden  [lines, d]
  /// \param each    so many neighbouring lines are a sentence, of direction 0
  /// \throws std::invalid_argument  if the vectors have another size, or for a task that makes no sense
  /// \throws Error  of CUDA
  void enqueue(LineTask<float> const& task, MatrixView<T const> hidden, std::int32_t each, cudaStream_t stream) {
    require(hidden.columns == weights_.columns, "cuda::ClusteredProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    require(each >= 1, "cuda::ClusteredProjection: each", each, "must be at least 1");
    if (hidden.rows == 0) return;
    auto const product = choice_(hidden) == Product::in_place ? Product::in_place : Product::all;
    unions_.form(task, hidden, each, product, gemm_, stream);
    if (product == Product::in_place) answer_in_place(task, hidden, stream, behind_ours_);
    else answer_all(task, hidden, stream);
  }

  ClusteredStatistics const& statistics() const { return statistics_; }
  std::int32_t vocabulary_size() const { return static_cast<std::int32_t>(weights_.rows); }
  std::ptrdiff_t hidden_size() const { return weights_.columns; }
  /// Bytes of the device's memory in use, beyond the weights.
  std::size_t workspace() const {
    return kept_.size() + unions_.workspace() + product_.workspace() + output_.workspace() + pass_.workspace() +
           gemm_.workspace();
  }

 private:
  /// The clusters; checks all arguments first.
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
    count();  // a step that is answered again was one
    auto product = choice_(hidden);
    unions_.form(task, hidden, groups, product, gemm_, stream);
    unions_.tell(stream);
    if (unions_.launch().unions == 0) product = Product::all;
    if (product == Product::gathered) {  // cuBLAS has to be told how many tokens there are
      check(cudaStreamSynchronize(stream), "cuda::ClusteredProjection");
      auto const full = unions_.count(statistics_).value_or(true);
      auto const cached = product_.begin(unions_.changed());
      product = full ? Product::all : choice_.of(unions_.size(), cached);
      counted(product);
      if (product == Product::gathered) return answer_gathered(task, hidden, queries, stream);
    }
    in_place_ = product == Product::in_place;
    if (product == Product::all) answer_all(task, hidden, stream);
    else answer_in_place(task, hidden, stream, Start::after);  // behind a copy of what was told
  }

  /// Counts a step that nobody has waited for before its answers came.
  void count() {
    if (auto const full = unions_.count(statistics_)) counted(in_place_ && !*full ? Product::in_place : Product::all);
  }
  void counted(Product product) {
    ++statistics_.steps;
    if (product != Product::all) ++statistics_.reduced;
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
      if (unions_.launch().unions == 0) return Start::after;
      unions_.mask(nullptr, line, token, to, stream);
      return behind_ours_;
    });
  }

  /// Over lines of all tokens, of which only the active ones are made.
  /// \param start  of the first kernel
  void answer_in_place(LineTask<float> task, MatrixView<T const> hidden, cudaStream_t stream, Start start) {
    task.scores = {nullptr, hidden.rows, weights_.rows, 0};
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t token, MatrixView<float> to) {
      product_.in_place(lines_of(hidden, line, to.rows), bias_, unions_.launch(), line, token, to, stream, start,
                        behind_ours_);
      return start = behind_ours_;
    });
  }

  /// Over lines of the joint union's tokens.
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
      if (!unions_.several()) return Start::after;
      unions_.mask(tokens, line, first, to, stream);
      return behind_ours_;
    });
  }

  MatrixView<T const> weights_;
  ClusterUnions<T> unions_;
  ProductChoice<T> choice_;
  ActiveProduct<T> product_;
  LogSoftmaxTopK output_;
  ProductPass pass_;
  Gemm gemm_;
  Buffer<Where::device> kept_;
  float* bias_ = nullptr;
  ClusteredStatistics statistics_;
  Start behind_ours_;
  bool in_place_ = false;  // the last step's logits were made for the active tokens, where these were not all
};

}  // namespace sluice::inline v0::cuda
