// SPDX-License-Identifier: Apache-2.0
/// \file
/// The output layer for guesses, which need not be exact.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <variant>

namespace translate {

/// All tokens, or those that are likely where the hidden vector is.
class GuessOutput {
 public:
  explicit GuessOutput(sluice::DenseProjection all) : projection_(std::move(all)) {}
  explicit GuessOutput(sluice::ClusteredProjection likely) : projection_(std::move(likely)) {}

  sluice::Expansion expand(sluice::Hidden<float> const& hidden, std::span<sluice::Query const> queries,
                           std::span<sluice::Group const> groups);
  std::ptrdiff_t vocabulary_size() const;

 private:
  std::variant<sluice::DenseProjection, sluice::ClusteredProjection> projection_;
};

}  // namespace translate
