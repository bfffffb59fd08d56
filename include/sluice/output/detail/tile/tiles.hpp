// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tile registers of a thread, configured during an object's life, and operations on them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/tile/permission.hpp>

#include <cstddef>
#include <cstdint>

#if SLUICE_TILES

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace tile {

inline constexpr std::ptrdiff_t most_rows = 16;  ///< of a tile
inline constexpr std::ptrdiff_t row_bytes = 64;  ///< of a tile's row: 64 numbers of 8 bits, 32 of 16, 16 of 32
inline constexpr std::ptrdiff_t bytes = 1024;    ///< of a whole tile

// Sums, inputs, weights. Tiles over input rows have only as many rows as needed, since a product's time is proportional
// to its rows.
inline constexpr int sums = 0, inputs = 4, weights = 6;

/// Tiles 0 to 3 (sums) and 4, 5 (inputs) have `rows` rows, 6 and 7 (weights) 16. Released at the end, because a live
/// tile state makes context switches slower. granted() must be true.
class Tiles {
 public:
  explicit Tiles(std::ptrdiff_t rows) {
    struct alignas(64) {
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } configuration;
    for (int i = 0; i < 8; ++i) {
      configuration.row_bytes[i] = detail::tile::row_bytes;
      configuration.rows[i] = i < weights ? static_cast<std::uint8_t>(rows) : std::uint8_t{most_rows};
    }
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  ~Tiles() { asm volatile("tilerelease" : :); }
  Tiles(Tiles const&) = delete;
  Tiles& operator=(Tiles const&) = delete;
};

// Inline assembly, not intrinsics: GCC 12's intrinsics do not tell the compiler that a load reads memory, so it could
// move stores past it.

template <int Tile>
[[gnu::always_inline]] inline void zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
}

/// Rows at p, p + stride, ... (bytes).
template <int Tile>
[[gnu::always_inline]] inline void load(void const* p, std::ptrdiff_t stride) {
  asm volatile("{tileloadd\t(%0,%1,1), %%tmm%c2|tileloadd\ttmm%c2, [%0+%1*1]}"
               :
               : "r"(p), "r"(stride), "i"(Tile)
               : "memory");
}

/// The same for rows that will not be reused soon: they do not evict others from the L1 cache, and loads from L2 are up
/// to 1.6 times as fast.
template <int Tile>
[[gnu::always_inline]] inline void load_once(void const* p, std::ptrdiff_t stride) {
  asm volatile("{tileloaddt1\t(%0,%1,1), %%tmm%c2|tileloaddt1\ttmm%c2, [%0+%1*1]}"
               :
               : "r"(p), "r"(stride), "i"(Tile)
               : "memory");
}

template <int Tile>
[[gnu::always_inline]] inline void store(void* p, std::ptrdiff_t stride) {
  asm volatile("{tilestored\t%%tmm%c2, (%0,%1,1)|tilestored\t[%0+%1*1], tmm%c2}"
               :
               : "r"(p), "r"(stride), "i"(Tile)
               : "memory");
}

/// Sums += unsigned inputs x signed weights, four bytes at a time.
template <int Sums, int Inputs, int Weights>
[[gnu::always_inline]] inline void add_int8() {
  asm volatile("{tdpbusd\t%%tmm%c2, %%tmm%c1, %%tmm%c0|tdpbusd\ttmm%c0, tmm%c1, tmm%c2}"
               :
               : "i"(Sums), "i"(Inputs), "i"(Weights));
}

/// Sums += inputs x weights, two bfloat16 at a time.
template <int Sums, int Inputs, int Weights>
[[gnu::always_inline]] inline void add_bfloat16() {
  asm volatile("{tdpbf16ps\t%%tmm%c2, %%tmm%c1, %%tmm%c0|tdpbf16ps\ttmm%c0, tmm%c1, tmm%c2}"
               :
               : "i"(Sums), "i"(Inputs), "i"(Weights));
}

}  // namespace tile
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail

#endif
