// SPDX-License-Identifier: Apache-2.0
/// \file
/// DenseProjection: the expander for models that give hidden vectors. ProjectionPass: answers queries from logits that are
/// computed tile by tile and never stored as whole lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/line_pass.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/line/line_selection.hpp>
#include <sluice/output/detail/simd/parallel.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The part of an output layer after the product. Asks for one tile of logits (some rows, some thousand columns) at a
/// time and reads it while it is in the L2 cache. Only lines whose query needs more than one pass are stored whole.
/// Allocates nothing once warm.
class ProjectionPass {
 public:
  /// Appends the answers to `lists`.
  /// \param columns  of the product
  /// \param tokens   token of each column, ascending; empty = the column itself. Edits and probes name columns
  /// \param product  product(first, tile) writes columns first .. first + tile.columns - 1 of all rows to
  ///                 tile [queries.size(), any]; `first` is a multiple of 1,024
  template <class Product>
  void run(std::span<Query const> queries, std::ptrdiff_t columns, std::span<Token const> tokens, Product&& product,
           LineLists& lists) {
    auto const rows = std::ssize(queries);
    if (rows == 0) return;
    auto const width = (std::min)(tile_width(rows), padded(columns));
    grow(tile_, rows * width);
    if (std::ssize(passes_) < rows) passes_.resize(static_cast<std::size_t>(rows));
    std::ptrdiff_t whole_lines = 0;
    for (std::size_t r = 0; r < queries.size(); ++r) {
      if (detail::LinePass::suffices(queries[r])) passes_[r].begin(queries[r], Kind::logits);
      else ++whole_lines;
    }
    grow(whole_, whole_lines * columns);

    for (std::ptrdiff_t first = 0; first < columns; first += width) {
      auto const count = (std::min)(width, columns - first);
      product(first, MatrixView<float>{tile_.data(), rows, count, width});
      auto* whole = whole_lines > 0 ? whole_.data() + first : nullptr;
      for (std::ptrdiff_t r = 0; r < rows; ++r) {
        auto const& query = queries[static_cast<std::size_t>(r)];
        auto* const line = tile_.data() + r * width;
        if (detail::LinePass::suffices(query)) {
          add(passes_[static_cast<std::size_t>(r)], query, first, line, count);
        } else {
          std::copy_n(line, count, whole);
          whole += columns;
        }
      }
    }

    auto* whole = whole_.data();
    for (std::size_t r = 0; r < queries.size(); ++r) {
      if (detail::LinePass::suffices(queries[r]) && passes_[r].overflowed()) {
        selection_.answer(again(static_cast<std::ptrdiff_t>(r), rows, columns, width, product), Kind::logits,
                          queries[r], lists, tokens);
      } else if (detail::LinePass::suffices(queries[r])) {
        passes_[r].finish(lists, tokens);
      } else {
        selection_.answer({whole, static_cast<std::size_t>(columns)}, Kind::logits, queries[r], lists, tokens);
        whole += columns;
      }
    }
  }

  /// Appends the answer for one line in memory, which may be overwritten.
  SLUICE_LAZY void answer(std::span<float> line, Query const& query, std::span<Token const> tokens, LineLists& lists) {
    if (!detail::LinePass::suffices(query)) return selection_.answer(line, Kind::logits, query, lists, tokens);
    if (passes_.empty()) passes_.resize(1);
    passes_[0].begin(query, Kind::logits);
    if (query.temperature < 1) again_.assign(line.begin(), line.end());  // the pass changes the line
    passes_[0].run(line);
    if (passes_[0].overflowed()) selection_.answer(again_, Kind::logits, query, lists, tokens);
    else passes_[0].finish(lists, tokens);
  }

  /// The columns of a tile with so many rows: a tile takes only part of the L2 cache.
  static std::ptrdiff_t tile_width(std::ptrdiff_t rows) {
    constexpr std::ptrdiff_t numbers = 96 * 1024;
    return std::clamp(numbers / rows / chunk * chunk, chunk, static_cast<std::ptrdiff_t>(detail::LineScan::block));
  }

 private:
  static constexpr auto chunk = static_cast<std::ptrdiff_t>(detail::LineScan::chunk);

  /// Answers for a whole line, recomputed since its tiles are gone.
  template <class Product>
  std::span<float> again(std::ptrdiff_t row, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t width,
                         Product&& product) {
    again_.resize(static_cast<std::size_t>(columns));
    for (std::ptrdiff_t first = 0; first < columns; first += width) {
      auto const count = (std::min)(width, columns - first);
      product(first, MatrixView<float>{tile_.data(), rows, count, width});
      std::copy_n(tile_.data() + row * width, count, again_.data() + first);
    }
    return again_;
  }

  static std::ptrdiff_t padded(std::ptrdiff_t n) { return (n + chunk - 1) / chunk * chunk; }
  static void grow(AlignedVector<float>& buffer, std::ptrdiff_t size) {
    if (std::ssize(buffer) < size) buffer.resize(static_cast<std::size_t>(size));
  }

  SLUICE_LAZY static void add(detail::LinePass& pass, Query const& query, std::ptrdiff_t first, float* line,
                              std::ptrdiff_t count) {
    auto const place = static_cast<std::size_t>(first);
    if (detail::LinePass::changes(query)) pass.change({line, static_cast<std::size_t>(count)}, place);
    auto const end = padded(count);
    std::fill(line + count, line + end, detail::LineScan::lowest);
    pass.add(place, line, static_cast<std::size_t>(end));
  }

  std::vector<detail::LinePass> passes_;
  detail::LineSelection selection_;
  AlignedVector<float> tile_, whole_, again_;
};

/// The output layer: the top k of W h + b over the whole vocabulary, with their log-probabilities. Logits are computed
/// tile by tile, read in the cache, and never stored (paper: Hoang et al. 2018). Copies share the packed weights, so
/// one projection serves decoders in several threads; with OpenMP, threads share blocks of rows.
///
/// A line's answer depends only on that line, bit for bit, and equals that of LogSoftmaxTopK for logits().
class DenseProjection {
 public:
  static constexpr bool takes_shared_edits = true;
  static constexpr bool processes_lines = true;

  /// Packs (copies) `weights` [V, d] and `bias` [V] or empty.
  /// \throws std::invalid_argument  if the bias has another size
  SLUICE_LAZY explicit DenseProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                                       Precision precision = Precision::float32)
      : DenseProjection(std::make_shared<PackedMatrix const>(weights, bias, precision)) {}
  /// Uses weights that are already packed.
  explicit DenseProjection(std::shared_ptr<PackedMatrix const> weights) : weights_(std::move(weights)) {
    require(weights_ != nullptr, "DenseProjection: weights", "nullptr", "must be given");
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \throws std::invalid_argument  if the vectors have another size
  SLUICE_LAZY Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries,
                               std::span<Group const> groups) {
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
  SLUICE_LAZY Scores<float> logits(Hidden<float> const& hidden) {
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
