// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packed weights and rows of inputs in 16 or 8 bits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/int8_pairs.hpp>
#include <sluice/output/detail/packed/loads.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/simd/transpose.hpp>
#include <sluice/output/detail/tile/permission.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// d rounded up to a multiple of the depth; to a whole tile row if compiled for matrix units.
template <class Dot>
std::ptrdiff_t filled(std::ptrdiff_t d) {
  constexpr std::ptrdiff_t step =
      tile::compiled ? 64 / static_cast<std::ptrdiff_t>(sizeof(typename Dot::Number)) : std::ptrdiff_t{Dot::depth};
  return (d + step - 1) / step * step;
}

/// Rows [rows, stride] of inputs or of weights, padded with zeros.
template <class Number>
struct Lines {
  std::ptrdiff_t rows = 0;
  std::ptrdiff_t stride = 0;
  AlignedVector<Number> numbers;

  /// Allocates only beyond its largest size so far.
  void resize(std::ptrdiff_t count, std::ptrdiff_t columns, std::ptrdiff_t filled) {
    rows = count;
    stride = filled;
    if (std::ssize(numbers) < rows * stride) numbers.resize(static_cast<std::size_t>(rows * stride));
    for (std::ptrdiff_t r = 0; r < rows && columns < stride; ++r)
      std::fill((*this)[r] + columns, (*this)[r] + stride, Number{});
  }
  Number* operator[](std::ptrdiff_t row) { return numbers.data() + row * stride; }
  Number const* operator[](std::ptrdiff_t row) const { return numbers.data() + row * stride; }
  std::ptrdiff_t row_bytes() const { return stride * static_cast<std::ptrdiff_t>(sizeof(Number)); }
};

/// Panels [ceil(n / 32)][d / depth][32][depth] of weights, with d padded, and a bias per output. Panels is the class that
/// derives from it: its `ending(column)` finishes the sums of `lanes` outputs.
template <class Panels, class Dot>
class DotPanels {
 public:
  using Number = typename Dot::Number;
  using Sums = typename Dot::Sums;
  static constexpr int lanes = Dot::lanes;
  // Where there are 16 registers, converting weights takes some of them, most of all if they are added in two parts.
  static constexpr bool few_registers = simd::registers == 16;
  static constexpr int most_rows = few_registers && Dot::parts == 2 ? 5 : packed::most_rows;
  static constexpr int most_sums = few_registers ? 10 : packed::most_sums;

  /// Replaces the contents by rows[0], rows[1], ... of `lines`, which are Lines with `columns` numbers before padding, and
  /// of `bias`, unless that is empty. Allocates only beyond its largest size so far.
  template <class Weights>
  void gather(Weights const& lines, std::span<float const> bias, std::span<std::int32_t const> rows) {
    inputs_ = lines.columns;
    depth_ = lines.stride;
    auto const outputs = padded(std::ssize(rows));
    auto const size = static_cast<std::size_t>(outputs * depth_) + ahead / sizeof(Number);
    if (weights_.size() < size) weights_.resize(size);
    for (std::ptrdiff_t first = 0; first < outputs; first += panel) {
      auto const line = [&](std::ptrdiff_t j) {
        return first + j < std::ssize(rows) ? lines[rows[static_cast<std::size_t>(first + j)]] : nullptr;
      };
      pack(line, weights_.data() + first * depth_);
    }
    gather_numbers(bias, rows, bias_);
  }

  std::ptrdiff_t inputs() const { return inputs_; }
  std::size_t bytes() const { return weights_.size() * sizeof(Number) + bias_.size() * sizeof(float); }
  float const* bias() const { return bias_.data(); }  ///< [outputs, padded]

  /// The weights from output j on, at k = 0.
  Number const* from(std::ptrdiff_t j) const {
    return weights_.data() + j / panel * panel * depth_ + j % panel * Dot::depth;
  }

