// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed float32 weights.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/simd/transpose.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// Panels [ceil(n / 32)][d][32]; the last one is padded with zeros.
class FloatPanels {
 public:
  static constexpr int lanes = simd::lanes;

  /// Replaces the contents by rows[0], rows[1], ... of `weights` and `bias`. Allocates only beyond its largest size so
  /// far.
  void gather(MatrixView<float const> weights, std::span<float const> bias, std::span<std::int32_t const> rows) {
    inputs_ = weights.columns;
    auto const columns = padded(std::ssize(rows));
    auto const size = static_cast<std::size_t>(columns * inputs_ + ahead / 4);
    if (weights_.size() < size) weights_.resize(size);
    gather_numbers(bias, rows, bias_);
    for (std::ptrdiff_t first = 0; first < columns; first += panel) {
      auto const row = [&](std::ptrdiff_t j) {
        return first + j < std::ssize(rows)
                   ? reinterpret_cast<std::byte const*>(weights[rows[static_cast<std::size_t>(first + j)]].data())
                   : nullptr;
      };
      transpose_panel(row, inputs_, reinterpret_cast<std::byte*>(weights_.data() + first * inputs_));
    }
  }

  std::ptrdiff_t inputs() const { return inputs_; }
  std::size_t bytes() const { return (weights_.size() + bias_.size()) * sizeof(float); }

  /// One chain of sums (fused multiply-adds if available) over k = 0 .. d - 1, then the bias.
  template <int Rows, int Vectors, class Write>
  void block(MatrixView<float const> const& x, std::ptrdiff_t row, std::ptrdiff_t column, Write write) const {
    constexpr auto per_panel = static_cast<int>(panel) / lanes;
    constexpr int line = 16 / lanes;  // vectors in a cache line
    auto const depth = inputs_;
    auto const stride = x.stride;
    auto const* const a = x.data + row * stride;
    auto const* const b = weights_.data() + column / panel * panel * depth + column % panel;
    auto const from = [&](std::ptrdiff_t k, int v) __attribute__((always_inline)) {
      return b + k * panel + v / per_panel * panel * depth + v % per_panel * lanes;
    };
    simd::Vec sum[std::size_t{Rows}][std::size_t{Vectors}] = {};
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      simd::Vec weight[std::size_t{Vectors}];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) weight[v] = simd::load(from(k, v));
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        auto const value = simd::broadcast(simd::multiplier(a[r * stride + k]));
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sum[r][v] += value * weight[v];
      }
      // Hardware prefetching stops at page boundaries, and a panel is little longer than a page.
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; v += line) __builtin_prefetch(from(k, v) + ahead / 4);
    }
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      auto const bias = simd::load(bias_.data() + column + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) write(row + r, column + v * lanes, sum[r][v] + bias);
    }
  }

 private:
  std::ptrdiff_t inputs_ = 0;
  AlignedVector<float> weights_;
  AlignedVector<float> bias_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
