// SPDX-License-Identifier: Apache-2.0
/// \file
/// k_means(): centroids of a set of vectors. NearestCentroid: the cluster that a hidden vector belongs to.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
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
  SLUICE_LAZY explicit NearestCentroid(MatrixView<float const> centroids)
      : centroids_(std::make_shared<PackedMatrix const>(centroids, half_norms(centroids))),
        scores_(static_cast<std::size_t>(rows_at_once * centroids.rows)) {}

  std::ptrdiff_t size() const { return centroids_->outputs(); }
  std::ptrdiff_t hidden_size() const { return centroids_->inputs(); }

  /// Writes the nearest clusters of each row of `hidden` [rows, d], nearest first, to `clusters` [rows, k] with k from
  /// 1 to size(). Allocates nothing. Costs rows * size() * d products.
  /// \throws std::invalid_argument  if the shapes do not fit
  SLUICE_LAZY void find(MatrixView<float const> hidden, std::span<std::int32_t> clusters) {
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

  SLUICE_LAZY static std::vector<float> half_norms(MatrixView<float const> centroids) {
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

/// Options of k_means().
struct KMeansOptions {
  std::ptrdiff_t clusters = 400;  ///< in [1, number of points]
  std::int32_t iterations = 20;   ///< the most; >= 0. It stops when nothing changes
  std::uint64_t seed = 1;         ///< for the initial points
};

/// The result of k_means().
struct KMeans {
  std::vector<float> centroids;   ///< [clusters, d]
  std::vector<double> objective;  ///< mean squared distance to the nearest centroid: before each iteration, and at the
                                  ///< end
};

namespace detail {

/// Throws for a point with a number that is not finite, since it has no distance to anything.
inline void check_finite(MatrixView<float const> points, char const* name) {
  for (std::ptrdiff_t i = 0; i < points.rows; ++i)
    for (auto const x : points[i])
      if (!std::isfinite(x)) require(false, name + std::string("[") + std::to_string(i) + ']', x, "must be finite");
}

/// Draws `count` of the numbers 0 .. all - 1, ascending: a random subset without replacement (Knuth's algorithm S).
inline std::vector<std::ptrdiff_t> draw_subset(std::ptrdiff_t count, std::ptrdiff_t all, std::uint64_t key) {
  std::vector<std::ptrdiff_t> drawn;
  drawn.reserve(static_cast<std::size_t>(count));
  for (std::ptrdiff_t i = 0; std::ssize(drawn) < count; ++i) {
    auto const chance = uniform(derive(key, static_cast<std::uint64_t>(i)), 0);
    if (chance * static_cast<double>(all - i) < static_cast<double>(count - std::ssize(drawn))) drawn.push_back(i);
  }
  return drawn;
}

inline namespace SLUICE_ISA {

/// The steps of k_means(), without its checks: assign(), then update(), as often as wanted.
class Lloyd {
 public:
  Lloyd(MatrixView<float const> points, std::ptrdiff_t clusters, std::uint64_t seed)
      : points_(points),
        clusters_(clusters),
        centroids_(static_cast<std::size_t>(clusters * points.columns)),
        nearest_(static_cast<std::size_t>(points.rows)),
        distances_(static_cast<std::size_t>(points.rows)) {
    auto const chosen = draw_subset(clusters, points.rows, derive(seed, 0));
    for (std::ptrdiff_t c = 0; c < clusters; ++c) move(c, chosen[static_cast<std::size_t>(c)]);
  }

  /// Assigns every point to its nearest centroid. Returns the mean squared distance, and whether any assignment has
  /// changed.
  std::pair<double, bool> assign() {
    auto before = std::move(nearest_);
    nearest_.assign(before.size(), 0);
    NearestCentroid({centroids_.data(), clusters_, points_.columns, points_.columns}).find(points_, nearest_);
    auto const changed = !assigned_ || before != nearest_;
    assigned_ = true;
    for (std::ptrdiff_t i = 0; i < points_.rows; ++i) {
      auto const c = nearest_[static_cast<std::size_t>(i)];
      distances_[static_cast<std::size_t>(i)] = squared_distance(points_[i], centroid(c));
    }
    return {std::reduce(distances_.begin(), distances_.end()) / static_cast<double>(points_.rows), changed};
  }

  /// Moves every centroid to the mean of its points. A centroid without points moves to the point farthest from its own
  /// centroid.
  void update() {
    auto const d = static_cast<std::size_t>(points_.columns);
    std::vector<double> sums(centroids_.size());
    std::vector<std::int64_t> counts(static_cast<std::size_t>(clusters_));
    for (std::ptrdiff_t i = 0; i < points_.rows; ++i) {
      auto const c = static_cast<std::size_t>(nearest_[static_cast<std::size_t>(i)]);
      auto const row = points_[i];
      ++counts[c];
      for (std::size_t k = 0; k < d; ++k) sums[c * d + k] += double{row[k]};
    }
    std::vector<std::ptrdiff_t> empty;
    for (std::size_t c = 0; c < counts.size(); ++c) {
      if (counts[c] == 0) empty.push_back(static_cast<std::ptrdiff_t>(c));
      else
        for (std::size_t k = 0; k < d; ++k)
          centroids_[c * d + k] = static_cast<float>(sums[c * d + k] / static_cast<double>(counts[c]));
    }
    for (auto const c : empty) {
      auto const farthest = std::max_element(distances_.begin(), distances_.end()) - distances_.begin();
      if (!(distances_[static_cast<std::size_t>(farthest)] > 0)) break;  // fewer distinct points than centroids
      // Copies of the point are equally far, and need no centroid of their own.
      auto const point = points_[farthest];
      for (std::ptrdiff_t i = 0; i < points_.rows; ++i)
        if (distances_[static_cast<std::size_t>(i)] == distances_[static_cast<std::size_t>(farthest)] &&
            std::ranges::equal(points_[i], point) && i != farthest)
          distances_[static_cast<std::size_t>(i)] = 0;
      distances_[static_cast<std::size_t>(farthest)] = 0;
      move(c, farthest);
    }
  }

  std::vector<float> take() { return std::move(centroids_); }

 private:
  std::span<float> centroid(std::ptrdiff_t c) {
    return std::span(centroids_)
        .subspan(static_cast<std::size_t>(c * points_.columns), static_cast<std::size_t>(points_.columns));
  }
  void move(std::ptrdiff_t c, std::ptrdiff_t point) { std::ranges::copy(points_[point], centroid(c).begin()); }
  static double squared_distance(std::span<float const> a, std::span<float const> b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += (double{a[k]} - b[k]) * (double{a[k]} - b[k]);
    return sum;
  }

  MatrixView<float const> points_;
  std::ptrdiff_t clusters_;
  std::vector<float> centroids_;
  std::vector<std::int32_t> nearest_;
  std::vector<double> distances_;
  bool assigned_ = false;
};

}  // namespace SLUICE_ISA

}  // namespace detail

inline namespace SLUICE_ISA {

/// Lloyd's iteration (1957): starts at randomly chosen points and moves every centroid to the mean of the points
/// nearest to it, until nothing changes. A centroid without points moves to the point farthest from its own centroid,
/// so the objective never rises (up to rounding). Sums are in float64, distances are compared in float32.
///
/// Deterministic for a seed, on one instruction set. Points may repeat; if there are fewer distinct points than
/// clusters, some centroids stay without points.
///
/// \param points  [n, d], finite
/// \throws std::invalid_argument  for invalid options, or a point that is not finite
///
/// Complexity: O(iterations * n * clusters * d), nearly all of it in one matrix product per iteration.
inline KMeans k_means(MatrixView<float const> points, KMeansOptions const& options = {}) {
  require(options.clusters >= 1, "k_means: clusters", options.clusters, "must be at least 1");
  require(options.clusters <= points.rows, "k_means: clusters", options.clusters,
          "is more than there are points, " + std::to_string(points.rows));
  require(options.clusters <= (std::numeric_limits<std::int32_t>::max)(), "k_means: clusters", options.clusters,
          "must fit 32 bits");
  require(options.iterations >= 0, "k_means: iterations", options.iterations, "must be at least 0");
  detail::check_finite(points, "k_means: points");

  KMeans result;
  detail::Lloyd lloyd(points, options.clusters, options.seed);
  for (std::int32_t i = 0;; ++i) {
    auto const [objective, changed] = lloyd.assign();
    result.objective.push_back(objective);
    if (i == options.iterations || !changed) break;
    lloyd.update();
  }
  result.centroids = lloyd.take();
  return result;
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
