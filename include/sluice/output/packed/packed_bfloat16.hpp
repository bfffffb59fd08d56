// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights in bfloat16, and rows of inputs likewise.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/packed/bfloat16_dot.hpp>
#include <sluice/output/packed/dot_panels.hpp>
#include <sluice/output/packed/packed_blocks.hpp>
#include <sluice/output/simd/aligned_vector.hpp>
#include <sluice/output/simd/simd.hpp>
#include <sluice/output/tile/tiles.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace packed {

/// Nothing a row is multiplied with.
struct NoFactor {
  NoFactor operator[](std::ptrdiff_t) const { return {}; }
};

/// Rows of inputs, rounded to bfloat16.
struct Bfloat16Rows : DotRows<Bfloat16Dot> {
  NoFactor factors() const { return {}; }
  void assign(MatrixView<float const> x) {
    resize(x.rows, x.columns);
    for (std::ptrdiff_t r = 0; r < rows; ++r) Bfloat16Dot::round(x[r], (*this)[r]);
  }
};

/// Panels of weights, rounded to bfloat16, and a bias for each output.
class Bfloat16Panels : public DotPanels<Bfloat16Dot> {
 public:
  using Sums = Bfloat16Dot::Sums;

  Bfloat16Panels(MatrixView<float const> weights, std::span<float const> bias)
      : DotPanels(weights.rows, weights.columns), bias_(static_cast<std::size_t>(padded(weights.rows))) {
    std::copy(bias.begin(), bias.end(), bias_.begin());
    for (std::ptrdiff_t j = 0; j < weights.rows; ++j)
      for (std::ptrdiff_t k = 0; k < weights.columns; ++k) at(j, k) = to_bfloat16(weights.data[j * weights.stride + k]);
  }

  std::size_t bytes() const { return DotPanels::bytes() + bias_.size() * sizeof(float); }

  /// What is made of the sums of `lanes` outputs.
  struct Ending {
    simd::Vec bias;

    [[gnu::always_inline]] simd::Vec operator()(Sums sums, NoFactor) const { return sums + bias; }
  };
  [[gnu::always_inline]] Ending ending(std::ptrdiff_t column) const { return {simd::load(bias_.data() + column)}; }

  template <int Rows, int Vectors, class Write>
  void block(Bfloat16Rows const& x, std::ptrdiff_t row, std::ptrdiff_t column, Write write) const {
    dot_block<Rows, Vectors>(*this, x, row, column, write);
  }

#if SLUICE_TILES
  template <int Sum, int Input, int Weight>
  [[gnu::always_inline]] static void add_tiles() {
    tile::add_bfloat16<Sum, Input, Weight>();
  }
#endif

 private:
  AlignedVector<float> bias_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
