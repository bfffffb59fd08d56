// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights in 8 bits, and rows of inputs likewise.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/packed/dot_panels.hpp>
#include <sluice/output/packed/int8_dot.hpp>
#include <sluice/output/packed/packed_blocks.hpp>
#include <sluice/output/packed/quantise.hpp>
#include <sluice/output/simd/aligned_vector.hpp>
#include <sluice/output/simd/simd.hpp>
#include <sluice/output/tile/tiles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace packed {

/// Rows of inputs in 8 bits: row r is scales[r] times its numbers.
struct Int8Rows : DotRows<Int8Dot> {
  AlignedVector<float> scales;  // [rows]

  float const* factors() const { return scales.data(); }

  void assign(MatrixView<float const> x) {
    resize(x.rows, x.columns);
    if (std::ssize(scales) < rows) scales.resize(static_cast<std::size_t>(rows));
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      scales[static_cast<std::size_t>(r)] = int8::quantise(x[r], (*this)[r], Int8Dot::offset);
  }
};

/// Panels of weights in 8 bits, and a scale and a bias for each output.
class Int8Panels : public DotPanels<Int8Dot> {
 public:
  using Sums = Int8Dot::Sums;
  /// More inputs could exceed the 31 bits of a sum.
  static constexpr std::ptrdiff_t max_inputs = std::numeric_limits<std::int32_t>::max() / (127 * 127);

  Int8Panels(MatrixView<float const> weights, std::span<float const> bias)
      : DotPanels(weights.rows, checked(weights.columns)),
        corrections_(static_cast<std::size_t>(padded(weights.rows))),
        scales_(corrections_.size()),
        bias_(corrections_.size()) {
    std::copy(bias.begin(), bias.end(), bias_.begin());
    std::vector<std::int8_t> row(static_cast<std::size_t>(weights.columns));
    for (std::ptrdiff_t j = 0; j < weights.rows; ++j) {
      auto const output = static_cast<std::size_t>(j);
      scales_[output] = int8::quantise(weights[j], row.data(), 0);
      std::int64_t sum = 0;
      for (std::ptrdiff_t k = 0; k < weights.columns; ++k) {
        auto const number = row[static_cast<std::size_t>(k)];
        at(j, k) = number;
        sum += number;
      }
      corrections_[output] = static_cast<std::uint32_t>(-Int8Dot::offset * sum);
    }
  }

  std::size_t bytes() const {
    return DotPanels::bytes() + corrections_.size() * (sizeof(std::uint32_t) + 2 * sizeof(float));
  }

  /// What is made of the exact sums of `lanes` outputs: each rounded, sum * (scale of the output * scale of the row) + bias.
  struct Ending {
    Sums correction;
    Int8Dot::Floats scale, bias;

    [[gnu::always_inline]] Int8Dot::Floats operator()(Sums sums, float row_scale) const {
      auto const total = reinterpret_cast<Int8Dot::Signed>(sums + correction);
      auto const both = scale * row_scale;
      return simd::rounded(__builtin_convertvector(total, Int8Dot::Floats) * both) + bias;
    }
  };
  [[gnu::always_inline]] Ending ending(std::ptrdiff_t column) const {
    return {Int8Dot::load<Sums>(corrections_.data() + column), Int8Dot::load<Int8Dot::Floats>(scales_.data() + column),
            Int8Dot::load<Int8Dot::Floats>(bias_.data() + column)};
  }

  template <int Rows, int Vectors, class Write>
  void block(Int8Rows const& x, std::ptrdiff_t row, std::ptrdiff_t column, Write write) const {
    dot_block<Rows, Vectors>(*this, x, row, column, write);
  }

#if SLUICE_TILES
  template <int Sum, int Input, int Weight>
  [[gnu::always_inline]] static void add_tiles() {
    tile::add_int8<Sum, Input, Weight>();
  }
#endif

 private:
  static std::ptrdiff_t checked(std::ptrdiff_t inputs) {
    require(inputs <= max_inputs, "PackedMatrix: weights.columns", inputs, "must be <= 133144 for int8");
    return inputs;
  }

  AlignedVector<std::uint32_t> corrections_;  // by output: what makes the offset of the inputs good
  AlignedVector<float> scales_;
  AlignedVector<float> bias_;
};

static_assert(Int8Panels::max_inputs == 133144);

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
