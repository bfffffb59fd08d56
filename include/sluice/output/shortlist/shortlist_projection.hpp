// SPDX-License-Identifier: Apache-2.0
/// \file
/// ShortlistProjection: an output layer for a request's vocabulary shortlist.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/clusters/clustered_projection.hpp>
#include <sluice/output/clusters/clusters.hpp>
#include <sluice/output/detail/projection/outer_layer.hpp>
#include <sluice/output/packed/packed_matrix.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// DenseProjection for Request::shortlist (lexical shortlists as in Marian: tokens aligned with the source's words, and
/// the most frequent tokens; see LexicalShortlist). A line of a sentence with s allowed tokens costs s d products and
/// reads only their weights. Tokens are equal to DenseProjection's, and log-probabilities equal up to rounding (another
/// order of summation); without a shortlist they are the same.
class ShortlistProjection : public detail::OuterLayer<ClusteredProjection> {
 public:
  /// \param weights     [V, d]; referred to, must outlive this and its copies
  /// \param bias        [V] or empty; referred to
  /// \param full_above  a larger share of the vocabulary is projected in full
  /// \param full        the same weights, packed (DenseProjection::weights), if available
  /// \throws std::invalid_argument  if the arguments do not fit
  template <class = void>
  explicit ShortlistProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                               double full_above = 0.5, std::shared_ptr<PackedMatrix const> full = {})
      : OuterLayer(ClusteredProjection(weights, bias, std::vector<Clusters>{}, {.full_above = checked(full_above)},
                                       std::move(full))) {}

  /// \param hidden  one vector per query, [queries.size(), d]
  template <class = void>
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    return projection_.expand(hidden, queries, groups);
  }
  /// A union is a sentence in a step; those with no shortlist, or with a large one, count as full.
  ClusteredStatistics const& statistics() const { return projection_.statistics(); }

 private:
  template <class = void>
  static double checked(double full_above) {
    require(full_above >= 0 && full_above <= 1, "ShortlistProjection: full_above", full_above, "must be in [0, 1]");
    return full_above;
  }
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