  /// Adds the products of Rows rows for Vectors * lanes outputs to `sums`.
  template <std::size_t Rows, std::size_t Vectors>
  [[gnu::always_inline]] void add(Lines<typename Dot::Input> const& x, std::ptrdiff_t row, std::ptrdiff_t column,
                                  Sums (&sums)[Rows][Vectors]) const {
    constexpr auto per_panel = static_cast<int>(panel) / lanes;
    constexpr auto vectors = static_cast<int>(Vectors);
    constexpr auto numbers = lanes * Dot::depth;
    constexpr auto line = static_cast<int>(cache_line / (numbers * sizeof(Number)));  // vectors in a cache line
    constexpr auto further = ahead / static_cast<std::ptrdiff_t>(sizeof(Number));
    auto const depth = depth_;
    auto const stride = x.stride;
    auto const* const a = x[row];
    auto const* const b = from(column);
    auto const at = [&](std::ptrdiff_t k, int v) __attribute__((always_inline)) {
      return b + k * panel + v / per_panel * panel * depth + v % per_panel * numbers;
    };
#if SLUICE_SMMLA
    if constexpr (std::is_same_v<Dot, Int8Dot>) {
      Int8Pairs<Rows, Vectors> pairs;
      for (std::ptrdiff_t k = 0; k < depth; k += Dot::depth) {
        pairs.add(
            a + k, stride, [&](int v) __attribute__((always_inline)) { return at(k, v); });
#pragma GCC unroll 16
        for (int v = 0; v < (prefetches(Rows) ? vectors : 0); v += line) __builtin_prefetch(at(k, v) + further);
      }
      return pairs.end(sums);
    } else  // NOLINT(readability-else-after-return): the rest would not compile
#endif
      for (std::ptrdiff_t k = 0; k < depth; k += Dot::depth) {
        step<0>(
            a + k, stride, [&](int v) __attribute__((always_inline)) { return at(k, v); }, sums);
#pragma GCC unroll 16
        for (int v = 0; v < (prefetches(Rows) ? vectors : 0); v += line) __builtin_prefetch(at(k, v) + further);
      }
  }

  /// Computes Rows rows for Vectors * lanes outputs, finishes them as Panels requires, and calls write(row, column,
  /// vector).
  template <int Rows, int Vectors, class X, class Write>
  void block(X const& x, std::ptrdiff_t row, std::ptrdiff_t column, Write write) const {
    Sums sums[std::size_t{Rows}][std::size_t{Vectors}] = {};
    add(x, row, column, sums);
    auto const factors = x.factors();
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      auto const at = column + v * lanes;
      auto const ending = static_cast<Panels const&>(*this).ending(at);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) write(row + r, at, ending(sums[r][v], factors[row + r]));
    }
  }

 private:
  /// Packs a panel of 32 lines; nullptr gives zeros.
  template <class Line>
  void pack(Line const& line, Number* to) const {
    if constexpr (sizeof(Number) * Dot::depth == 4) {
      transpose_panel([&](std::ptrdiff_t j) { return reinterpret_cast<std::byte const*>(line(j)); },
                      depth_ / Dot::depth, reinterpret_cast<std::byte*>(to));
    } else {
      for (std::ptrdiff_t j = 0; j < panel; ++j) {
        auto const* const from = line(j);
        for (std::ptrdiff_t k = 0; k < depth_; k += Dot::depth) {
          auto* const group = to + k * panel + j * Dot::depth;
          if (from == nullptr) std::fill_n(group, Dot::depth, Number{});
          else std::copy_n(from + k, Dot::depth, group);
        }
      }
    }
  }

  template <int part, std::size_t Rows, std::size_t Vectors, class At>
  [[gnu::always_inline]] static void step(typename Dot::Input const* a, std::ptrdiff_t stride, At const& at,
                                          Sums (&sums)[Rows][Vectors]) {
    constexpr auto rows = static_cast<int>(Rows), vectors = static_cast<int>(Vectors);
    auto const weight = [&](int v) __attribute__((always_inline)) {
      return once<(rows > 1)>(Dot::template weights<part>(at(v)));
    };
    auto const input = [&](int r) __attribute__((always_inline)) {
      return once<(rows > 1)>(Dot::template broadcast<part>(a + r * stride));
    };
    // Registers hold the inputs or the weights, whichever are fewer.
    if constexpr (loads_once && rows > 1 && rows <= vectors) {
      typename Dot::Inputs held[Rows];
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) held[r] = input(r);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        auto const w = weight(v);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) sums[r][v] = Dot::add(sums[r][v], held[r], w);
      }
    } else {
      typename Dot::Weights held[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) held[v] = weight(v);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        auto const x = input(r);
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) sums[r][v] = Dot::add(sums[r][v], x, held[v]);
      }
    }
    if constexpr (part + 1 < Dot::parts) {
#if defined(__aarch64__)
      asm volatile("" : : : "memory");  // no load of the next part before this: GCC would run out of registers
#endif
      step<part + 1>(a, stride, at, sums);
    }
  }

  std::ptrdiff_t inputs_ = 0;
  std::ptrdiff_t depth_ = 0;
  AlignedVector<Number> weights_;
  AlignedVector<float> bias_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
