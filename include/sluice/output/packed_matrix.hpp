// SPDX-License-Identifier: Apache-2.0
/// \file
/// A weight matrix packed once for products with few to some hundred rows, and those rows, prepared; the instructions that such
/// products use on this machine.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/bfloat16_dot.hpp>
#include <sluice/output/detail/packed/int8_dot.hpp>
#include <sluice/output/detail/packed/packed_bfloat16.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/packed/packed_float.hpp>
#include <sluice/output/detail/packed/packed_int8.hpp>
#include <sluice/output/detail/packed/product_writer.hpp>
#include <sluice/output/detail/packed/products.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/tile/permission.hpp>
#include <sluice/output/precision.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The instructions that multiply in a precision, as the including file is compiled (and as the kernel grants):
/// "amx_bf16", "amx_int8", "avx512_bf16", "avx512_vnni", "avx_vnni", "avx512", "avx2", "avx" or "baseline"; on AArch64
/// "neon_bf16", "neon_i8mm", "neon_dotprod" or "neon". Products of one or two rows in 8 bits do not use AMX, but the
/// instructions next in this list.
inline std::string_view instruction_set(Precision precision) {
  if (precision != Precision::float32 && detail::tile::granted())
    return precision == Precision::bfloat16 ? "amx_bf16" : "amx_int8";
#if defined(__aarch64__)
  if (precision == Precision::bfloat16 && detail::packed::Bfloat16Dot::parts == 1) return "neon_bf16";
  if (precision != Precision::int8 || detail::packed::Int8Dot::depth == 2) return "neon";
  return detail::packed::Int8Dot::depth == 8 ? "neon_i8mm" : "neon_dotprod";
#else
  if (precision == Precision::bfloat16 && detail::packed::Bfloat16Dot::parts == 1) return "avx512_bf16";
  if (precision == Precision::int8 && detail::packed::Int8Dot::depth == 4)
    return detail::packed::Int8Dot::lanes == 16 ? "avx512_vnni" : "avx_vnni";
#if defined(__AVX512F__)
  return "avx512";
#elif defined(__AVX2__)
  return "avx2";
#elif defined(__AVX__)
  return "avx";
#else
  return "baseline";
#endif
#endif
}

/// bfloat16 if there are instructions for it (matrix units, 16-bit dot products), else float32. Never int8, whose
/// rounding not every caller accepts.
inline Precision automatic_precision() {
  return detail::tile::granted() || detail::packed::Bfloat16Dot::parts == 1 ? Precision::bfloat16 : Precision::float32;
}

}  // namespace SLUICE_ISA
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

/// A linear layer y = x W^T + b. x, b and y are float32; W is stored in the requested precision.
///
/// Every y[r][j] depends only on row r of x, bit for bit: not on the number of rows, on r, or on how the product is cut
/// into blocks.
///  - float32: the products are summed over k = 0 .. d - 1 in one chain (fused multiply-adds if the instruction set has
///    them), then b[j] is added.
///  - bfloat16: x and W are rounded to nearest, ties to even; numbers below the smallest normal float become zero.
///    Products are exact and summed in float32. The order of summation, and so the last bits, depends on the
///    instruction set (matrix units: Intel AMX; vdpbf16ps; a chain of fused multiply-adds).
///  - int8: W[j] is u[j] times integers in [-127, 127] with u[j] = max |W[j]| / 127, rounded to nearest, ties to even;
///    a row of x likewise. Their product is exact, then y[r][j] = float(product) * (u[j] * u[r]) + b[j], with each
///    operation rounded: the same on every processor. A row of x or W that is not finite makes all its results NaN. A
///    row whose u would be below the smallest normal float counts as zeros.
class PackedMatrix {
 public:
  static constexpr std::ptrdiff_t panel = detail::packed::panel;  ///< columns of y whose weights are stored together

  PackedMatrix() = default;

