// SPDX-License-Identifier: Apache-2.0
/// \file
/// ShortlistProjection: an output layer for the tokens that a request allows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/clusters/clustered_projection.hpp>
#include <sluice/output/clusters/clusters.hpp>
#include <sluice/output/packed/packed_matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// DenseProjection with Request::shortlist in mind (lexical shortlists as Marian's: tokens that the source's words were
/// aligned with, and the most frequent ones; see LexicalShortlist): a sentence whose lines allow so many tokens costs
/// that many d products a line, and no more than the weights of those are read. Tokens are DenseProjection's, log-probabilities
/// up to rounding (a sum in another order); without a shortlist they are the same.
template <class = void>
class LazyShortlistProjection {
 public:
  /// \param weights     [V, d]; referred to, must outlive this and its copies
  /// \param bias        [V] or empty; referred to
  /// \param full_above  a larger share of the vocabulary is projected in full
  /// \param full        the same weights, packed (DenseProjection::weights), where somebody has them already
  /// \throws std::invalid_argument  if these do not fit
  explicit LazyShortlistProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                                   double full_above = 0.5, std::shared_ptr<PackedMatrix const> full = {})
      : projection_(weights, bias, std::vector<Clusters>{}, {.full_above = checked(full_above)}, std::move(full)) {}

  /// \param hidden  one vector per query, [queries.size(), d]
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    return projection_.expand(hidden, queries, groups);
  }
  /// Unions are sentences and steps; those without a shortlist, or with a large one, count as full.
  ClusteredStatistics const& statistics() const { return projection_.statistics(); }
  std::int32_t vocabulary_size() const { return projection_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const { return projection_.hidden_size(); }
  /// Memory held beyond the weights that were given; copies share it.
  std::size_t bytes() const { return projection_.bytes(); }

 private:
  static double checked(double full_above) {
    require(full_above >= 0 && full_above <= 1, "ShortlistProjection: full_above", full_above, "must be in [0, 1]");
    return full_above;
  }

  ClusteredProjection projection_;
};
using ShortlistProjection = LazyShortlistProjection<>;

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
