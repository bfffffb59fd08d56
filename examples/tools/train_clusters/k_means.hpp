// SPDX-License-Identifier: Apache-2.0
/// \file
/// k-means of the library, or of Faiss where it was found.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/k_means.hpp>

#include <train_clusters/options.hpp>

namespace train_clusters {

/// Whether this program can do what KMeansName::faiss says.
bool has_faiss();

/// \param points  [n, d], without a stride
sluice::KMeans k_means(KMeansName name, sluice::MatrixView<float const> points, sluice::KMeansOptions const& options);

}  // namespace train_clusters
