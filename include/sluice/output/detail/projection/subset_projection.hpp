// SPDX-License-Identifier: Apache-2.0
/// \file
/// An output layer that can skip tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/detail/packed/gathered_matrix.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/projection/active_tokens.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// The basis of ClusteredProjection and ShortlistProjection: logits of all tokens, or of some.
///
/// The weights of some tokens are gathered from rows of W, packed in the full product's precision, and multiplied by
/// the same kernel: an active token's logit equals the full projection's, bit for bit.
class SubsetProjection {
 public:
  /// \param weights  [V, d]; referred to, must live as long as this and its copies
  /// \param bias     [V], or empty; referred to
  /// \param full     the same weights, packed, if available
  /// \throws std::invalid_argument  if the bias or the packed weights have another size
  SLUICE_LAZY SubsetProjection(MatrixView<float const> weights, std::span<float const> bias,
                               std::shared_ptr<PackedMatrix const> full)
      : weights_(weights),
        full_(full != nullptr ? std::move(full) : std::make_shared<PackedMatrix const>(weights, bias)),
        some_(weights, bias, full_->precision()) {
    require(bias.empty() || std::ssize(bias) == weights.rows, "projection: bias.size()", bias.size(),
            "must be 0 or the number of rows of the weights");
    require(full_->outputs() == weights.rows, "projection: full.outputs()", full_->outputs(),
            "must be the number of rows of the weights");
    require(full_->inputs() == weights.columns, "projection: full.inputs()", full_->inputs(),
            "must be the number of columns of the weights");
  }

  std::int32_t vocabulary_size() const { return static_cast<std::int32_t>(weights_.rows); }
  std::ptrdiff_t hidden_size() const { return weights_.columns; }
  /// Bytes held besides the given weights; shared by copies.
  std::size_t bytes() const { return full_->bytes() + some_.bytes(); }

  /// Answers from all logits.
  /// \param hidden  [queries.size(), d]
  SLUICE_LAZY void answer_full(MatrixView<float const> hidden, std::span<Query const> queries, LineLists& lists) {
    constexpr std::ptrdiff_t at_once = 160;
    for (std::ptrdiff_t begin = 0; begin < hidden.rows; begin += at_once) {
      auto const count = (std::min)(at_once, hidden.rows - begin);
      rows_.assign({hidden.data + begin * hidden.stride, count, hidden.columns, hidden.stride}, full_->precision());
      pass_.run(
          queries.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)), vocabulary_size(), {},
          [&](std::ptrdiff_t first, MatrixView<float> tile) { full_->multiply(rows_, tile, {}, first); }, lists);
    }
  }

  /// Answers from only the logits of `tokens` (ascending): all other tokens are forbidden.
  /// \param queries  with indices in `tokens`, see ActiveQueries
  SLUICE_LAZY void answer_some(MatrixView<float const> hidden, std::span<Query const> queries,
                               std::span<Token const> tokens, LineLists& lists) {
    begin(hidden);
    pass_.run(
        queries, std::ssize(tokens), tokens,
        [&](std::ptrdiff_t first, MatrixView<float> tile) {
          multiply(tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(tile.columns)), tile);
        },
        lists);
  }

  /// The same from logits [tokens.size()] computed already, which may be overwritten.
  SLUICE_LAZY void answer_line(std::span<float> logits, Query const& query, std::span<Token const> tokens,
                               LineLists& lists) {
    pass_.answer(logits, query, tokens, lists);
  }

  /// Sets the lines for multiply(): hidden [rows, d], which must stay unchanged meanwhile.
  SLUICE_LAZY void begin(MatrixView<float const> hidden) { rows_.assign(hidden, full_->precision()); }
  /// Their logits of some tokens, [rows, tokens.size()].
  SLUICE_LAZY void multiply(std::span<Token const> tokens, MatrixView<float> logits) {
    // Gathered weights are multiplied while they are in the cache.
    constexpr std::ptrdiff_t numbers = 1 << 16;
    auto const step =
        std::max<std::ptrdiff_t>(numbers / std::max<std::ptrdiff_t>(hidden_size(), 1) / packed::panel, 1) *
        packed::panel;
    for (std::ptrdiff_t begin = 0; begin < std::ssize(tokens); begin += step) {
      auto const count = (std::min)(step, std::ssize(tokens) - begin);
      some_.multiply(rows_, tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
                     {logits.data + begin, logits.rows, count, logits.stride});
    }
  }

 private:
  MatrixView<float const> weights_;
  std::shared_ptr<PackedMatrix const> full_;
  GatheredMatrix some_;
  PackedRows rows_;
  ProjectionPass pass_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
