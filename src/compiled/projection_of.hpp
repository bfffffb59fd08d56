// SPDX-License-Identifier: Apache-2.0
/// \file
/// A DenseProjection for the instructions that the including file is compiled for.
#pragma once

#include <sluice/output/compiled_projection.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace sluice::inline v0::detail {
namespace {

struct ProjectionOf final : AnyProjection {
  ProjectionOf(DenseProjection own, char const* its_instructions)
      : projection(std::move(own)), instructions(its_instructions) {}
  std::unique_ptr<AnyProjection> copy() const override {
    return std::make_unique<ProjectionOf>(DenseProjection(projection.weights()), instructions);
  }
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries,
                   std::span<Group const> groups) override {
    return projection.expand(hidden, queries, groups);
  }
  Scores<float> logits(Hidden<float> const& hidden) override { return projection.logits(hidden); }
  std::ptrdiff_t vocabulary_size() const override { return projection.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const override { return projection.hidden_size(); }
  char const* instruction_set() const override { return instructions; }

  DenseProjection projection;
  char const* instructions;
};

std::unique_ptr<AnyProjection> projection_of(MatrixView<float const> weights, std::span<float const> bias,
                                             Precision precision) {
  return std::make_unique<ProjectionOf>(DenseProjection(weights, bias, precision),
                                        sluice::instruction_set(precision).data());
}

}  // namespace
}  // namespace sluice::inline v0::detail
