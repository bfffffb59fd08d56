// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights and rows of inputs in 8 bits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/dot_panels.hpp>
#include <sluice/output/detail/packed/int8_dot.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/packed/quantise.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/tile/tiles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// More inputs could overflow the 31 bits of a sum.
inline constexpr std::ptrdiff_t max_int8_inputs = (std::numeric_limits<std::int32_t>::max)() / (127 * 127);
static_assert(max_int8_inputs == 133144);

/// Rows of inputs in 8 bits: row r is its integers times scales[r].
struct Int8Rows : Lines<Int8Dot::Input> {
  AlignedVector<float> scales;  // [rows]

  float const* factors() const { return scales.data(); }
  void assign(MatrixView<float const> x) {
    resize(x.rows, x.columns, filled<Int8Dot>(x.columns));
    if (std::ssize(scales) < rows) scales.resize(static_cast<std::size_t>(rows));
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      scales[static_cast<std::size_t>(r)] = int8::quantise(x[r], (*this)[r], Int8Dot::offset);
  }
};

/// Rows of weights in 8 bits.
struct Int8Lines : Lines<Int8Dot::Number> {
  std::ptrdiff_t columns;
  AlignedVector<std::uint32_t> corrections;  // by output: corrects for the offset of the inputs
  AlignedVector<float> scales;

  explicit Int8Lines(MatrixView<float const> weights)
      : columns(weights.columns), corrections(static_cast<std::size_t>(weights.rows)), scales(corrections.size()) {
    resize(weights.rows, columns, filled<Int8Dot>(columns));
    for (std::ptrdiff_t j = 0; j < rows; ++j) {
      auto* const line = (*this)[j];
      scales[static_cast<std::size_t>(j)] = int8::quantise(weights[j], line, 0);
      std::int64_t sum = 0;
      for (std::ptrdiff_t k = 0; k < columns; ++k) sum += line[k];
      corrections[static_cast<std::size_t>(j)] = static_cast<std::uint32_t>(-Int8Dot::offset * sum);
    }
  }
  std::size_t bytes() const { return numbers.size() + corrections.size() * (sizeof(std::uint32_t) + sizeof(float)); }
};

/// Panels of 8-bit weights, and a scale and a bias per output.
class Int8Panels : public DotPanels<Int8Panels, Int8Dot> {
 public:
  using Lines = Int8Lines;
  /// Up to this many rows, matrix units are no faster: reading the weights takes the time.
  static constexpr std::ptrdiff_t few_rows = 2;

  /// As FloatPanels::gather.
  void gather(Lines const& lines, std::span<float const> bias, std::span<std::int32_t const> rows) {
    DotPanels::gather(lines, bias, rows);
    gather_numbers<std::uint32_t>(lines.corrections, rows, corrections_);
    gather_numbers<float>(lines.scales, rows, scales_);
  }

  std::size_t bytes() const {
    return DotPanels::bytes() + corrections_.size() * (sizeof(std::uint32_t) + sizeof(float));
  }

  /// Finishes the exact sums of `lanes` outputs: sum * (scale of the output * scale of the row) + bias, each operation
  /// rounded.
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
            Int8Dot::load<Int8Dot::Floats>(bias() + column)};
  }

#if SLUICE_TILES
  static constexpr bool tiles_begin_with_bias = false;
  [[gnu::always_inline]] Ending tile_ending(std::ptrdiff_t column) const { return ending(column); }

  template <int Sum, int Input, int Weight>
  [[gnu::always_inline]] static void add_tiles() {
    tile::add_int8<Sum, Input, Weight>();
  }
#endif

 private:
  AlignedVector<std::uint32_t> corrections_;  // by output: corrects for the offset of the inputs
  AlignedVector<float> scales_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
