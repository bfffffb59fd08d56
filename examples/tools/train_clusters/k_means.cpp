// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/error.hpp>

#include <train_clusters/k_means.hpp>

#ifdef SLUICE_FAISS
#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <limits>
#endif

namespace train_clusters {

#ifdef SLUICE_FAISS

bool has_faiss() { return true; }

namespace {

sluice::KMeans by_faiss(sluice::MatrixView<float const> points, sluice::KMeansOptions const& options) {
  sluice::require(options.clusters <= points.rows, "k_means: clusters", options.clusters,
                  "is more than there are points");
  faiss::ClusteringParameters parameters;
  parameters.niter = options.iterations;
  parameters.seed = static_cast<int>(options.seed % std::numeric_limits<int>::max());
  // Points were drawn before; and it would print a warning.
  parameters.min_points_per_centroid = 1;
  parameters.max_points_per_centroid = static_cast<int>(points.rows / options.clusters) + 1;
  auto const d = static_cast<int>(points.columns);
  faiss::Clustering clustering(d, static_cast<int>(options.clusters), parameters);
  faiss::IndexFlatL2 index(d);
  clustering.train(points.rows, points.data, index);
  sluice::KMeans result{.centroids = clustering.centroids, .objective = {}};
  for (auto const& iteration : clustering.iteration_stats)
    result.objective.push_back(static_cast<double>(iteration.obj) / static_cast<double>(points.rows));
  return result;
}

}  // namespace

#else

bool has_faiss() { return false; }

#endif

sluice::KMeans k_means([[maybe_unused]] KMeansName name, sluice::MatrixView<float const> points,
                       sluice::KMeansOptions const& options) {
#ifdef SLUICE_FAISS
  if (name == KMeansName::faiss) return by_faiss(points, options);
#endif
  return sluice::k_means(points, options);
}

}  // namespace train_clusters
