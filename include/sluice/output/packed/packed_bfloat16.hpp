// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights in bfloat16: the upper half of a float32.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/packed/packed_blocks.hpp>
#include <sluice/output/simd/aligned_vector.hpp>
#include <sluice/output/simd/simd.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace packed {

/// The bfloat16 nearest to x, of two the even one; what is too large becomes an infinity. A NaN stays one.
inline std::uint16_t to_bfloat16(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  auto const quiet = std::isnan(x) ? 0x400000u : 0u;  // for a NaN whose lower half is all that makes it one
  auto const round = std::isnan(x) ? 0u : 0x7fffu + (bits >> 16 & 1);
  return static_cast<std::uint16_t>(((bits + round) | quiet) >> 16);
}

/// Panels [ceil(n / 32)][d][32], as FloatPanels. Columns c and c + lanes share 32 bits, so that a shift makes floats of
/// one vector and a mask of the other, with any instruction set.
class Bfloat16Panels {
 public:
  static constexpr int lanes = simd::lanes;

  Bfloat16Panels(MatrixView<float const> weights, std::span<float const> bias)
      : inputs_(weights.columns),
        weights_(static_cast<std::size_t>(padded(weights.rows) * inputs_ / 2 + ahead / 4)),
        bias_(static_cast<std::size_t>(padded(weights.rows))) {
    std::copy(bias.begin(), bias.end(), bias_.begin());
    for (std::ptrdiff_t j = 0; j < weights.rows; ++j) {
      auto* const to =
          weights_.data() + (j / panel * panel * inputs_ + j % panel / (2 * lanes) * 2 * lanes) / 2 + j % lanes;
      auto const shift = j % (2 * lanes) < lanes ? 0 : 16;
      for (std::ptrdiff_t k = 0; k < inputs_; ++k)
        to[k * panel / 2] |= static_cast<std::uint32_t>(to_bfloat16(weights.data[j * weights.stride + k])) << shift;
    }
  }

  std::ptrdiff_t inputs() const { return inputs_; }
  std::size_t bytes() const { return weights_.size() * sizeof(std::uint32_t) + bias_.size() * sizeof(float); }

  /// Sums as FloatPanels does.
  template <int Rows, int Vectors, class Write>
  void block(MatrixView<float const> const& x, std::ptrdiff_t row, std::ptrdiff_t column, Write write) const {
    constexpr auto per_panel = static_cast<int>(panel) / (2 * lanes);
    constexpr int line = 16 / lanes;  // pairs in a cache line
    auto const depth = inputs_;
    auto const stride = x.stride;
    auto const* const a = x.data + row * stride;
    auto const* const b = weights_.data() + (column / panel * panel * depth + column % panel) / 2;
    auto const from = [&](std::ptrdiff_t k, int pair) __attribute__((always_inline)) {
      return b + (k * panel + pair / per_panel * panel * depth) / 2 + pair % per_panel * lanes;
    };
    simd::Vec sum[Rows][Vectors] = {};
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      simd::Vec weight[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; v += 2) {
        Pairs pairs;
        __builtin_memcpy(&pairs, from(k, v / 2), sizeof(pairs));
        weight[v] = reinterpret_cast<simd::Vec>(pairs << 16);
        weight[v + 1] = reinterpret_cast<simd::Vec>(pairs & 0xffff0000u);
      }
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        auto const value = simd::broadcast(a[r * stride + k]);
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sum[r][v] += value * weight[v];
      }
      for (int pair = 0; pair < Vectors / 2; pair += line) __builtin_prefetch(from(k, pair) + ahead / 4);
    }
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      auto const bias = simd::load(bias_.data() + column + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) write(row + r, column + v * lanes, sum[r][v] + bias);
    }
  }

 private:
  using Pairs = std::uint32_t __attribute__((vector_size(lanes * sizeof(std::uint32_t))));

  std::ptrdiff_t inputs_ = 0;
  AlignedVector<std::uint32_t> weights_;
  AlignedVector<float> bias_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
