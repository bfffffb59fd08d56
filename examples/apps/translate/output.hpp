// SPDX-License-Identifier: Apache-2.0
/// \file
/// The output layers that --projection names.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <variant>

namespace translate {

enum class ProjectionName : std::uint8_t {
  logits,     ///< all logits first, then softmax and selection
  dense,      ///< both in one pass, no logits stored
  clustered,  ///< only tokens that are likely where the hidden vector is
};

/// Of one model: hidden vectors, so that the output layer and the selection are one pass. Of several: averaged scores.
using Answer = std::variant<sluice::Hidden<float>, sluice::Scores<float>>;

/// The output layer without fusion, to compare with: the product, then the rest.
class WholeLogits {
 public:
  explicit WholeLogits(sluice::DenseProjection projection) : projection_(std::move(projection)) {}
  sluice::Expansion expand(sluice::Hidden<float> const& hidden, std::span<sluice::Query const> queries,
                           std::span<sluice::Group const> groups) {
    return selection_.expand(projection_.logits(hidden), queries, groups);
  }

 private:
  sluice::DenseProjection projection_;
  sluice::LogSoftmaxTopK selection_;
};

/// The expander for either answer. Its products are compiled once, in output.cpp.
class Output {
 public:
  using Expander =
      std::variant<sluice::LogSoftmaxTopK, sluice::DenseProjection, WholeLogits, sluice::ClusteredProjection>;

  explicit Output(Expander expander) : expander_(std::move(expander)) {}

  sluice::Expansion expand(Answer const& answer, std::span<sluice::Query const> queries,
                           std::span<sluice::Group const> groups);

  /// Counts of ClusteredProjection; nothing of the others.
  sluice::ClusteredStatistics clusters() const;

 private:
  Expander expander_;
};

}  // namespace translate
