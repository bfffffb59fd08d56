// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the active tokens of each line of a step, on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/clustered_options.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>
#include <sluice/cuda/projection/detail/gemm.cuh>
#include <sluice/cuda/projection/detail/product_choice.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>
#include <sluice/cuda/projection/detail/union_lines.cuh>
#include <sluice/output/clusters.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// The unions of the lines' clusters (see ClusteredProjection), on the device. The host learns their sizes only if it
/// asks. Allocates nothing once it has seen its largest step.
template <class T>
class ClusterUnions {
 public:
  /// The clusters must fit the vocabulary and the options.
  ClusterUnions(Clusters const& clusters, ClusteredOptions options)
      : options_(std::move(options)),
        vocabulary_size_(clusters.vocabulary_size),
        words_((vocabulary_size_ + 31) / 32),
        clusters_(clusters.size()),
        nearest_(half_norms(clusters)) {
    keep(clusters);
  }

  /// Enqueues the kernels that form the unions of a step. Does not wait.
  /// \param product  the product to follow: in place, all tokens are listed if all are active for any line; gathered
  ///                 weights are kept while the joint union equals that of the last step of this kind
  void form(LineTask<float> const& task, MatrixView<T const> hidden, std::span<Group const> groups, Product product,
            Gemm& gemm, cudaStream_t stream) {
    lines_.share(static_cast<std::size_t>(hidden.rows), groups, options_.unite);
    begin(hidden, lines_.unions(), true, product, stream);
    launch_.without = lines_.without > 0 ? 1 : 0;
    if (launch_.unions == 0) return;
    std::copy(lines_.union_of.begin(), lines_.union_of.end(), part<std::int32_t>(host_memory_, at_union_of_));
    std::copy(lines_.first.begin(), lines_.first.end(), part<std::int32_t>(host_memory_, at_first_));
    check(cudaMemcpyAsync(memory_, host_memory_, asked_, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    launch_.union_of = part<std::int32_t>(memory_, at_union_of_),
    launch_.first = part<std::int32_t>(memory_, at_first_);
    unite(task, hidden, gemm, stream);
  }
  /// The same if every `each` adjacent lines are a sentence: a graph that holds it copies nothing from the host.
  void form(LineTask<float> const& task, MatrixView<T const> hidden, std::int32_t each, Product product, Gemm& gemm,
            cudaStream_t stream) {
    auto const batch = options_.unite == ClusteredOptions::Union::batch;
    auto const lines = static_cast<std::int32_t>(hidden.rows);
    each = batch || each > lines ? lines : each;
    begin(hidden, static_cast<std::size_t>((lines + each - 1) / each), false, product, stream);
    launch_.each = each;
    unite(task, hidden, gemm, stream);
  }
  /// Enqueues a copy of the unions' results to the host.
  void tell(cudaStream_t stream) {
    told_ = true;
    if (launch_.unions == 0) return;
    check(cudaMemcpyAsync(part<UnionResult>(host_memory_, at_results_), launch_.results,
                          (1 + lines_.unions()) * sizeof(UnionResult), cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
  }

  // Of the last step, once the stream has passed tell():

  /// Adds the step to the statistics, once, if tell() was called.
  /// \return whether all tokens were active for any line
  std::optional<bool> count(ClusteredStatistics& statistics) {
    if (!std::exchange(told_, false)) return {};
    auto const full = std::count_if(results() + 1, results() + 1 + lines_.unions(),
                                    [](UnionResult const& result) { return result.part == 0; });
    auto const all = static_cast<std::size_t>(full) + lines_.without;
    statistics.lines += lines_.union_of.size();
    statistics.unions += lines_.unions() + lines_.without, statistics.full += all;
    for (std::size_t u = 1; u <= lines_.unions(); ++u)
      if (results()[u].part != 0) statistics.active += static_cast<std::uint64_t>(results()[u].count);
    return all > 0;
  }
  /// Discards a result that must not be counted.
  void forget() { told_ = false; }
  /// The joint union's number of tokens and, for gathered products, whether it differs from that of the last such step.
  /// There must be a union.
  std::int32_t size() const { return results()[0].count; }
  bool changed() const { return results()[0].changed != 0; }

  /// The kernels' arguments for it.
  UnionLaunch const& launch() const { return launch_; }
  /// Whether there are several unions, so that a line may have fewer tokens than the joint one.
  bool several() const { return launch_.own != nullptr; }

  /// Enqueues the kernel that masks, in a tile, the logits that are not active for their lines.
  void mask(Token const* tokens, std::ptrdiff_t line, std::ptrdiff_t column, MatrixView<float> to,
            cudaStream_t stream) const {
    MaskLaunch mask;
    mask.logits = to.data, mask.stride = to.stride;
    mask.lines = static_cast<std::int32_t>(to.rows), mask.columns = static_cast<std::int32_t>(to.columns);
    mask.first = static_cast<std::int32_t>(column), mask.tokens = tokens;
    mask.active = launch_.active(), mask.active.line = static_cast<std::int32_t>(line);
    launch_mask(mask, stream, Start::after);  // after cuBLAS
  }

  /// Bytes of device memory in use.
  std::size_t workspace() const { return kept_.size() + lists_.size() + step_.size() + nearest_.workspace(); }

 private:
  static std::vector<float> half_norms(Clusters const& clusters) {
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

  /// Copies constant data to the device.
  void keep(Clusters const& clusters) {
    std::vector<T> centroids(clusters.centroids.size());
    std::transform(clusters.centroids.begin(), clusters.centroids.end(), centroids.begin(),
                   [](float x) { return static_cast<T>(x); });
    auto const words = static_cast<std::size_t>(words_);
    std::vector<std::uint32_t> always(words), masks(words * static_cast<std::size_t>(clusters_));
    auto const insert = [](std::uint32_t* mask, Token token) {
      mask[static_cast<std::size_t>(token) / 32] |= 1u << (static_cast<std::uint32_t>(token) % 32);
    };
    for (auto const token : options_.always) insert(always.data(), token);
    for (std::ptrdiff_t c = 0; c < clusters_; ++c)
      for (auto const token : clusters[c]) insert(masks.data() + static_cast<std::size_t>(c) * words, token);
    Parts parts;
    auto const at_centroids = parts.add<T>(centroids.size());
    auto const at_masks = parts.add<std::uint32_t>(masks.size());
    auto const at_always = parts.add<std::uint32_t>(always.size());
    auto* const memory = kept_.get(parts.size(), true);
    auto const copy = [&]<class X>(std::size_t at, std::span<X const> from) {
      auto* const to = part<X>(memory, at);
      copy_now(to, from.data(), from.size_bytes());
      return to;
    };
    centroids_ = copy(at_centroids, std::span<T const>(centroids));
    cluster_masks_ = copy(at_masks, std::span<std::uint32_t const>(masks));
    always_ = copy(at_always, std::span<std::uint32_t const>(always));

    Parts lists;
    auto const at_before = lists.add<std::uint32_t>(always.size());
    auto const at_list = lists.add<Token>(static_cast<std::size_t>(vocabulary_size_));
    auto* const list = lists_.get(lists.size(), true);
    before_ = part<std::uint32_t>(list, at_before), tokens_ = part<Token>(list, at_list);
  }

  UnionResult const* results() const { return part<UnionResult>(host_memory_, at_results_); }

  /// Takes memory for a step, and sets the kernels' arguments that do not depend on the task.
  /// \param grouped  the host says which lines share a union
  void begin(MatrixView<T const> hidden, std::size_t unions, bool grouped, Product product, cudaStream_t stream) {
    auto const lines = static_cast<std::size_t>(hidden.rows), words = static_cast<std::size_t>(words_);
    auto const many = unions > 1;
    Parts parts;
    at_union_of_ = parts.add<std::int32_t>(grouped ? lines : 0);
    at_first_ = parts.add<std::int32_t>(grouped ? unions + 1 : 0);
    asked_ = parts.size();
    at_results_ = parts.add<UnionResult>(unions + 1);
    auto const told = parts.size();
    auto const at_masks = parts.add<std::uint32_t>((many ? unions + 1 : 1) * words);
    auto const at_found = parts.add<Candidate>(lines * static_cast<std::size_t>(options_.nearest));
    auto const at_found_of = parts.add<LineResult>(lines);
    at_scores_ = parts.add<float>(lines * static_cast<std::size_t>(stride()));
    memory_ = step_.get(parts.size(), stream);
    if (grouped) host_memory_ = host_.get(told, stream);

    auto& launch = launch_ = {};
    launch.words = static_cast<std::int32_t>(words_), launch.size = static_cast<std::int32_t>(vocabulary_size_);
    launch.lines = static_cast<std::int32_t>(lines), launch.unions = static_cast<std::int32_t>(unions);
    launch.nearest = options_.nearest;
    launch.most = static_cast<std::int32_t>(options_.full_above * static_cast<double>(vocabulary_size_));
    launch.always = always_, launch.clusters = cluster_masks_;
    launch.found = part<Candidate>(memory_, at_found), launch.found_of = part<LineResult>(memory_, at_found_of);
    launch.joint = part<std::uint32_t>(memory_, at_masks);
    launch.own = many ? launch.joint + words : nullptr;
    launch.before = product == Product::gathered ? before_ : nullptr;
    launch.list_all = product == Product::in_place ? 1 : 0;
    launch.tokens = tokens_;
    launch.results = part<UnionResult>(memory_, at_results_);
  }

  /// Finds the nearest centroids, then forms the unions.
  void unite(LineTask<float> const& task, MatrixView<T const> hidden, Gemm& gemm, cudaStream_t stream) {
    launch_.common = task.query, launch_.queries = task.queries, launch_.selects = task.selection.queries;
    launch_.edits = task.edits, launch_.probes = task.probes, launch_.ascending = task.ascending ? 1 : 0;
    launch_.masks = task.masks;
    MatrixView<float> const scores{part<float>(memory_, at_scores_), hidden.rows, clusters_, stride()};
    gemm.enqueue<T>(hidden, {centroids_, clusters_, hidden.columns, hidden.columns}, scores, stream);
    LineTask<float> find;
    find.scores = {scores.data, scores.rows, scores.columns, scores.stride};
    find.k = find.query.best = options_.nearest;
    find.query.normalise = 0;
    find.best = const_cast<Candidate*>(launch_.found), find.results = const_cast<LineResult*>(launch_.found_of);
    nearest_.enqueue(find, stream);
    launch_union(launch_, stream, options_.step.behind_ours());
  }

  /// The distance between lines of the centroids' scores.
  std::ptrdiff_t stride() const { return (clusters_ + 3) / 4 * 4; }

  ClusteredOptions options_;
  std::ptrdiff_t vocabulary_size_, words_, clusters_;
  LogSoftmaxTopK nearest_;

  Buffer<Where::device> kept_, lists_, step_;
  Buffer<Where::host> host_;
  T const* centroids_ = nullptr;
  std::uint32_t const* cluster_masks_ = nullptr;
  std::uint32_t const* always_ = nullptr;
  std::uint32_t* before_ = nullptr;
  Token* tokens_ = nullptr;  // the joint union of the last step

  // For the current step.
  UnionLines lines_;
  UnionLaunch launch_;
  void *memory_ = nullptr, *host_memory_ = nullptr;
  std::size_t at_union_of_ = 0, at_first_ = 0, asked_ = 0, at_results_ = 0, at_scores_ = 0;
  bool told_ = false;
};

}  // namespace sluice::inline v0::cuda::detail
