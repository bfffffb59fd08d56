// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cuts a packed product into tiles of the matrix units (Intel AMX).
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/tile/tiles.hpp>

#include <algorithm>
#include <cstddef>

#if SLUICE_TILES

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// As Blocks, if tile::granted(). Sums two tiles of rows times two of columns at once, or one times two. A tile's sums
/// run over k in steps of 64 bytes of a row, for any number of rows.
///
/// Panels and X are DotPanels and Lines of the same element type. Panels also has `add_tiles<Sum, Inputs, Weights>()`,
/// `tile_ending(column)` and, if tiles_begin_with_bias, `bias()`.
template <class Panels, class X, class Write>
class TileBlocks {
 public:
  TileBlocks(Panels const& panels, X const& x, Write const& write) : panels_(panels), x_(x), write_(write) {}

  /// Columns first .. end - 1, whole panels.
  void run(std::ptrdiff_t first, std::ptrdiff_t end) const {
    if (x_.rows == 0) return;
    // A group of rows stays in the L2 cache while all panels are read.
    auto const most = std::max<std::ptrdiff_t>(2 * tile::most_rows,
                                               (std::ptrdiff_t{1} << 19) / std::max<std::ptrdiff_t>(x_.row_bytes(), 1));
    auto const groups = (x_.rows + most - 1) / most;
    for (std::ptrdiff_t g = 0; g < groups; ++g) rows(x_.rows * g / groups, x_.rows * (g + 1) / groups, first, end);
  }

 private:
  static constexpr std::ptrdiff_t width = 16;                  // columns of a tile
  static constexpr std::ptrdiff_t pitch = panel / width * 64;  // bytes between the rows of a tile of weights
  static_assert(Panels::lanes == width);
  // A panel of rows shorter than this (bytes) is still in the L1 cache when the next two strips need it.
  static constexpr std::ptrdiff_t stays = 1024;

  /// Rows of a tile. The last tile overlaps the one before, so that all have the same height; its first `skip` rows are
  /// not written.
  struct Strip {
    std::ptrdiff_t row, skip;
  };

  void rows(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t first_column, std::ptrdiff_t end_column) const {
    auto const tiles = (last - first + tile::most_rows - 1) / tile::most_rows;
    auto const height = (last - first + tiles - 1) / tiles;
    auto const strip = [&](std::ptrdiff_t i) {
      auto const wanted = first + i * height, row = (std::min)(wanted, last - height);
      return Strip{row, wanted - row};
    };
    // Weights that only two strips use, or that are too many to stay in the L1 cache until the next two strips, should
    // bypass it.
    auto const stay = x_.row_bytes() < stays;
    tile::Tiles const configured(height);
    for (auto column = first_column; column < end_column; column += 2 * panel) {
      auto const both = column + panel < end_column;
      std::ptrdiff_t i = 0;
      for (; i + 1 < tiles; i += 2) {
        Strip const strips[] = {strip(i), strip(i + 1)};
        stay ? block<true>(strips, height, column) : block<false>(strips, height, column);
        if (both) stay ? block<true>(strips, height, column + panel) : block<false>(strips, height, column + panel);
      }
      if (i == tiles) continue;
      block<false>({strip(i)}, height, column);
      if (both) block<false>({strip(i)}, height, column + panel);
    }
  }

  /// Loads weights; `stay` says whether to keep them in the cache.
  template <bool stay, int Tile>
  [[gnu::always_inline]] static void load_weights(char const* from) {
    if constexpr (stay) tile::load<Tile>(from, pitch);
    else tile::load_once<Tile>(from, pitch);
  }

