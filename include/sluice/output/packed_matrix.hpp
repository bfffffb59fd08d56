// SPDX-License-Identifier: Apache-2.0
/// \file
/// A weight matrix packed once for products with few to some hundred rows.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/aligned_vector.hpp>
#include <sluice/output/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// What happens to a product before it is written. First relu, then add.
struct Finish {
  bool relu = false;  ///< negative numbers become 0; a NaN stays
  bool add = false;   ///< adds to what y holds (a residual connection)
};

/// A linear layer y = x W^T + b, float32.
///
/// Every y[r][j] is summed over k = 0 .. d - 1 in one chain (fused multiply-adds where the instruction set has them),
/// then b[j] is added. So it depends on row r of x alone, bit for bit: not on the number of rows, nor on r, nor on how
/// the product is cut up. W is kept in panels [ceil(n / 32)][d][32]; the last panel is filled up with zeros.
class PackedMatrix {
 public:
  static constexpr std::ptrdiff_t panel = 32;  ///< columns of y in a panel

  PackedMatrix() = default;

  /// Packs (copies) `weights` [n, d] and `bias` [n] or empty (none).
  /// \throws std::invalid_argument  if the bias has another size
  explicit PackedMatrix(MatrixView<float const> weights, std::span<float const> bias = {})
      : outputs_(weights.rows),
        inputs_(weights.columns),
        weights_(static_cast<std::size_t>(panels() * panel * inputs_ + ahead)),
        bias_(static_cast<std::size_t>(panels() * panel)) {
    require(bias.empty() || std::ssize(bias) == outputs_, "PackedMatrix: bias.size()", bias.size(),
            "must be 0 or the number of rows of the weights");
    std::ranges::copy(bias, bias_.begin());
    for (std::ptrdiff_t j = 0; j < outputs_; ++j) {
      auto* const to = weights_.data() + j / panel * panel * inputs_ + j % panel;
      auto const row = weights[j];
      for (std::ptrdiff_t k = 0; k < inputs_; ++k) to[k * panel] = row[static_cast<std::size_t>(k)];
    }
  }

  std::ptrdiff_t outputs() const { return outputs_; }  ///< n
  std::ptrdiff_t inputs() const { return inputs_; }    ///< d

  /// y = x W^T + b, for x [rows, d] and y [rows, n], which must not overlap. Allocates nothing.
  /// \throws std::invalid_argument  if the shapes do not fit
  void multiply(MatrixView<float const> x, MatrixView<float> y, Finish finish = {}) const {
    check(x);
    require(y.rows == x.rows, "PackedMatrix: y.rows", y.rows, "must be x.rows");
    require(y.columns == outputs_, "PackedMatrix: y.columns", y.columns, "must be the number of outputs");
    auto const write = [&](std::ptrdiff_t row, std::ptrdiff_t column, simd::Vec value) __attribute__((always_inline)) {
      if (finish.relu) value = value < 0.0f ? simd::Vec{} : value;
      auto* const to = y.data + row * y.stride + column;
      auto const left = outputs_ - column;
      if (left >= simd::lanes) [[likely]] {
        simd::store(to, finish.add ? simd::load(to) + value : value);
      } else {
        for (int i = 0; i < left; ++i) to[i] = finish.add ? to[i] + value[i] : value[i];
      }
    };
    run(x, write);
  }

  /// Computes x W^T + b, for x [rows, d], tile by tile and stores none of it: calls consume(first_row, first_column,
  /// tile) with tile [rows of the tile, columns of the tile] (MatrixView<float const>, valid during the call). Tiles of
  /// one row come in ascending order of columns, and together hold each number once.
  /// \throws std::invalid_argument  if x.columns is not d
  template <class Consume>
  void for_each_tile(MatrixView<float const> x, Consume&& consume) const {
    check(x);
    alignas(64) float tile[max_rows * max_columns];
    for_each_block(x, [&]<int Rows, int Vectors>(Block<Rows, Vectors> const& block) {
      block.run([&](std::ptrdiff_t row, std::ptrdiff_t column, simd::Vec value) __attribute__((always_inline)) {
        simd::store(tile + (row - block.row) * max_columns + (column - block.column), value);
      });
      auto const columns = std::min<std::ptrdiff_t>(Vectors * simd::lanes, outputs_ - block.column);
      if (columns > 0) consume(block.row, block.column, MatrixView<float const>{tile, Rows, columns, max_columns});
    });
  }

 private:
  // Rows x Vectors accumulators at once, in registers: enough chains to hide the latency of an addition, and few rows
  // take many columns, so that the weights are read at the memory's speed.
  static constexpr int max_rows = simd::registers == 32 ? 12 : 6;
  static constexpr int max_columns = 8 * simd::lanes;
  // A block of rows passes so many columns while it is in the nearest cache.
  static constexpr std::ptrdiff_t strip = 4 * panel;
  // Weights are fetched so many numbers (4 KiB) ahead; there is room for that behind the last.
  static constexpr std::ptrdiff_t ahead = 32 * panel;
  static constexpr int vectors(std::ptrdiff_t rows) {
    return rows * 8 <= max_rows * 2 ? 8 : rows * 4 <= max_rows * 2 ? 4 : 2;
  }