  /// Packs (copies) `weights` [n, d] and `bias` [n] or empty (none).
  /// \throws std::invalid_argument  if the bias has another size, or if d > 133144 for int8 (a product has 31 bits)
  SLUICE_LAZY explicit PackedMatrix(MatrixView<float const> weights, std::span<float const> bias = {},
                                    Precision precision = Precision::float32)
      : outputs_(weights.rows) {
    require(bias.empty() || std::ssize(bias) == outputs_, "PackedMatrix: bias.size()", bias.size(),
            "must be 0 or the number of rows of the weights");
    require(precision != Precision::int8 || weights.columns <= detail::packed::max_int8_inputs,
            "PackedMatrix: weights.columns", weights.columns, "must be <= 133144 for int8");
    std::vector<std::int32_t> all(static_cast<std::size_t>(outputs_));
    std::iota(all.begin(), all.end(), 0);
    switch (precision) {
      case Precision::float32: panels_.emplace<detail::packed::FloatPanels>().gather(weights, bias, all); break;
      case Precision::bfloat16:
        panels_.emplace<detail::packed::Bfloat16Panels>().gather(detail::packed::Bfloat16Lines(weights), bias, all);
        break;
      case Precision::int8:
        panels_.emplace<detail::packed::Int8Panels>().gather(detail::packed::Int8Lines(weights), bias, all);
        break;
    }
  }

  std::ptrdiff_t outputs() const { return outputs_; }  ///< n
  std::ptrdiff_t inputs() const {                      ///< d
    return std::visit([](auto const& panels) { return panels.inputs(); }, panels_);
  }
  Precision precision() const { return static_cast<Precision>(panels_.index()); }
  /// Bytes held.
  std::size_t bytes() const {
    return std::visit([](auto const& panels) { return panels.bytes(); }, panels_);
  }

  /// y = columns first .. first + y.columns - 1 of x W^T + b, for x [rows, d] and y [rows, any], which must not overlap.
  /// Allocates nothing.
  /// \param first  a multiple of `panel`
  /// \throws std::invalid_argument  if the shapes do not fit, or if x was made for another precision
  SLUICE_LAZY void multiply(PackedRows const& x, MatrixView<float> y, Epilogue epilogue = {},
                            std::ptrdiff_t first = 0) const {
    require(x.columns() == inputs(), "PackedMatrix: x.columns", x.columns(), "must be the number of inputs");
    require(x.precision() == precision(), "PackedMatrix: x.precision()", static_cast<int>(x.precision()),
            "must be that of the matrix");
    require(y.rows == x.rows(), "PackedMatrix: y.rows", y.rows, "must be x.rows");
    require(first >= 0 && first % panel == 0, "PackedMatrix: first", first, "must be a multiple of 32, and >= 0");
    require(y.columns <= outputs_ - first, "PackedMatrix: first + y.columns", first + y.columns,
            "must not exceed the number of outputs");
    detail::packed::ProductWriter const write(y, first, epilogue);
    auto const end = first + detail::packed::padded(y.columns);
    switch (precision()) {
      case Precision::float32:
        detail::packed::run(*std::get_if<detail::packed::FloatPanels>(&panels_), x.view_, write, first, end);
        break;
      case Precision::bfloat16:
        detail::packed::run(*std::get_if<detail::packed::Bfloat16Panels>(&panels_), x.bfloat16_, write, first, end);
        break;
      case Precision::int8:
        detail::packed::run(*std::get_if<detail::packed::Int8Panels>(&panels_), x.int8_, write, first, end);
        break;
    }
  }

  /// y = x W^T + b, for x [rows, d] and y [rows, n], which must not overlap. Allocates nothing for float32; otherwise
  /// it allocates its own PackedRows.
  /// \throws std::invalid_argument  if the shapes do not fit
  SLUICE_LAZY void multiply(MatrixView<float const> x, MatrixView<float> y, Epilogue epilogue = {}) const {
    require(y.columns == outputs_, "PackedMatrix: y.columns", y.columns, "must be the number of outputs");
    multiply(PackedRows(x, precision()), y, epilogue);
  }

 private:
  std::ptrdiff_t outputs_ = 0;
  std::variant<detail::packed::FloatPanels, detail::packed::Bfloat16Panels, detail::packed::Int8Panels>
      panels_;  // by Precision
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
