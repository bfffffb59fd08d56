// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusteredProjection on a device: an output layer for the tokens that are likely where the hidden vector is. Programs link
/// CUDA::cublas.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/active_union.cuh>
#include <sluice/cuda/buffer.cuh>
#include <sluice/cuda/error.cuh>
#include <sluice/cuda/gemm.cuh>
#include <sluice/cuda/hidden.cuh>
#include <sluice/cuda/log_softmax_top_k.cuh>
#include <sluice/cuda/product_pass.cuh>
#include <sluice/cuda/projection_launch.cuh>
#include <sluice/cuda/scores.cuh>
#include <sluice/output/clusters/clusters.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda {

/// What a ClusteredProjection may be told. The first four are those of sluice::ClusteredOptions; they say what the answers
/// are. The others say how they are computed: none of them changes which tokens a line may give.
struct ClusteredOptions {
  /// Whose clusters are united.
  enum class Union : std::uint8_t {
    sentence,  ///< those of a sentence's own lines: the other sentences decide nothing
    batch,     ///< those of all lines of a step (the paper's way): results depend on what is decoded beside
  };

  std::vector<Token> always{};  ///< active whatever the clusters say: the end of a sentence, at least
  Union unite = Union::sentence;
  std::int32_t nearest = 1;  ///< clusters of each line
  double full_above = 0.5;   ///< more active tokens than this share of the vocabulary: all of them are

  // Estimates, not measured yet:
  double token_cost =
      1.5;  ///< what a token of the union costs where its weights have to be gathered first, in tokens of
            ///< the full product; all logits are made where that is cheaper
  std::size_t full_below = std::size_t{40} << 20;  ///< bytes of weights: of so few, all logits are made, always
  std::int32_t few_lines = 16;  ///< up to so many lines the weights are read where they are; at most 16
  std::size_t tile_bytes = 0;   ///< see ProductPass
};

/// What a ClusteredProjection has seen.
struct ClusteredStatistics {
  std::uint64_t lines = 0;
  std::uint64_t unions = 0;    ///< sentences and steps (or steps, for Union::batch)
  std::uint64_t full = 0;      ///< of these, those for which all tokens were active
  std::uint64_t active = 0;    ///< tokens, summed over the others
  std::uint64_t steps = 0;     ///< calls of expand() with any line
  std::uint64_t reduced = 0;   ///< of these, those in which only the active tokens' logits were made
  std::uint64_t gathered = 0;  ///< of these, those that copied weights; the others read them in place or had the copy

  /// Mean share of the vocabulary that is active in a union.
  double active_share(std::int32_t vocabulary_size) const {
    auto const tokens = static_cast<double>(active) + static_cast<double>(full) * vocabulary_size;
    return unions == 0 ? 0 : tokens / static_cast<double>(unions) / vocabulary_size;
  }
};

