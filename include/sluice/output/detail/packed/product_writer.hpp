// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes the results of a packed product.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/precision.hpp>

#include <cstddef>
#include <limits>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

namespace packed {

/// Writes vectors of a product to columns of y; the product's column `first` goes to y's first column, and what lies
/// outside y is dropped. Small and copied to where it is used, so that the compiler sees that writes do not alias it.
class ProductWriter {
 public:
  explicit ProductWriter(MatrixView<float> y, std::ptrdiff_t first = 0, Epilogue epilogue = {})
      : data_(y.data),
        stride_(y.stride),
        end_(first + y.columns),
        first_(first),
        least_(epilogue.relu ? 0 : -std::numeric_limits<float>::infinity()),
        add_(epilogue.add) {}

  template <class Vector>
  [[gnu::always_inline]] void operator()(std::ptrdiff_t row, std::ptrdiff_t column, Vector value) const {
    if (column + lanes < Vector >> end_) [[unlikely]]
      write_some(rectified(value), at(row, column), end_ - column);
    else if (add_) put<true>(row, column, value);
    else put<false>(row, column, value);
  }

  /// Calls each(put), where put(row, column, vector) does the same for vectors in columns first .. last - 1. Checks
  /// that they share are made once.
  template <class Each>
  [[gnu::always_inline]] void for_columns(std::ptrdiff_t last, Each&& each) const {
    auto const writer = *this;
    if (last > end_) [[unlikely]] {
      each([writer](std::ptrdiff_t row, std::ptrdiff_t column, auto value)
               __attribute__((always_inline)) { writer(row, column, value); });
    } else if (add_) {
      each([writer](std::ptrdiff_t row, std::ptrdiff_t column, auto value)
               __attribute__((always_inline)) { writer.put<true>(row, column, value); });
    } else {
      each([writer](std::ptrdiff_t row, std::ptrdiff_t column, auto value)
               __attribute__((always_inline)) { writer.put<false>(row, column, value); });
    }
  }

  /// Whether vectors up to column last - 1 are stored unchanged, to at(row, column) and the rows after it.
  bool as_they_are(std::ptrdiff_t last) const {
    return last <= end_ && !add_ && least_ == -std::numeric_limits<float>::infinity();
  }
  float* at(std::ptrdiff_t row, std::ptrdiff_t column) const { return data_ + row * stride_ + (column - first_); }
  std::ptrdiff_t row_bytes() const { return stride_ * static_cast<std::ptrdiff_t>(sizeof(float)); }

 private:
  template <class Vector>
  static constexpr std::ptrdiff_t lanes = sizeof(Vector) / sizeof(float);

  template <class Vector>
  [[gnu::always_inline]] Vector rectified(Vector value) const {
    auto const least = least_ - Vector{};
    return value < least ? least : value;
  }

  template <bool add, class Vector>
  [[gnu::always_inline]] void put(std::ptrdiff_t row, std::ptrdiff_t column, Vector value) const {
    auto* const to = at(row, column);
    value = rectified(value);
    if constexpr (add) {
      Vector before;
      __builtin_memcpy(&before, to, sizeof(before));
      value = before + value;
    }
    __builtin_memcpy(to, &value, sizeof(value));
  }

  template <class Vector>
  [[gnu::noinline]] void write_some(Vector const& value, float* to, std::ptrdiff_t count) const {
    float lane[lanes<Vector>];
    __builtin_memcpy(lane, &value, sizeof(value));
    for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = add_ ? to[i] + lane[i] : lane[i];
  }

  float* data_;
  std::ptrdiff_t stride_, end_, first_;
  float least_;
  bool add_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
