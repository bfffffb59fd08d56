// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed float32 weights.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/loads.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/simd/transpose.hpp>

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
  static constexpr int lanes = simd::lanes, most_rows = packed::most_rows, most_sums = packed::most_sums;

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
      add(
          [&](int r) __attribute__((always_inline)) { return a[r * stride + k]; },
          [&](int v) __attribute__((always_inline)) { return simd::load(from(k, v)); }, sum);
#pragma GCC unroll 16
      for (int v = 0; v < (prefetches(Rows) ? Vectors : 0); v += line) __builtin_prefetch(from(k, v) + ahead / 4);
    }
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      auto const bias = simd::load(bias_.data() + column + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) write(row + r, column + v * lanes, sum[r][v] + bias);
    }
  }

 private:
  /// sum[r][v] += input(r) * weight(v).
  template <std::size_t Rows, std::size_t Vectors, class Input, class Weight>
  [[gnu::always_inline]] static void add(Input const& input, Weight const& weight, simd::Vec (&sum)[Rows][Vectors]) {
    constexpr auto rows = static_cast<int>(Rows), vectors = static_cast<int>(Vectors);
#if defined(__x86_64__)
    // Registers hold the inputs or the weights, whichever are fewer.
    constexpr bool inputs = rows <= vectors;
    constexpr auto held = inputs ? rows : vectors, others = inputs ? vectors : rows;
    auto const load = [&](bool of_input, int i) __attribute__((always_inline)) {
      return once<(rows > 1)>(of_input ? simd::broadcast(input(i)) : weight(i));
    };
    simd::Vec hold[std::size_t{held}];
#pragma GCC unroll 16
    for (int i = 0; i < held; ++i) hold[i] = load(inputs, i);
#pragma GCC unroll 16
    for (int j = 0; j < others; ++j) {
      auto const other = load(!inputs, j);
#pragma GCC unroll 16
      for (int i = 0; i < held; ++i) (inputs ? sum[i][j] : sum[j][i]) += hold[i] * other;
    }
#else
    simd::Vec held[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) held[v] = weight(v);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      auto const value = simd::broadcast(simd::multiplier(input(r)));
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sum[r][v] += value * held[v];
    }
#endif
  }

  std::ptrdiff_t inputs_ = 0;
  AlignedVector<float> weights_;
  AlignedVector<float> bias_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
