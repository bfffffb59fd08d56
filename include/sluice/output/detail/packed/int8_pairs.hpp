// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of two rows at a time with `smmla` (AArch64 with i8mm): twice as many in an instruction as with `sdot`.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/packed/int8_dot.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if SLUICE_SMMLA

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// Sums of Rows rows for Vectors * 4 outputs. An instruction multiplies eight inputs of two rows with the weights of two
/// outputs; its vector of sums has both outputs of one row, then of the other. An odd row is paired with itself, which
/// costs as much as `sdot`.
template <std::size_t Rows, std::size_t Vectors>
class Int8Pairs {
 public:
  /// Adds eight inputs.
  /// \param a   of the first row; the next is `stride` further
  /// \param at  at(v): the weights of vector v, [4 outputs][8]
  template <class At>
  [[gnu::always_inline]] void add(std::int8_t const* a, std::ptrdiff_t stride, At const& at) {
    int8x16_t inputs[pairs];
#pragma GCC unroll 16
    for (std::size_t p = 0; p < pairs; ++p)
      inputs[p] = vcombine_s8(vld1_s8(a + row(2 * p) * stride), vld1_s8(a + row(2 * p + 1) * stride));
#pragma GCC unroll 16
    for (std::size_t v = 0; v < Vectors; ++v) {
      auto const* const weights = at(static_cast<int>(v));
      auto const low = vld1q_s8(weights);
#pragma GCC unroll 16
      for (std::size_t p = 0; p < pairs; ++p) low_[p][v] = vmmlaq_s32(low_[p][v], inputs[p], low);
      auto const high = vld1q_s8(weights + 16);
#pragma GCC unroll 16
      for (std::size_t p = 0; p < pairs; ++p) high_[p][v] = vmmlaq_s32(high_[p][v], inputs[p], high);
    }
  }

  /// Adds the sums so far to sums[row][vector], a lane for each output.
  [[gnu::always_inline]] void end(Int8Dot::Sums (&sums)[Rows][Vectors]) const {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < Vectors; ++v) {
#pragma GCC unroll 16
      for (std::size_t p = 0; p < pairs; ++p) {
        auto const low = vreinterpretq_s64_s32(low_[p][v]), high = vreinterpretq_s64_s32(high_[p][v]);
        sums[2 * p][v] += reinterpret_cast<Int8Dot::Sums>(vzip1q_s64(low, high));
        if (2 * p + 1 < Rows) sums[2 * p + 1][v] += reinterpret_cast<Int8Dot::Sums>(vzip2q_s64(low, high));
      }
    }
  }

 private:
  static constexpr std::size_t pairs = (Rows + 1) / 2;
  static constexpr std::ptrdiff_t row(std::size_t r) { return static_cast<std::ptrdiff_t>((std::min)(r, Rows - 1)); }

  int32x4_t low_[pairs][Vectors] = {},
            high_[pairs][Vectors] = {};  // of the first two outputs of a vector, of the others
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail

#endif
