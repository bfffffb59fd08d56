// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights in 8 bits, and rows of inputs likewise.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/packed/int8_dot.hpp>
#include <sluice/output/packed/packed_blocks.hpp>
#include <sluice/output/packed/quantise.hpp>
#include <sluice/output/simd/aligned_vector.hpp>
#include <sluice/output/simd/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {
namespace packed {

/// d, rounded up to what a lane takes at a time.
inline std::ptrdiff_t int8_depth(std::ptrdiff_t d) { return (d + int8::depth - 1) / int8::depth * int8::depth; }

/// Rows of inputs in 8 bits, as Int8Panels reads them: row r is scales[r] times its numbers.
struct Int8Rows {
  std::ptrdiff_t rows = 0;
  std::ptrdiff_t stride = 0;
  AlignedVector<int8::Input> numbers;  // [rows, stride]
  AlignedVector<float> scales;         // [rows]

  void assign(MatrixView<float const> x) {
    rows = x.rows;
    stride = int8_depth(x.columns);
    if (std::ssize(numbers) < rows * stride) numbers.resize(static_cast<std::size_t>(rows * stride));
    if (std::ssize(scales) < rows) scales.resize(static_cast<std::size_t>(rows));
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
      auto* const to = numbers.data() + r * stride;
      scales[static_cast<std::size_t>(r)] = int8::quantise(x[r], to, int8::offset);
      std::fill(to + x.columns, to + stride, int8::Input{});  // the weights are 0 there
    }
  }
};

/// Panels [ceil(n / 32)][d / depth][32][depth] with d filled up to a multiple of `depth`, and a scale for each output.
class Int8Panels {
 public:
  static constexpr int lanes = int8::lanes;
  /// More inputs could exceed the 31 bits of a sum.
  static constexpr std::ptrdiff_t max_inputs = std::numeric_limits<std::int32_t>::max() / (127 * 127);

  Int8Panels(MatrixView<float const> weights, std::span<float const> bias)
      : inputs_(checked(weights.columns)),
        depth_(int8_depth(inputs_)),
        weights_(static_cast<std::size_t>(padded(weights.rows) * depth_ + ahead)),
        corrections_(static_cast<std::size_t>(padded(weights.rows))),
        scales_(corrections_.size()),
        bias_(corrections_.size()) {
    std::copy(bias.begin(), bias.end(), bias_.begin());
    std::vector<std::int8_t> row(static_cast<std::size_t>(inputs_));
    for (std::ptrdiff_t j = 0; j < weights.rows; ++j) {
      auto const output = static_cast<std::size_t>(j);
      scales_[output] = int8::quantise(weights[j], row.data(), 0);
      auto* const to = weights_.data() + j / panel * panel * depth_ + j % panel * int8::depth;
      std::int64_t sum = 0;
      for (std::ptrdiff_t k = 0; k < inputs_; ++k) {
        auto const number = row[static_cast<std::size_t>(k)];
        to[k / int8::depth * int8::depth * panel + k % int8::depth] = number;
        sum += number;
      }
      corrections_[output] = static_cast<std::uint32_t>(-int8::offset * sum);
    }
  }

  std::ptrdiff_t inputs() const { return inputs_; }
  std::size_t bytes() const {
    return weights_.size() + corrections_.size() * (sizeof(std::uint32_t) + 2 * sizeof(float));
  }

  /// Exact sums; then, each rounded, sum * (scale of the output * scale of the row) + bias.
  template <int Rows, int Vectors, class Write>
  void block(Int8Rows const& x, std::ptrdiff_t row, std::ptrdiff_t column, Write write) const {
    constexpr auto per_panel = static_cast<int>(panel) / lanes;
    constexpr auto bytes = lanes * int8::depth;
    constexpr auto line = static_cast<int>(cache_line) / bytes;  // vectors in a cache line
    auto const depth = depth_;
    auto const stride = x.stride;
    auto const* const a = x.numbers.data() + row * stride;
    auto const* const b = weights_.data() + column / panel * panel * depth + column % panel * int8::depth;
    auto const from = [&](std::ptrdiff_t k, int v) __attribute__((always_inline)) {
      return b + k * panel + v / per_panel * panel * depth + v % per_panel * bytes;
    };
    int8::Sums sum[Rows][Vectors] = {};
    for (std::ptrdiff_t k = 0; k < depth; k += int8::depth) {
      int8::Weights weight[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) weight[v] = int8::weights(from(k, v));
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        auto const inputs = int8::broadcast(a + r * stride + k);
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sum[r][v] = int8::add(sum[r][v], inputs, weight[v]);
      }
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; v += line) __builtin_prefetch(from(k, v) + ahead);
    }
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      auto const correction = int8::load<int8::Sums>(corrections_.data() + column + v * lanes);
      auto const scale = int8::load<int8::Floats>(scales_.data() + column + v * lanes);
      auto const bias = int8::load<int8::Floats>(bias_.data() + column + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        auto const total = reinterpret_cast<int8::Signed>(sum[r][v] + correction);
        auto const both = scale * x.scales[static_cast<std::size_t>(row + r)];
        auto const product = simd::rounded(__builtin_convertvector(total, int8::Floats) * both);
        write(row + r, column + v * lanes, product + bias);
      }
    }
  }

 private:
  static std::ptrdiff_t checked(std::ptrdiff_t inputs) {
    require(inputs <= max_inputs, "PackedMatrix: weights.columns", inputs, "must be <= 133144 for int8");
    return inputs;
  }

  std::ptrdiff_t inputs_ = 0;
  std::ptrdiff_t depth_ = 0;
  AlignedVector<std::int8_t> weights_;
  AlignedVector<std::uint32_t> corrections_;  // by output: what makes the offset of the inputs good
  AlignedVector<float> scales_;
  AlignedVector<float> bias_;
};

static_assert(Int8Panels::max_inputs == 133144);

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
