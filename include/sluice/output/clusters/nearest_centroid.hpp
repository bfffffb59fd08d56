// SPDX-License-Identifier: Apache-2.0
/// \file
/// NearestCentroid: the cluster that a hidden vector belongs to.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/packed/packed_matrix.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// argmin_c |h - C_c|^2 = argmax_c (h . C_c - |C_c|^2 / 2) for many vectors h at once (Amer et al. 2022, equation 2):
/// one product with the packed centroids, in float32. The answer for a vector does not depend on the other vectors, bit
/// for bit; ties go to the lower cluster. Vectors with a NaN belong to cluster 0.
///
/// Training and inference share it, so that both find the same cluster for the same vector.
class NearestCentroid {
 public:
  /// Packs (copies) `centroids` [clusters, d].
  /// \throws std::invalid_argument  if there is no centroid
  template <class = void>
  explicit NearestCentroid(MatrixView<float const> centroids)
      : centroids_(std::make_shared<PackedMatrix const>(centroids, half_norms(centroids))),
        scores_(static_cast<std::size_t>(rows_at_once * centroids.rows)) {}

  std::ptrdiff_t size() const { return centroids_->outputs(); }
  std::ptrdiff_t hidden_size() const { return centroids_->inputs(); }

  /// Writes the nearest clusters of each row of `hidden` [rows, d], nearest first, to `clusters` [rows, k] with k from
  /// 1 to size(). Allocates nothing. Costs rows * size() * d products.
  /// \throws std::invalid_argument  if the shapes do not fit
  template <class = void>
  void find(MatrixView<float const> hidden, std::span<std::int32_t> clusters) {
    if (hidden.rows == 0) return;
    auto const count = std::ssize(clusters) / hidden.rows;
    require(count * hidden.rows == std::ssize(clusters) && count >= 1 && count <= size(),
            "NearestCentroid: clusters.size()", clusters.size(),
            "must be a multiple of the number of rows, at most size() times");
    for (std::ptrdiff_t first = 0; first < hidden.rows; first += rows_at_once) {
      auto const rows = (std::min)(hidden.rows - first, rows_at_once);
      MatrixView<float> const scores{scores_.data(), rows, size(), size()};
      centroids_->multiply({hidden.data + first * hidden.stride, rows, hidden.columns, hidden.stride}, scores);
      for (std::ptrdiff_t i = 0; i < rows; ++i)
        for (std::ptrdiff_t n = 0; n < count; ++n) {
          auto const at = largest(scores[i]);
          clusters[static_cast<std::size_t>((first + i) * count + n)] = static_cast<std::int32_t>(at);
          scores[i][at] = -std::numeric_limits<float>::infinity();  // found: the next one is the nearest of the rest
        }
    }
  }

 private:
  static constexpr std::ptrdiff_t rows_at_once = 96;

  template <class = void>
  static std::vector<float> half_norms(MatrixView<float const> centroids) {
    require(centroids.rows >= 1, "NearestCentroid: centroids.rows", centroids.rows, "must be at least 1");
    std::vector<float> bias(static_cast<std::size_t>(centroids.rows));
    for (std::ptrdiff_t c = 0; c < centroids.rows; ++c) {
      double sum = 0;
      for (auto const x : centroids[c]) sum += double{x} * x;
      bias[static_cast<std::size_t>(c)] = static_cast<float>(-sum / 2);
    }
    return bias;
  }

  /// The index of the first maximum; 0 if nothing compares (NaN).
  static std::size_t largest(std::span<float const> line) {
    auto top = line[0];
    std::size_t i = 0;
    if (std::ssize(line) >= detail::simd::lanes) {
      auto best = detail::simd::load(line.data());
      for (i = detail::simd::lanes; i + detail::simd::lanes <= line.size(); i += detail::simd::lanes)
        best = (detail::simd::max)(best, detail::simd::load(line.data() + i));
      top = (detail::simd::max)(best);
    }
    for (; i < line.size(); ++i) top = (std::max)(top, line[i]);
    auto const at = std::find(line.begin(), line.end(), top);
    return at == line.end() ? 0 : static_cast<std::size_t>(at - line.begin());
  }

  std::shared_ptr<PackedMatrix const> centroids_;  // copies share them
  AlignedVector<float> scores_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