  /// The part [Rows, Vectors * lanes] of a product at (row, column).
  template <int Rows, int Vectors>
  struct Block {
    PackedMatrix const& matrix;
    MatrixView<float const> x;
    std::ptrdiff_t row, column;

    /// Calls write(row, column, values of columns column .. column + lanes - 1).
    template <class Write>
    [[gnu::always_inline]] void run(Write&& write) const {
      constexpr auto lanes = simd::lanes;
      constexpr auto per_panel = static_cast<int>(panel) / lanes;
      constexpr int lines = 16 / lanes;  // vectors in a cache line
      auto const depth = matrix.inputs_;
      auto const* const a = x.data + row * x.stride;
      auto const* const b = matrix.weights_.data() + column / panel * panel * depth + column % panel;
      auto const from = [&](std::ptrdiff_t k, int v) __attribute__((always_inline)) {
        return b + k * panel + v / per_panel * panel * depth + v % per_panel * lanes;
      };
      simd::Vec sum[Rows][Vectors] = {};
      for (std::ptrdiff_t k = 0; k < depth; ++k) {
        simd::Vec weight[Vectors];
        for (int v = 0; v < Vectors; ++v) weight[v] = simd::load(from(k, v));
        for (int r = 0; r < Rows; ++r) {
          auto const value = simd::broadcast(a[r * x.stride + k]);
          for (int v = 0; v < Vectors; ++v) sum[r][v] += value * weight[v];
        }
        // The processor's own prefetching stops at every page, and a panel is not much longer.
        for (int v = 0; v < Vectors; v += lines) __builtin_prefetch(from(k, v) + ahead);
      }
      for (int v = 0; v < Vectors; ++v) {
        auto const bias = simd::load(matrix.bias_.data() + column + v * lanes);
        for (int r = 0; r < Rows; ++r) write(row + r, column + v * lanes, sum[r][v] + bias);
      }
    }
  };

  std::ptrdiff_t panels() const { return (outputs_ + panel - 1) / panel; }
  void check(MatrixView<float const> x) const {
    require(x.columns == inputs_, "PackedMatrix: x.columns", x.columns, "must be the number of inputs");
  }

  template <class Write>
  void run(MatrixView<float const> x, Write const& write) const {
    for_each_block(x, [&]<int Rows, int Vectors>(Block<Rows, Vectors> const& block) { block.run(write); });
  }

  /// Calls body(Block<Rows, Vectors>) for all blocks of the product.
  template <class Body>
  void for_each_block(MatrixView<float const> x, Body const& body) const {
    // A group of rows stays in the second-level cache while all panels pass.
    auto const group =
        std::max<std::ptrdiff_t>(max_rows, (std::ptrdiff_t{1} << 18) / std::max<std::ptrdiff_t>(inputs_, 1));
    auto const groups = (x.rows + group - 1) / group;
    for (std::ptrdiff_t g = 0; g < groups; ++g) rows_group(x, x.rows * g / groups, x.rows * (g + 1) / groups, body);
  }

  template <class Body>
  void rows_group(MatrixView<float const> x, std::ptrdiff_t first, std::ptrdiff_t last, Body const& body) const {
    auto const blocks = (last - first + max_rows - 1) / max_rows;
    auto const width = vectors(last - first);
    auto const columns = panels() * panel;
    for (std::ptrdiff_t begin = 0; begin < columns; begin += strip) {
      auto const end = std::min(columns, begin + strip);
      for (std::ptrdiff_t i = 0; i < blocks; ++i) {
        auto const row = first + (last - first) * i / blocks;
        auto const rows = first + (last - first) * (i + 1) / blocks - row;
        auto column = begin;
        for (; column + width * simd::lanes <= end; column += width * simd::lanes)
          dispatch<max_rows>(x, row, rows, column, width, body);
        for (; column < end; column += 2 * simd::lanes) dispatch<max_rows>(x, row, rows, column, 2, body);
      }
    }
  }

  template <int Rows, class Body>
  void dispatch(MatrixView<float const> x, std::ptrdiff_t row, std::ptrdiff_t rows, std::ptrdiff_t column, int wide,
                Body const& body) const {
    if constexpr (Rows > 1) {
      if (rows < Rows) return dispatch<Rows - 1>(x, row, rows, column, wide, body);
    }
    if constexpr (vectors(Rows) > 2) {
      if (wide > 2) return body(Block<Rows, vectors(Rows)>{*this, x, row, column});
    }
    body(Block<Rows, 2>{*this, x, row, column});
  }

  std::ptrdiff_t outputs_ = 0;
  std::ptrdiff_t inputs_ = 0;
  AlignedVector<float> weights_;
  AlignedVector<float> bias_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