/// The output layer over clusters of hidden vectors (Amer et al. 2022, "Fast Vocabulary Projection Method via Clustering
/// for Multilingual Machine Translation on GPU"); see sluice::ClusteredProjection, of which this is the twin: a line may give
/// the tokens of its union (of the clusters of its sentence's lines, or of all lines of the step), and log-probabilities are
/// normalised over these.
///
/// Active beside the clusters' tokens: `always`, probes, and tokens whose score the search raises. All tokens are active for
/// a union that is larger than `full_above`, or has fewer tokens than the search asks for, and for sentences of a direction
/// other than 0 (with Union::batch, if there is one, for all). An edit of a token that is not active edits nothing.
/// Queries are those that cuda::LogSoftmaxTopK answers.
///
/// What differs from the host's: centroids are rounded to T, and products are cuBLAS's, so that a vector nearly as near to two
/// centroids may belong to the other one; last bits depend on the number of lines and on how logits were made (all of
/// them, those of the active tokens, those for few lines), as with cuda::DenseProjection. One set of clusters; no audit.
///
/// A step: a product with the centroids and their selection, three small launches for the unions, the number of active
/// tokens to the host, which chooses, and waits for that; then the logits of the joint union of all sentences (weights
/// gathered, or kept from the last step if the union has not changed; read in place for few lines), what is not a
/// sentence's own masked, selection, and a second wait. Such a step cannot be captured in a graph.
///
/// Costs (clusters + active) d products a line. An object serves one stream at a time. Allocates nothing once it has seen its
/// largest step.
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
      : options_(std::move(options)),
        weights_(weights),
        words_((weights.rows + 31) / 32),
        clusters_(clusters.size()),
        nearest_(half_norms(clusters)),
        pass_(options_.tile_bytes) {
    check_arguments(bias, clusters);
    keep(bias, clusters);
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
    return output_.exchange(task, Kind::logits, hidden.stream, queries, groups, [&](LineTask<float> const& all) {
      MatrixView<T const> const vectors{hidden.data, all.scores.rows, hidden.columns, hidden.stride};
      answer(all, vectors, queries, groups, hidden.stream);
    });
  }

  ClusteredStatistics const& statistics() const { return statistics_; }
  std::int32_t vocabulary_size() const { return static_cast<std::int32_t>(weights_.rows); }
  std::ptrdiff_t hidden_size() const { return weights_.columns; }
  /// Bytes of the device's memory in use, beyond the weights.
  std::size_t workspace() const {
    return kept_.size() + lists_.size() + step_.size() + packed_.size() + places_.size() + output_.workspace() +
           nearest_.workspace() + pass_.workspace() + gemm_.workspace();
  }

 private:
  static std::vector<float> half_norms(Clusters const& clusters) {
    sluice::check(clusters);
    std::vector<float> bias(static_cast<std::size_t>(clusters.size()));
    for (std::ptrdiff_t c = 0; c < clusters.size(); ++c) {
      double sum = 0;
      for (auto const x : clusters.centroid(c)) {
        auto const rounded = static_cast<double>(static_cast<float>(static_cast<T>(x)));
        sum += rounded * rounded;
      }
      bias[static_cast<std::size_t>(c)] = static_cast<float>(-sum / 2);
    }
    return bias;
  }

  void check_arguments(std::span<float const> bias, Clusters const& clusters) const {
    require(bias.empty() || std::ssize(bias) == weights_.rows, "cuda::ClusteredProjection: bias.size()", bias.size(),
            "must be 0 or the number of rows of the weights");
    require(clusters.vocabulary_size == weights_.rows, "cuda::ClusteredProjection: clusters.vocabulary_size",
            clusters.vocabulary_size, "must be that of the weights, " + std::to_string(weights_.rows));
    require(clusters.hidden_size == weights_.columns, "cuda::ClusteredProjection: clusters.hidden_size",
            clusters.hidden_size, "must be that of the weights, " + std::to_string(weights_.columns));
    for (auto const token : options_.always)
      require(token >= 0 && token < weights_.rows, "cuda::ClusteredProjection: always", token,
              "is outside the vocabulary of " + std::to_string(weights_.rows));
    require(options_.full_above >= 0 && options_.full_above <= 1, "cuda::ClusteredProjection: full_above",
            options_.full_above, "must be in [0, 1]");
    require(options_.nearest >= 1 && options_.nearest <= clusters.size(), "cuda::ClusteredProjection: nearest",
            options_.nearest, "must be in [1, number of clusters]");
    require(options_.token_cost >= 0, "cuda::ClusteredProjection: token_cost", options_.token_cost,
            "must not be negative");
    require(options_.few_lines >= 0 && options_.few_lines <= most_skinny_lines, "cuda::ClusteredProjection: few_lines",
            options_.few_lines, "must be in [0, 16]");
  }

  /// What no step changes, to the device.
  void keep(std::span<float const> bias, Clusters const& clusters) {
    std::vector<T> centroids(clusters.centroids.size());
    std::transform(clusters.centroids.begin(), clusters.centroids.end(), centroids.begin(),
                   [](float x) { return static_cast<T>(x); });
    std::vector<std::uint32_t> always(static_cast<std::size_t>(words_));
    for (auto const token : options_.always)
      always[static_cast<std::size_t>(token) / 32] |= 1u << (static_cast<std::uint32_t>(token) % 32);
    Parts parts;
    auto const at_centroids = parts.add<T>(centroids.size());
    auto const at_begin = parts.add<std::int64_t>(clusters.begin.size());
    auto const at_tokens = parts.add<Token>(clusters.tokens.size());
    auto const at_always = parts.add<std::uint32_t>(always.size());
    auto const at_bias = parts.add<float>(bias.size() + GatherLaunch::bias_tail);
    auto* const memory = kept_.get(parts.size(), nullptr, true);
    auto const copy = [&]<class X>(std::size_t at, std::span<X const> from) {
      auto* const to = part<X>(memory, at);
      if (!from.empty()) check(cudaMemcpy(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
      return to;
    };
    centroids_ = copy(at_centroids, std::span<T const>(centroids));
    cluster_begin_ = copy(at_begin, std::span<std::int64_t const>(clusters.begin));
    cluster_tokens_ = copy(at_tokens, std::span<Token const>(clusters.tokens));
    always_ = copy(at_always, std::span<std::uint32_t const>(always));
    if (!bias.empty()) bias_ = copy(at_bias, bias);

    Parts lists;
    auto const at_before = lists.add<std::uint32_t>(always.size());
    auto const at_list = lists.add<Token>(static_cast<std::size_t>(weights_.rows));
    auto* const list = lists_.get(lists.size(), nullptr, true);
    before_ = part<std::uint32_t>(list, at_before), tokens_ = part<Token>(list, at_list);
  }

  void answer(LineTask<float> const& task, MatrixView<T const> hidden, std::span<Query const> queries,
              std::span<Group const> groups, cudaStream_t stream) {
    auto const launch = unite(task, hidden, groups, stream);
    auto const all_lines = choose(stream);
    auto const cached = gathered_ && results_[0].changed == 0;
    gathered_ = cached;
    ++statistics_.steps;
    if (!all_lines && pays(results_[0].count, hidden, cached)) answer_some(task, hidden, queries, launch, stream);
    else answer_all(task, hidden, launch, all_lines, stream);
  }

  /// Which line belongs to which union, from the groups.
  void share(std::size_t lines, std::span<Group const> groups) {
    union_of_.assign(lines, -1), first_.clear(), without_ = 0;
    auto const batch = options_.unite == ClusteredOptions::Union::batch;
    if (batch) {
      if (std::ranges::all_of(groups, [](Group const& g) { return g.direction == 0 || g.lines == 0; })) {
        std::ranges::fill(union_of_, 0);
        first_.push_back(0);
      } else {
        without_ = 1;
      }
    } else if (groups.empty()) {
      for (std::size_t i = 0; i < lines; ++i)
        union_of_[i] = static_cast<std::int32_t>(i), first_.push_back(union_of_[i]);
    } else {
      std::size_t line = 0;
      for (auto const& group : groups) {
        auto const count = static_cast<std::size_t>(group.lines);
        if (count > 0 && group.direction == 0) {
          std::fill_n(union_of_.begin() + static_cast<std::ptrdiff_t>(line), count,
                      static_cast<std::int32_t>(first_.size()));
          first_.push_back(static_cast<std::int32_t>(line));
        } else if (count > 0) {
          ++without_;
        }
        line += count;
      }
    }
    first_.push_back(static_cast<std::int32_t>(lines));
  }

  /// The unions, on the device; what there is to know of them comes to results_.
  UnionLaunch unite(LineTask<float> const& task, MatrixView<T const> hidden, std::span<Group const> groups,
                    cudaStream_t stream) {
    auto const lines = static_cast<std::size_t>(hidden.rows);
    share(lines, groups);
    statistics_.lines += lines;
    auto const unions = first_.size() - 1;
    auto const many = unions > 1;
    auto const words = static_cast<std::size_t>(words_);
    auto const stride = (clusters_ + 3) / 4 * 4;
    Parts parts;
    auto const at_union_of = parts.add<std::int32_t>(lines);
    auto const at_first = parts.add<std::int32_t>(unions + 1);
    auto const asked = parts.size();
    auto const at_results = parts.add<UnionResult>(unions + 1);
    auto const told = parts.size();
    auto const at_masks = parts.add<std::uint32_t>((many ? unions + 1 : 1) * words);
    auto const at_found = parts.add<Candidate>(lines * static_cast<std::size_t>(options_.nearest));
    auto const at_found_of = parts.add<LineResult>(lines);
    auto const at_scores = parts.add<float>(lines * static_cast<std::size_t>(stride));
    auto* const memory = step_.get(parts.size(), stream);
    host_memory_ = host_.get(told, stream);
    device_union_of_ = part<std::int32_t>(memory, at_union_of);
    results_ = part<UnionResult>(host_memory_, at_results);
    std::copy(union_of_.begin(), union_of_.end(), part<std::int32_t>(host_memory_, at_union_of));
    std::copy(first_.begin(), first_.end(), part<std::int32_t>(host_memory_, at_first));

    UnionLaunch launch;
    launch.words = static_cast<std::int32_t>(words_), launch.lines = static_cast<std::int32_t>(lines);
    launch.nearest = options_.nearest, launch.unions = static_cast<std::int32_t>(unions);
    launch.always = always_, launch.begin = cluster_begin_, launch.cluster_tokens = cluster_tokens_;
    launch.found = part<Candidate>(memory, at_found), launch.found_of = part<LineResult>(memory, at_found_of);
    launch.union_of = device_union_of_, launch.first = part<std::int32_t>(memory, at_first);
    launch.queries = task.queries, launch.edits = task.edits, launch.probes = task.probes;
    launch.joint = part<std::uint32_t>(memory, at_masks);
    launch.own = many ? launch.joint + words : nullptr;
    launch.before = before_, launch.tokens = tokens_;
    launch.results = part<UnionResult>(memory, at_results);
    if (unions == 0) {
      results_[0] = {};
      return launch;
    }

    check(cudaMemcpyAsync(memory, host_memory_, asked, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    MatrixView<float> const scores{part<float>(memory, at_scores), hidden.rows, clusters_, stride};
    gemm_.enqueue<T>(hidden, {centroids_, clusters_, weights_.columns, weights_.columns}, scores, stream);
    LineTask<float> find;
    find.scores = {scores.data, scores.rows, scores.columns, scores.stride};
    find.k = find.query.best = options_.nearest;
    find.query.normalise = 0;
    find.best = part<Candidate>(memory, at_found), find.results = part<LineResult>(memory, at_found_of);
    nearest_.enqueue(find, stream);
    launch_union(launch, stream);
    check(cudaMemcpyAsync(results_, launch.results, (unions + 1) * sizeof(UnionResult), cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cuda::ClusteredProjection");
    return launch;
  }

  /// Lines for which all tokens are active lose their union. Returns how many there are.
  std::size_t choose(cudaStream_t stream) {
    auto const unions = first_.size() - 1;
    statistics_.unions += unions + without_, statistics_.full += without_;
    auto const most = options_.full_above * static_cast<double>(weights_.rows);
    std::size_t full = 0;
    for (std::size_t u = 0; u < unions; ++u) {
      auto const& result = results_[1 + u];
      auto const part = result.count > 0 && result.count <= most && result.count >= result.wanted;
      if (part) {
        statistics_.active += static_cast<std::uint64_t>(result.count);
      } else {
        ++statistics_.full, ++full;
        std::ranges::replace(union_of_, static_cast<std::int32_t>(u), -1);
      }
    }
    if (full > 0) {
      auto* const host = static_cast<std::int32_t*>(host_memory_);  // where it begins
      std::copy(union_of_.begin(), union_of_.end(), host);
      check(cudaMemcpyAsync(device_union_of_, host, union_of_.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                            stream),
            "cudaMemcpyAsync");
    }
    return static_cast<std::size_t>(std::ranges::count(union_of_, -1));
  }

  /// Whether the logits of so many tokens are worth the trouble.
  bool pays(std::int32_t count, MatrixView<T const> hidden, bool cached) const {
    auto const all = static_cast<double>(weights_.rows);
    auto const bytes = all * static_cast<double>(weights_.columns) * sizeof(T);
    if (bytes <= static_cast<double>(options_.full_below)) return false;
    return count * (cached || in_place(hidden) ? 1.0 : options_.token_cost) < all;
  }

  /// Whether weights are read where they are.
  bool in_place(MatrixView<T const> hidden) const {
    auto const aligned = [](MatrixView<T const> x) {
      return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 &&
             x.stride * static_cast<std::ptrdiff_t>(sizeof(T)) % 16 == 0;
    };
    return hidden.rows <= options_.few_lines && weights_.columns % FormatOf<T>::wide == 0 && aligned(weights_) &&
           aligned(hidden);
  }

  static MatrixView<T const> lines_of(MatrixView<T const> hidden, std::ptrdiff_t first, std::ptrdiff_t count) {
    return {hidden.data + first * hidden.stride, count, hidden.columns, hidden.stride};
  }

  /// Adds what takes away, in a tile, what is not active for its lines.
  void mask(UnionLaunch const& launch, Token const* tokens, std::ptrdiff_t line, std::ptrdiff_t column,
            MatrixView<float> to, cudaStream_t stream) const {
    MaskLaunch mask;
    mask.logits = to.data, mask.stride = to.stride;
    mask.lines = static_cast<std::int32_t>(to.rows), mask.columns = static_cast<std::int32_t>(to.columns);
    mask.first = static_cast<std::int32_t>(column), mask.tokens = tokens;
    mask.union_of = device_union_of_ + line, mask.masks = launch.mask(0), mask.words = launch.words;
    launch_mask(mask, stream);
  }

  void answer_all(LineTask<float> task, MatrixView<T const> hidden, UnionLaunch const& launch, std::size_t all_lines,
                  cudaStream_t stream) {
    task.bias = bias_;
    task.scores = {nullptr, hidden.rows, weights_.rows, 0};
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t token, MatrixView<float> to) {
      gemm_.enqueue<T>(lines_of(hidden, line, to.rows),
                       {weights_.data + token * weights_.stride, to.columns, weights_.columns, weights_.stride}, to,
                       stream);
      if (all_lines < union_of_.size()) mask(launch, nullptr, line, token, to, stream);
    });
  }

  void answer_some(LineTask<float> task, MatrixView<T const> hidden, std::span<Query const> queries,
                   UnionLaunch const& launch, cudaStream_t stream) {
    auto const count = results_[0].count;
    ++statistics_.reduced;
    place(task, queries, count, stream);
    task.tokens = tokens_;
    task.scores = {nullptr, hidden.rows, count, 0};
    auto const here = in_place(hidden);
    auto const packed = here ? MatrixView<T const>{} : gather(task, count, stream);
    pass_.enqueue(output_, task, stream, [&](std::ptrdiff_t line, std::ptrdiff_t first, MatrixView<float> to) {
      auto const lines = lines_of(hidden, line, to.rows);
      if (here) {
        skinny(lines, first, to, stream);
      } else {
        gemm_.enqueue<T>(lines, {packed.data + first * packed.stride, to.columns, packed.columns, packed.stride}, to,
                         stream);
      }
      if (launch.own != nullptr) mask(launch, tokens_, line, first, to, stream);
    });
  }

  /// Edits and probes with places in the joint union for tokens.
  void place(LineTask<float>& task, std::span<Query const> queries, std::int32_t count, cudaStream_t stream) {
    PlaceLaunch launch;
    launch.tokens = tokens_, launch.count = count;
    for (auto const& query : queries) {
      launch.edit_count += static_cast<std::int32_t>(query.edits.size());
      launch.probe_count += static_cast<std::int32_t>(query.probes.size());
    }
    Parts parts;
    auto const at_edits = parts.add<Edit>(static_cast<std::size_t>(launch.edit_count));
    auto const at_probes = parts.add<Token>(static_cast<std::size_t>(launch.probe_count));
    auto* const memory = places_.get(parts.size(), stream);
    launch.edits = task.edits, launch.probes = task.probes;
    launch.placed_edits = part<Edit>(memory, at_edits), launch.placed_probes = part<Token>(memory, at_probes);
    launch_places(launch, stream);
    task.edits = launch.placed_edits, task.probes = launch.placed_probes;
  }

  /// The joint union's weights, side by side; its bias becomes the task's.
  MatrixView<T const> gather(LineTask<float>& task, std::int32_t count, cudaStream_t stream) {
    auto const stride = (weights_.columns * sizeof(T) + 15) / 16 * 16;
    auto const rows = static_cast<std::size_t>(count);
    Parts parts;
    auto const at_rows = parts.add<unsigned char>(rows * stride);
    auto const at_bias = parts.add<float>(bias_ != nullptr ? rows + GatherLaunch::bias_tail : 0);
    auto* const memory = packed_.get(parts.size(), stream);
    GatherLaunch launch;
    launch.weights = reinterpret_cast<unsigned char const*>(weights_.data);
    launch.stride = weights_.stride * static_cast<std::ptrdiff_t>(sizeof(T));
    launch.row_bytes = static_cast<std::int32_t>(weights_.columns * static_cast<std::ptrdiff_t>(sizeof(T)));
    launch.tokens = tokens_, launch.count = count;
    launch.packed = part<unsigned char>(memory, at_rows), launch.packed_stride = static_cast<std::ptrdiff_t>(stride);
    launch.bias = bias_, launch.packed_bias = part<float>(memory, at_bias);
    if (!gathered_) {
      launch_gather(launch, stream);
      gathered_ = true;
      ++statistics_.gathered;
    }
    if (bias_ != nullptr) task.bias = launch.packed_bias;
    return {reinterpret_cast<T const*>(launch.packed), count, weights_.columns,
            static_cast<std::ptrdiff_t>(stride / sizeof(T))};
  }

  void skinny(MatrixView<T const> hidden, std::ptrdiff_t first, MatrixView<float> to, cudaStream_t stream) {
    using Bits = typename FormatOf<T>::Bits;
    SkinnyLaunch<FormatOf<T>> launch;
    launch.weights = reinterpret_cast<Bits const*>(weights_.data), launch.weight_stride = weights_.stride;
    launch.hidden = reinterpret_cast<Bits const*>(hidden.data), launch.hidden_stride = hidden.stride;
    launch.lines = static_cast<std::int32_t>(hidden.rows), launch.depth = static_cast<std::int32_t>(hidden.columns);
    launch.tokens = tokens_ + first, launch.count = static_cast<std::int32_t>(to.columns);
    launch.bias = bias_, launch.logits = to.data, launch.stride = to.stride;
    launch_skinny(launch, stream);
  }

  ClusteredOptions options_;
  MatrixView<T const> weights_;
  std::ptrdiff_t words_, clusters_;
  LogSoftmaxTopK nearest_, output_;
  ProductPass pass_;
  Gemm gemm_;

  Buffer<Where::device> kept_, lists_, step_, packed_, places_;
  Buffer<Where::host> host_;
  T const* centroids_ = nullptr;
  std::int64_t const* cluster_begin_ = nullptr;
  Token const* cluster_tokens_ = nullptr;
  std::uint32_t const* always_ = nullptr;
  float const* bias_ = nullptr;
  std::uint32_t* before_ = nullptr;
  Token* tokens_ = nullptr;  // the joint union of the last step
  bool gathered_ = false;    // its weights are in packed_

  // A step's.
  std::vector<std::int32_t> union_of_, first_;
  std::size_t without_ = 0;  // sentences without clusters, or a batch with any
  void* host_memory_ = nullptr;
  std::int32_t* device_union_of_ = nullptr;
  UnionResult* results_ = nullptr;
  ClusteredStatistics statistics_;
};

}  // namespace sluice::inline v0::cuda
