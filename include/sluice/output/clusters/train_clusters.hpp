// SPDX-License-Identifier: Apache-2.0
/// \file
/// train_clusters(): clusters of recorded hidden vectors, with the tokens that were likely in each.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clusters/clusters.hpp>
#include <sluice/output/clusters/k_means.hpp>
#include <sluice/output/clusters/nearest_centroid.hpp>
#include <sluice/output/clusters/record_hidden.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Options of train_clusters().
struct TrainClustersOptions {
  std::ptrdiff_t clusters = 400;       ///< in [1, number of samples]
  std::ptrdiff_t likely = 1;           ///< tokens that every sample adds to its cluster, in [1, K of the samples]
  std::int32_t iterations = 20;        ///< of k-means; >= 0
  std::uint64_t seed = 1;              ///< of k-means
  std::ptrdiff_t points = 256;         ///< samples per cluster used for k-means, drawn evenly; >= 1. All samples add
                                       ///< tokens
  std::span<float const> centroids{};  ///< [clusters, d]: from another k-means; then only `likely` and bfloat16 are
                                       ///< used. A view, of that call
  bool bfloat16 = true;                ///< round centroids to bfloat16, which halves the size of their file
};

inline namespace SLUICE_ISA {

/// The samples used for k-means: all, or `options.points` per cluster if there are more. [rows, d]; the memory is in
/// `storage` unless all samples are used.
inline MatrixView<float const> k_means_points(ClusterSamples const& samples, TrainClustersOptions const& options,
                                              std::vector<float>& storage) {
  require(options.clusters >= 1, "train_clusters: clusters", options.clusters, "must be at least 1");
  require(options.clusters <= samples.size(), "train_clusters: clusters", options.clusters,
          "is more than there are samples, " + std::to_string(samples.size()));
  require(options.points >= 1, "train_clusters: points", options.points, "must be at least 1");
  auto const all = samples.hidden();
  if (options.points >= (samples.size() + options.clusters - 1) / options.clusters) return all;
  auto const chosen = detail::draw_subset(options.points * options.clusters, samples.size(), derive(options.seed, 1));
  storage.clear();
  storage.reserve(chosen.size() * static_cast<std::size_t>(all.columns));
  for (auto const i : chosen) storage.insert(storage.end(), all[i].begin(), all[i].end());
  return {storage.data(), std::ssize(chosen), all.columns, all.columns};
}

/// Trains clusters by k-means. The tokens of each cluster are the union of the `likely` most probable tokens of all its
/// samples (Amer et al. 2022, section 2.2), so no sample misses one of its own tokens. Clusters without samples are
/// dropped.
///
/// \throws std::invalid_argument  for invalid options
///
/// Complexity: that of k_means() for its points, plus O(samples * clusters * d).
inline Clusters train_clusters(ClusterSamples const& samples, TrainClustersOptions const& options = {}) {
  require(options.likely >= 1, "train_clusters: likely", options.likely, "must be at least 1");
  require(options.likely <= samples.likely(), "train_clusters: likely", options.likely,
          "is more than were recorded, " + std::to_string(samples.likely()));
  auto const d = samples.hidden_size();
  std::vector<float> centroids(options.centroids.begin(), options.centroids.end());
  if (centroids.empty()) {
    std::vector<float> storage;
    auto const points = k_means_points(samples, options, storage);
    centroids = k_means(points, {options.clusters, options.iterations, options.seed}).centroids;
  }
  require(samples.size() >= 1, "train_clusters: samples.size()", samples.size(), "must be at least 1");
  require(centroids.size() % static_cast<std::size_t>(d) == 0, "train_clusters: centroids.size()", centroids.size(),
          "must be a multiple of the hidden size, " + std::to_string(d));
  if (options.bfloat16) std::transform(centroids.begin(), centroids.end(), centroids.begin(), round_to_bfloat16);
  auto const count = std::ssize(centroids) / d;
  MatrixView<float const> const view{centroids.data(), count, d, d};
  detail::check_finite(view, "train_clusters: centroids");

  std::vector<std::int32_t> nearest(static_cast<std::size_t>(samples.size()));
  NearestCentroid(view).find(samples.hidden(), nearest);

  std::vector<std::vector<Token>> sets(static_cast<std::size_t>(count));
  for (std::ptrdiff_t i = 0; i < samples.size(); ++i) {
    auto const tokens = samples.tokens(i).first(static_cast<std::size_t>(options.likely));
    auto& set = sets[static_cast<std::size_t>(nearest[static_cast<std::size_t>(i)])];
    set.insert(set.end(), tokens.begin(), tokens.end());
  }

  Clusters clusters{.hidden_size = d, .vocabulary_size = samples.vocabulary_size()};
  for (std::size_t c = 0; c < sets.size(); ++c) {
    auto& set = sets[c];
    if (set.empty()) continue;
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    auto const centroid = view[static_cast<std::ptrdiff_t>(c)];
    clusters.centroids.insert(clusters.centroids.end(), centroid.begin(), centroid.end());
    clusters.tokens.insert(clusters.tokens.end(), set.begin(), set.end());
    clusters.begin.push_back(std::ssize(clusters.tokens));
  }
  return clusters;
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
