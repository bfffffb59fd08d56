// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusteredProjection: an output layer for only the tokens that are likely near the hidden vector.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clusters.hpp>
#include <sluice/output/detail/clusters/cluster_unions.hpp>
#include <sluice/output/detail/clusters/joint_product.hpp>
#include <sluice/output/detail/projection/active_tokens.hpp>
#include <sluice/output/detail/projection/subset_projection.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The output layer over clusters of hidden vectors (Amer et al. 2022, "Fast Vocabulary Projection Method via
/// Clustering for Multilingual Machine Translation on GPU"). The centroid nearest to each line's hidden vector gives
/// the tokens that were likely for such vectors in training. The lines of a sentence share the union of these tokens,
/// and only the union is projected.
///
/// Also active: `always`, probes (forced prefixes, tokens whose score is asked for), and tokens whose score the search
/// raises. All tokens are projected if the union is too large, if it has fewer tokens than the search asks for, or if
/// the query masks tokens (`only`) after the softmax or its mask leaves more than `full_above` of them. A smaller mask
/// before the softmax, or a vocabulary shortlist, replaces the union. The softmax is over the active tokens, so
/// log-probabilities are slightly too high. Products have the precision of `full`.
///
/// If it is cheaper, the weights for all sentences are gathered once per step, not once per sentence; each line still
/// gets the logits of its own sentence's tokens. Logits of active tokens are equal to DenseProjection's, bit for bit. A
/// line costs (clusters + active) d products. Copies share weights and clusters; each copy has its own statistics.
class ClusteredProjection {
 public:
  /// For one direction, with no sentences of another (Request::direction 0).
  /// \param weights  [V, d]; referred to, must outlive this and its copies: rows are gathered from it
  /// \param bias     [V] or empty; referred to
  /// \param full     the same weights, packed (DenseProjection::weights), if available
  /// \throws std::invalid_argument  if clusters, options or packed weights do not fit the weights
  SLUICE_LAZY ClusteredProjection(MatrixView<float const> weights, std::span<float const> bias, Clusters clusters,
                                  ClusteredOptions const& options = {}, std::shared_ptr<PackedMatrix const> full = {})
      : ClusteredProjection(weights, bias, one(std::move(clusters)), options, std::move(full)) {}
  /// One set of clusters per direction, in the order of Request::direction. Sentences of any other direction are
  /// projected in full.
  SLUICE_LAZY ClusteredProjection(MatrixView<float const> weights, std::span<float const> bias,
                                  std::vector<Clusters> directions, ClusteredOptions const& options = {},
                                  std::shared_ptr<PackedMatrix const> full = {})
      : audit_(options.audit),
        projection_(weights, bias, std::move(full)),
        clusters_(fitting(std::move(directions), projection_)),
        unions_(options, clusters_, projection_.vocabulary_size()) {
    std::string const who = "ClusteredProjection: ";
    detail::check_clustered(who, options, vocabulary_size());
    for (auto const& clusters : *clusters_) detail::check_nearest(who, options.nearest, clusters);
    require(audit_ >= 0, who + "audit", audit_, "must not be negative");
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \param groups  the sentences; empty: every line is a sentence of its own
  SLUICE_LAZY Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries,
                               std::span<Group const> groups) {
    require(hidden.columns == projection_.hidden_size(), "ClusteredProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    lists_.clear();
    auto const audited = audit_ > 0 && step_++ % static_cast<std::uint64_t>(audit_) == 0;
    unions_.form(hidden, queries, groups, statistics_);
    answer(hidden, queries);
    if (audited) audit(hidden, queries);
    return lists_.answer(queries, groups);
  }

  ClusteredStatistics const& statistics() const { return statistics_; }
  std::int32_t vocabulary_size() const { return projection_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const { return projection_.hidden_size(); }
  /// Bytes held besides the given weights: packed weights (shared by copies) and clusters.
  std::size_t bytes() const {
    auto sum = projection_.bytes();
    for (auto const& clusters : *clusters_)
      sum += 2 * clusters.centroids.size() * sizeof(float) + clusters.tokens.size() * sizeof(Token) +
             clusters.begin.size() * sizeof(std::int64_t);
    return sum;
  }

 private:
  SLUICE_LAZY static std::vector<Clusters> one(Clusters clusters) {
    std::vector<Clusters> all;
    all.push_back(std::move(clusters));
    return all;
  }
  /// Checks the clusters before anything is built from them.
  SLUICE_LAZY static std::shared_ptr<std::vector<Clusters> const> fitting(std::vector<Clusters> directions,
                                                                          detail::SubsetProjection const& projection) {
    for (auto const& clusters : directions)
      detail::check_fit("ClusteredProjection: ", clusters, projection.vocabulary_size(), projection.hidden_size());
    return std::make_shared<std::vector<Clusters> const>(std::move(directions));
  }

  SLUICE_LAZY void answer(Hidden<float> const& hidden, std::span<Query const> queries) {
    auto const joint = joint_.pays(unions_, vocabulary_size());
    auto* logits = joint ? joint_.multiply(unions_, projection_, hidden) : nullptr;
    auto const parts = unions_.parts();
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto const& part = parts[p];
      if (part.full) {
        // Neighbouring lines share one read of the weights.
        auto lines = part.lines;
        for (; p + 1 < parts.size() && parts[p + 1].full; ++p) lines += parts[p + 1].lines;
        projection_.answer_full(detail::lines_of(hidden, part.first, lines), queries.subspan(part.first, lines),
                                lists_);
        continue;
      }
      auto const own = queries.subspan(part.first, part.lines);
      auto const tokens = unions_.tokens_of(part);
      auto const translated = translated_.translate(own, tokens);
      if (!joint) {
        projection_.answer_some(detail::lines_of(hidden, part.first, part.lines), translated, tokens, lists_);
        continue;
      }
      for (auto const& query : translated) {
        projection_.answer_line({logits, part.size}, query, tokens, lists_);
        logits += part.size;
      }
    }
  }

  /// Compares the best token of every line with the full projection's.
  SLUICE_LAZY void audit(Hidden<float> const& hidden, std::span<Query const> queries) {
    audit_lists_.clear();
    projection_.answer_full(detail::lines_of(hidden, 0, queries.size()), queries, audit_lists_);
    auto const full = audit_lists_.answer(queries, {});
    auto const here = lists_.answer(queries, {});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (full[i].best.empty() || here[i].best.empty()) continue;
      auto const expected = full[i].best.front(), got = here[i].best.front();
      ++statistics_.audited;
      if (expected.token != got.token) continue;
      ++statistics_.agreed;
      statistics_.bias += static_cast<double>(got.log_prob) - static_cast<double>(expected.log_prob);
    }
  }

  std::int32_t audit_;
  detail::SubsetProjection projection_;
  std::shared_ptr<std::vector<Clusters> const> clusters_;
  detail::ClusterUnions unions_;
  detail::JointProduct joint_;
  detail::ActiveQueries translated_;
  LineLists lists_, audit_lists_;
  ClusteredStatistics statistics_;
  std::uint64_t step_ = 0;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
