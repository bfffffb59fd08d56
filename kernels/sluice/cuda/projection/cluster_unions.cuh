// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which tokens are active for which lines of a step, found on a device.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/buffer.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/device/setup.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/active_union.cuh>
#include <sluice/cuda/projection/clustered_options.cuh>
#include <sluice/cuda/projection/gemm.cuh>
#include <sluice/cuda/projection/projection_launch.cuh>
#include <sluice/cuda/projection/union_lines.cuh>
#include <sluice/output/clusters/clusters.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda {

/// The unions of the clusters of lines (see ClusteredProjection), on the device; the host learns how many tokens they have.
/// Allocates nothing once it has seen its largest step.
template <class T>
class ClusterUnions {
 public:
  /// Clusters fit the vocabulary and the options.
  ClusterUnions(Clusters const& clusters, ClusteredOptions options)
      : options_(std::move(options)),
        vocabulary_size_(clusters.vocabulary_size),
        words_((vocabulary_size_ + 31) / 32),
        clusters_(clusters.size()),
        nearest_(half_norms(clusters)) {
    keep(clusters);
  }

  /// Forms the unions of a step. Waits for the stream, unless there is none.
  void form(LineTask<float> const& task, MatrixView<T const> hidden, std::span<Group const> groups, Gemm& gemm,
            ClusteredStatistics& statistics, cudaStream_t stream) {
    unite(task, hidden, groups, gemm, statistics, stream);
    choose(statistics, stream);
  }

  // Of the last step:
  /// Lines for which all tokens are active.
  std::size_t all_lines() const { return all_lines_; }
  /// Lines.
  std::size_t lines() const { return lines_.union_of.size(); }
  /// Tokens of all unions together, on the device, ascending: the joint union.
  Token const* tokens() const { return tokens_; }
  std::int32_t count() const { return results_[0].count; }
  /// Whether the joint union differs from that of the step before.
  bool changed() const { return results_[0].changed != 0; }
  /// Whether there is more than one union, so that a line may have less than the joint one.
  bool several() const { return launch_.own != nullptr; }

  /// Adds what takes away, in a tile, what is not active for its lines.
  void mask(Token const* tokens, std::ptrdiff_t line, std::ptrdiff_t column, MatrixView<float> to,
            cudaStream_t stream) const {
    MaskLaunch mask;
    mask.logits = to.data, mask.stride = to.stride;
    mask.lines = static_cast<std::int32_t>(to.rows), mask.columns = static_cast<std::int32_t>(to.columns);
    mask.first = static_cast<std::int32_t>(column), mask.tokens = tokens;
    mask.union_of = device_union_of_ + line, mask.masks = launch_.mask(0), mask.words = launch_.words;
    launch_mask(mask, stream);
  }

  /// Bytes of the device's memory in use.
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

  /// What no step changes, to the device.
  void keep(Clusters const& clusters) {
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
    auto* const memory = kept_.get(parts.size(), true);
    auto const copy = [&]<class X>(std::size_t at, std::span<X const> from) {
      auto* const to = part<X>(memory, at);
      copy_now(to, from.data(), from.size_bytes());
      return to;
    };
    centroids_ = copy(at_centroids, std::span<T const>(centroids));
    cluster_begin_ = copy(at_begin, std::span<std::int64_t const>(clusters.begin));
    cluster_tokens_ = copy(at_tokens, std::span<Token const>(clusters.tokens));
    always_ = copy(at_always, std::span<std::uint32_t const>(always));

    Parts lists;
    auto const at_before = lists.add<std::uint32_t>(always.size());
    auto const at_list = lists.add<Token>(static_cast<std::size_t>(vocabulary_size_));
    auto* const list = lists_.get(lists.size(), true);
    before_ = part<std::uint32_t>(list, at_before), tokens_ = part<Token>(list, at_list);
  }

