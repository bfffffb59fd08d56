// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rows of inputs, prepared for products with packed weights.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/packed_bfloat16.hpp>
#include <sluice/output/detail/packed/packed_int8.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/packed/precision.hpp>

#include <cstddef>

namespace sluice::inline v0 {

namespace detail {
inline namespace SLUICE_ISA {
class GatheredMatrix;
}
}  // namespace detail

inline namespace SLUICE_ISA {

/// Rows x [rows, d], prepared for any number of products with matrices of one precision.
///
/// For bfloat16, each number is rounded to nearest, ties to even. For int8, each row is rounded to integer multiples of
/// its largest magnitude / 127. For float32 it is a view of x, which must stay unchanged meanwhile.
class PackedRows {
 public:
  PackedRows() = default;
  PackedRows(MatrixView<float const> x, Precision precision) { assign(x, precision); }

  /// Replaces the rows. Allocates only if it rounds, and only beyond its largest size so far. O(rows * d).
  void assign(MatrixView<float const> x, Precision precision) {
    precision_ = precision;
    view_ = x;
    if (precision == Precision::bfloat16) bfloat16_.assign(x);
    if (precision == Precision::int8) int8_.assign(x);
  }

  std::ptrdiff_t rows() const { return view_.rows; }
  std::ptrdiff_t columns() const { return view_.columns; }
  Precision precision() const { return precision_; }

 private:
  friend class PackedMatrix;
  friend class detail::GatheredMatrix;

  Precision precision_ = Precision::float32;
  MatrixView<float const> view_;
  detail::packed::Bfloat16Rows bfloat16_;
  detail::packed::Int8Rows int8_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
