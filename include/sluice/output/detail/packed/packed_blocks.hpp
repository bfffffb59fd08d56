// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cuts a packed product into blocks that fit the registers and the caches, for any stored type of weights.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

inline constexpr std::ptrdiff_t panel = 32;    ///< outputs whose weights are stored together
inline constexpr std::ptrdiff_t ahead = 4096;  ///< weights are prefetched so many bytes ahead; the memory is padded for
                                               ///< that
inline constexpr std::ptrdiff_t cache_line = 64;  ///< bytes

/// n rounded up to whole panels.
inline std::ptrdiff_t padded(std::ptrdiff_t n) { return (n + panel - 1) / panel * panel; }

/// to[j] = from[rows[j]], padded with zeros to whole panels; all zeros if `from` is empty.
template <class T>
void gather_numbers(std::span<T const> from, std::span<std::int32_t const> rows, AlignedVector<T>& to) {
  auto const size = padded(std::ssize(rows));
  if (std::ssize(to) < size) to.resize(static_cast<std::size_t>(size));
  std::fill_n(to.begin(), size, T{});
  if (!from.empty())
    for (std::size_t j = 0; j < rows.size(); ++j) to[j] = from[static_cast<std::size_t>(rows[j])];
}

// Rows x vectors sums are held in registers: enough independent chains to hide the latency of an addition. Few rows
// take many columns, so that the weights are read at memory bandwidth. A pragma unrolls the loops: at -O2, GCC would
// keep the sums in memory. With more rows each weight would be loaded less often. But rows that lie some KB apart evict each other
// from the nearest cache, and with 12 rows GCC keeps their addresses in vector registers.
#if defined(__aarch64__)
// Inputs and weights need registers: no operand is in memory. 12 rows, or 24 sums, would spill.
inline constexpr int most_rows = 10, most_sums = 20;
#else
inline constexpr int most_rows = simd::registers == 32 ? 8 : 6, most_sums = simd::registers == 32 ? 22 : 12;
#endif
template <class Panels>
constexpr int vectors(std::ptrdiff_t rows) {
  return rows * 8 <= Panels::most_sums ? 8 : rows * 4 <= Panels::most_sums ? 4 : 2;
}

/// Computes columns first .. end - 1 (whole panels) of the product of x.rows rows with a weight matrix.
///
/// Panels, the weights, provides `inputs()`, the lanes of a vector, the most rows of a block, the most sums of a block with more than
/// two vectors, and the smallest block of a product: `template <int Rows, int Vectors> void block(X x, row, column, write)` calls
/// write(row, column, vector) for Rows rows and Vectors * lanes columns.
template <class Panels, class X, class Write>
class Blocks {
 public:
  Blocks(Panels const& panels, X const& x, Write const& write) : panels_(panels), x_(x), write_(write) {}

  void run(std::ptrdiff_t first, std::ptrdiff_t end) const {
    // A group of rows stays in the L2 cache while all panels are read.
    auto const group =
        std::max<std::ptrdiff_t>(most, (std::ptrdiff_t{1} << 18) / std::max<std::ptrdiff_t>(panels_.inputs(), 1));
    auto const groups = (x_.rows + group - 1) / group;
    for (std::ptrdiff_t g = 0; g < groups; ++g) rows(x_.rows * g / groups, x_.rows * (g + 1) / groups, first, end);
  }

 private:
  static constexpr std::ptrdiff_t lanes = Panels::lanes;
  static constexpr int most = Panels::most_rows;
  // So many columns are computed for each block of rows while they stay in the L1 cache.
  static constexpr std::ptrdiff_t strip = 4 * panel;

  void rows(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t first_column, std::ptrdiff_t end_column) const {
    auto const blocks = (last - first + most - 1) / most;
    auto const width = vectors<Panels>(last - first);
    for (auto begin = first_column; begin < end_column; begin += strip) {
      auto const end = (std::min)(end_column, begin + strip);
      for (std::ptrdiff_t i = 0; i < blocks; ++i) {
        auto const row = first + (last - first) * i / blocks;
        auto const count = first + (last - first) * (i + 1) / blocks - row;
        auto column = begin;
        for (; column + width * lanes <= end; column += width * lanes) dispatch<most>(row, count, column, width);
        for (; column < end; column += 2 * lanes) dispatch<most>(row, count, column, 2);
      }
    }
  }

  template <int Rows>
  void dispatch(std::ptrdiff_t row, std::ptrdiff_t count, std::ptrdiff_t column, int width) const {
    if constexpr (Rows > 1) {
      if (count < Rows) return dispatch<Rows - 1>(row, count, column, width);
    }
    if constexpr (vectors<Panels>(Rows) > 2) {
      if (width > 2) return panels_.template block<Rows, vectors<Panels>(Rows)>(x_, row, column, write_);
    }
    panels_.template block<Rows, 2>(x_, row, column, write_);
  }

  Panels const& panels_;
  X const& x_;
  Write const& write_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
