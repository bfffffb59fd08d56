// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights and rows of inputs in bfloat16.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/bfloat16_dot.hpp>
#include <sluice/output/detail/packed/dot_panels.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/tile/tiles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// No scale factor per row.
struct NoFactor {
  NoFactor operator[](std::ptrdiff_t) const { return {}; }
};

/// Rows of inputs, rounded to bfloat16.
struct Bfloat16Rows : Lines<Bfloat16Dot::Input> {
  NoFactor factors() const { return {}; }
  void assign(MatrixView<float const> x) {
    resize(x.rows, x.columns, filled<Bfloat16Dot>(x.columns));
    for (std::ptrdiff_t r = 0; r < rows; ++r) Bfloat16Dot::round(x[r], (*this)[r]);
  }
};

/// Rows of weights, rounded to bfloat16.
struct Bfloat16Lines : Lines<Bfloat16Dot::Number> {
  std::ptrdiff_t columns = 0;

  explicit Bfloat16Lines(MatrixView<float const> weights) : columns(weights.columns) {
    resize(weights.rows, columns, filled<Bfloat16Dot>(columns));
    for (std::ptrdiff_t j = 0; j < rows; ++j)
      std::transform(weights[j].begin(), weights[j].end(), (*this)[j], to_bfloat16);
  }
  std::size_t bytes() const { return numbers.size() * sizeof(Bfloat16Dot::Number); }
};

/// Panels of bfloat16 weights, and a bias per output.
class Bfloat16Panels : public DotPanels<Bfloat16Panels, Bfloat16Dot> {
 public:
  using Lines = Bfloat16Lines;
  static constexpr std::ptrdiff_t few_rows = 0;

  /// Finishes the sums of `lanes` outputs.
  struct Ending {
    simd::Vec bias;

    [[gnu::always_inline]] simd::Vec operator()(Sums sums, NoFactor) const { return sums + bias; }
  };
  [[gnu::always_inline]] Ending ending(std::ptrdiff_t column) const { return {simd::load(bias() + column)}; }

#if SLUICE_TILES
  /// Then the sums need no further step.
  static constexpr bool tiles_begin_with_bias = true;

  struct TileEnding {
    [[gnu::always_inline]] simd::Vec operator()(Sums sums, NoFactor) const { return sums; }
  };
  static TileEnding tile_ending(std::ptrdiff_t) { return {}; }

  template <int Sum, int Input, int Weight>
  [[gnu::always_inline]] static void add_tiles() {
    tile::add_bfloat16<Sum, Input, Weight>();
  }
#endif
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