  /// The unions, on the device; what there is to know of them comes to results_.
  void unite(LineTask<float> const& task, MatrixView<T const> hidden, std::span<Group const> groups, Gemm& gemm,
             ClusteredStatistics& statistics, cudaStream_t stream) {
    auto const lines = static_cast<std::size_t>(hidden.rows);
    lines_.share(lines, groups, options_.unite);
    statistics.lines += lines;
    auto const unions = lines_.unions();
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
    std::copy(lines_.union_of.begin(), lines_.union_of.end(), part<std::int32_t>(host_memory_, at_union_of));
    std::copy(lines_.first.begin(), lines_.first.end(), part<std::int32_t>(host_memory_, at_first));

    auto& launch = launch_ = {};
    launch.words = static_cast<std::int32_t>(words_), launch.size = static_cast<std::int32_t>(vocabulary_size_);
    launch.lines = static_cast<std::int32_t>(lines);
    launch.nearest = options_.nearest, launch.unions = static_cast<std::int32_t>(unions);
    launch.always = always_, launch.begin = cluster_begin_, launch.cluster_tokens = cluster_tokens_;
    launch.found = part<Candidate>(memory, at_found), launch.found_of = part<LineResult>(memory, at_found_of);
    launch.union_of = device_union_of_, launch.first = part<std::int32_t>(memory, at_first);
    launch.queries = task.queries, launch.edits = task.edits, launch.probes = task.probes;
    launch.selects = task.selection.queries;
    launch.joint = part<std::uint32_t>(memory, at_masks);
    launch.own = many ? launch.joint + words : nullptr;
    launch.before = before_, launch.tokens = tokens_;
    launch.results = part<UnionResult>(memory, at_results);
    if (unions == 0) {
      results_[0] = {};
      return;
    }

    check(cudaMemcpyAsync(memory, host_memory_, asked, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    MatrixView<float> const scores{part<float>(memory, at_scores), hidden.rows, clusters_, stride};
    gemm.enqueue<T>(hidden, {centroids_, clusters_, hidden.columns, hidden.columns}, scores, stream);
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
  }

  /// Lines for which all tokens are active lose their union.
  void choose(ClusteredStatistics& statistics, cudaStream_t stream) {
    auto const unions = lines_.unions();
    statistics.unions += unions + lines_.without, statistics.full += lines_.without;
    auto const most = options_.full_above * static_cast<double>(vocabulary_size_);
    std::size_t full = 0;
    for (std::size_t u = 0; u < unions; ++u) {
      auto const& result = results_[1 + u];
      auto const part = result.count > 0 && result.count <= most && result.count >= result.wanted;
      if (part) {
        statistics.active += static_cast<std::uint64_t>(result.count);
      } else {
        ++statistics.full, ++full;
        std::replace(lines_.union_of.begin(), lines_.union_of.end(), static_cast<std::int32_t>(u), -1);
      }
    }
    if (full > 0) {
      auto* const host = static_cast<std::int32_t*>(host_memory_);  // where it begins
      std::copy(lines_.union_of.begin(), lines_.union_of.end(), host);
      check(cudaMemcpyAsync(device_union_of_, host, lines_.union_of.size() * sizeof(std::int32_t),
                            cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
    }
    all_lines_ = static_cast<std::size_t>(std::count(lines_.union_of.begin(), lines_.union_of.end(), -1));
  }

  ClusteredOptions options_;
  std::ptrdiff_t vocabulary_size_, words_, clusters_;
  LogSoftmaxTopK nearest_;

  Buffer<Where::device> kept_, lists_, step_;
  Buffer<Where::host> host_;
  T const* centroids_ = nullptr;
  std::int64_t const* cluster_begin_ = nullptr;
  Token const* cluster_tokens_ = nullptr;
  std::uint32_t const* always_ = nullptr;
  std::uint32_t* before_ = nullptr;
  Token* tokens_ = nullptr;  // the joint union of the last step

  // A step's.
  UnionLines lines_;
  std::size_t all_lines_ = 0;
  void* host_memory_ = nullptr;
  std::int32_t* device_union_of_ = nullptr;
  UnionResult* results_ = nullptr;
  UnionLaunch launch_;
};

}  // namespace sluice::inline v0::cuda
