// SPDX-License-Identifier: Apache-2.0
/// \file
/// DenseProjection: the expander for models that give hidden vectors.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/aligned_vector.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/output/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The output layer: logits = W h + b for the whole vocabulary, then LogSoftmaxTopK. Copies share the packed weights, so
/// one projection serves decoders in several threads.
///
/// Logits are made for some rows at a time, so that they are still in the cache when the selection reads them. A line's
/// answer depends on that line alone, bit for bit.
class DenseProjection {
 public:
  /// Packs (copies) `weights` [V, d] and `bias` [V] or empty.
  /// \throws std::invalid_argument  if the bias has another size
  explicit DenseProjection(MatrixView<float const> weights, std::span<float const> bias = {})
      : DenseProjection(std::make_shared<PackedMatrix const>(weights, bias)) {}
  /// Uses weights that are packed already.
  explicit DenseProjection(std::shared_ptr<PackedMatrix const> weights) : weights_(std::move(weights)) {
    require(weights_ != nullptr, "DenseProjection: weights", "nullptr", "must be given");
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    auto const lines = static_cast<std::ptrdiff_t>(queries.size());
    selection_.begin();
    for (std::ptrdiff_t first = 0; first < lines; first += rows_at_once) {
      auto const count = std::min(lines - first, rows_at_once);
      auto const block = multiply(hidden, first, count);
      for (std::ptrdiff_t i = 0; i < count; ++i)
        selection_.add(block[i], Kind::logits, queries[static_cast<std::size_t>(first + i)]);
    }
    return selection_.end(queries, groups);
  }

  /// All logits [hidden.rows, V], for those who need whole lines (ensembles). Valid until the next call.
  Scores<float> logits(Hidden<float> const& hidden) {
    auto const block = multiply(hidden, 0, hidden.rows);
    return scores<float>(block.data, block.rows, block.columns);
  }

  std::ptrdiff_t vocabulary_size() const { return weights_->outputs(); }
  std::ptrdiff_t hidden_size() const { return weights_->inputs(); }

 private:
  static constexpr std::ptrdiff_t rows_at_once = 48;

  MatrixView<float> multiply(Hidden<float> const& hidden, std::ptrdiff_t first, std::ptrdiff_t count) {
    auto const outputs = weights_->outputs();
    if (std::ssize(logits_) < count * outputs) logits_.resize(static_cast<std::size_t>(count * outputs));
    MatrixView<float> const block{logits_.data(), count, outputs, outputs};
    weights_->multiply({hidden.data + first * hidden.stride, count, hidden.columns, hidden.stride}, block);
    return block;
  }

  std::shared_ptr<PackedMatrix const> weights_;
  AlignedVector<float> logits_;
  LogSoftmaxTopK selection_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
