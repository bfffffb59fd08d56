// SPDX-License-Identifier: Apache-2.0
/// \file
/// DenseProjection: the expander for models that give hidden vectors.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/detail/simd/parallel.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line/line_lists.hpp>
#include <sluice/output/packed/packed_matrix.hpp>
#include <sluice/output/packed/packed_rows.hpp>
#include <sluice/output/projection/projection_pass.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The output layer: the top k of W h + b over the whole vocabulary, with their log-probabilities. Logits are computed
/// tile by tile, read in the cache, and never stored (paper: Hoang et al. 2018). Copies share the packed weights, so
/// one projection serves decoders in several threads; with OpenMP, threads share blocks of rows.
///
/// A line's answer depends only on that line, bit for bit, and equals that of LogSoftmaxTopK for logits().
class DenseProjection {
 public:
  static constexpr bool takes_shared_edits = true;

  /// Packs (copies) `weights` [V, d] and `bias` [V] or empty.
  /// \throws std::invalid_argument  if the bias has another size
  template <class = void>
  explicit DenseProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                           Precision precision = Precision::float32)
      : DenseProjection(std::make_shared<PackedMatrix const>(weights, bias, precision)) {}
  /// Uses weights that are already packed.
  explicit DenseProjection(std::shared_ptr<PackedMatrix const> weights) : weights_(std::move(weights)) {
    require(weights_ != nullptr, "DenseProjection: weights", "nullptr", "must be given");
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \throws std::invalid_argument  if the vectors have another size
  template <class = void>
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    auto const lines = std::ssize(queries);
    auto const blocks = (lines + rows_at_once - 1) / rows_at_once;
    auto const parts = detail::parallel_parts(blocks, lines * vocabulary_size());
    if (workers_.size() < parts) workers_.resize(parts);
    detail::parallel_for(parts, blocks, [&](std::size_t part, std::ptrdiff_t first, std::ptrdiff_t last) {
      auto& worker = workers_[part];
      worker.lists.clear();
      for (auto block = first; block < last; ++block) {
        auto const begin = lines * block / blocks, end = lines * (block + 1) / blocks;
        worker.rows.assign({hidden.data + begin * hidden.stride, end - begin, hidden.columns, hidden.stride},
                           weights_->precision());
        worker.pass.run(
            queries.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), vocabulary_size(),
            {},
            [&](std::ptrdiff_t column, MatrixView<float> tile) { weights_->multiply(worker.rows, tile, {}, column); },
            worker.lists);
      }
    });
    auto& lists = workers_.front().lists;
    for (std::size_t part = 1; part < parts; ++part) lists.append(workers_[part].lists);
    return lists.answer(queries, groups);
  }

  /// All logits [hidden.rows, V], for callers that need whole lines (ensembles). Valid until the next call.
  template <class = void>
  Scores<float> logits(Hidden<float> const& hidden) {
    auto const size = static_cast<std::size_t>(hidden.rows * vocabulary_size());
    if (logits_.size() < size) logits_.resize(size);
    auto& rows = workers_.front().rows;
    rows.assign(hidden, weights_->precision());
    weights_->multiply(rows, {logits_.data(), hidden.rows, vocabulary_size(), vocabulary_size()});
    return scores<float>(logits_.data(), hidden.rows, vocabulary_size());
  }

  std::ptrdiff_t vocabulary_size() const { return weights_->outputs(); }
  std::ptrdiff_t hidden_size() const { return weights_->inputs(); }
  std::shared_ptr<PackedMatrix const> const& weights() const { return weights_; }

 private:
  static constexpr std::ptrdiff_t rows_at_once = 160;

  /// The state of one thread.
  struct Worker {
    PackedRows rows;
    ProjectionPass pass;
    LineLists lists;
  };

  std::shared_ptr<PackedMatrix const> weights_;
  std::vector<Worker> workers_ = std::vector<Worker>(1);
  AlignedVector<float> logits_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
