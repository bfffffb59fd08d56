// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products with selected rows of a weight matrix.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/int8_in_place.hpp>
#include <sluice/output/detail/packed/packed_bfloat16.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/packed/packed_float.hpp>
#include <sluice/output/detail/packed/packed_int8.hpp>
#include <sluice/output/detail/packed/product_writer.hpp>
#include <sluice/output/detail/packed/products.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Selected rows of W, gathered on demand, packed and multiplied as in PackedMatrix: the results are the same, bit for
/// bit. Reads the rows of a float32 matrix in place; otherwise keeps them rounded. Copies share the rounded rows.
class GatheredMatrix {
 public:
  /// \param weights  [n, d]; referred to
  /// \param bias     [n], or empty; referred to
  SLUICE_LAZY GatheredMatrix(MatrixView<float const> weights, std::span<float const> bias, Precision precision)
      : precision_(precision), weights_(weights), bias_(bias) {
    if (precision == Precision::bfloat16) bfloat16_lines_ = std::make_shared<packed::Bfloat16Lines const>(weights);
    if (precision == Precision::int8) int8_lines_ = std::make_shared<packed::Int8Lines const>(weights);
  }

  Precision precision() const { return precision_; }
  /// Bytes held besides the given weights; shared by copies.
  std::size_t bytes() const {
    return (bfloat16_lines_ ? bfloat16_lines_->bytes() : 0) + (int8_lines_ ? int8_lines_->bytes() : 0);
  }

  /// y[r][i] = x[r] W[rows[i]] + b[rows[i]], for x [any, d] of this precision and y [x.rows, rows.size()]. Allocates
  /// nothing once warm.
  SLUICE_LAZY void multiply(PackedRows const& x, std::span<std::int32_t const> rows, MatrixView<float> y) {
    packed::ProductWriter const write(y);
    auto const end = packed::padded(std::ssize(rows));
    switch (precision_) {
      case Precision::float32:
        float_.gather(weights_, bias_, rows);
        packed::run(float_, x.view_, write, 0, end);
        break;
      case Precision::bfloat16:
        bfloat16_.gather(*bfloat16_lines_, bias_, rows);
        packed::run(bfloat16_, x.bfloat16_, write, 0, end);
        break;
      case Precision::int8:
        if (packed::Int8InPlace::suits(x.int8_))
          return packed::Int8InPlace::multiply(*int8_lines_, bias_, rows, x.int8_, write);
        int8_.gather(*int8_lines_, bias_, rows);
        packed::run(int8_, x.int8_, write, 0, end);
        break;
    }
  }

 private:
  Precision precision_;
  MatrixView<float const> weights_;
  std::span<float const> bias_;
  std::shared_ptr<packed::Bfloat16Lines const> bfloat16_lines_;
  std::shared_ptr<packed::Int8Lines const> int8_lines_;
  packed::FloatPanels float_;
  packed::Bfloat16Panels bfloat16_;
  packed::Int8Panels int8_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