  /// Two tiles of columns.
  template <bool stay, std::size_t Strips>
  [[gnu::always_inline]] void block(Strip const (&strips)[Strips], std::ptrdiff_t height, std::ptrdiff_t column) const {
    constexpr int Rows = static_cast<int>(Strips), Columns = 2;
    alignas(64) typename Panels::Sums sums[Strips][Columns][tile::most_rows];
    constexpr std::ptrdiff_t step = 2 * tile::bytes;  // of a panel
    auto const stride = x_.row_bytes();
    auto const* const a = reinterpret_cast<char const*>(x_[strips[0].row]);
    auto const* const b = reinterpret_cast<char const*>(x_[strips[Rows - 1].row]);
    auto const* const weights = reinterpret_cast<char const*>(panels_.from(column));
    auto const steps = stride / tile::row_bytes;
    begin<Rows, Columns>(column);
    for (std::ptrdiff_t k = 0; k < steps; ++k) {
      auto const* const w = weights + k * step;
      tile::load<tile::inputs>(a + k * tile::row_bytes, stride);
      load_weights<stay, tile::weights>(w);
      if constexpr (Rows == 1) load_weights<stay, tile::weights + 1>(w + tile::row_bytes);
      Panels::template add_tiles<0, tile::inputs, tile::weights>();
      if constexpr (Rows == 2) {
        tile::load<tile::inputs + 1>(b + k * tile::row_bytes, stride);
        Panels::template add_tiles<Columns, tile::inputs + 1, tile::weights>();
        load_weights<stay, tile::weights + 1>(w + tile::row_bytes);
      }
      Panels::template add_tiles<1, tile::inputs, tile::weights + 1>();
      if constexpr (Rows == 2) Panels::template add_tiles<Columns + 1, tile::inputs + 1, tile::weights + 1>();
    }
    if constexpr (Panels::tiles_begin_with_bias) {
      if (write_.as_they_are(column + Columns * width)) return write_tiles<Rows, Columns>(strips, column);
    }
    keep<Rows * Columns>(&sums[0][0][0]);
    auto const factors = x_.factors();
    auto const whole = height == tile::most_rows;
    write_.for_columns(
        column + Columns * width, [&](auto const& put) __attribute__((always_inline)) {
          for (int c = 0; c < Columns; ++c) {
            auto const at = column + c * width;
            auto const ending = panels_.tile_ending(at);
            for (int r = 0; r < Rows; ++r) {
              auto const row = strips[r].row;
              auto const* const sum = sums[r][c];
              if (whole && strips[r].skip == 0) {
#pragma GCC unroll 16
                for (std::ptrdiff_t i = 0; i < tile::most_rows; ++i) put(row + i, at, ending(sum[i], factors[row + i]));
              } else {
                for (auto i = strips[r].skip; i < height; ++i) put(row + i, at, ending(sum[i], factors[row + i]));
              }
            }
          }
        });
  }

  /// Initialises tiles 0 .. Rows * Columns - 1.
  template <int Rows, int Columns, int Tile = 0>
  [[gnu::always_inline]] void begin(std::ptrdiff_t column) const {
    if constexpr (Tile < Rows * Columns) {
      if constexpr (Panels::tiles_begin_with_bias)
        tile::load<Tile>(panels_.bias() + column + Tile % Columns * width, 0);  // the same for every row of the tile
      else tile::zero<Tile>();
      begin<Rows, Columns, Tile + 1>(column);
    }
  }

  /// Stores the sums; rows that two tiles share are written twice, with the same numbers.
  template <int Rows, int Columns, int Tile = 0>
  [[gnu::always_inline]] void write_tiles(Strip const* strips, std::ptrdiff_t column) const {
    if constexpr (Tile < Rows * Columns) {
      tile::store<Tile>(write_.at(strips[Tile / Columns].row, column + Tile % Columns * width), write_.row_bytes());
      write_tiles<Rows, Columns, Tile + 1>(strips, column);
    }
  }

  template <int Count>
  [[gnu::always_inline]] static void keep(typename Panels::Sums* to) {
    if constexpr (Count > 0) {
      tile::store<Count - 1>(to + (Count - 1) * tile::most_rows, tile::row_bytes);
      keep<Count - 1>(to);
    }
  }

  Panels const& panels_;
  X const& x_;
  Write const& write_;
};

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail

#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// Columns first .. end - 1 (whole panels) of a product, on the matrix units if they have such numbers and are granted.
template <class Panels, class X, class Write>
void run(Panels const& panels, X const& x, Write const& write, std::ptrdiff_t first, std::ptrdiff_t end) {
#if SLUICE_TILES
  if constexpr (requires { Panels::few_rows; })
    if (x.rows > Panels::few_rows && tile::granted()) return TileBlocks(panels, x, write).run(first, end);
#endif
  Blocks(panels, x, write).run(first, end);
}

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
