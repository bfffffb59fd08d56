// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of few rows with some lines of 8-bit weights, read in place.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/packed/int8_dot.hpp>
#include <sluice/output/detail/packed/packed_int8.hpp>
#include <sluice/output/detail/packed/product_writer.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

#if defined(__SSE2__)  // where instructions multiply two whole vectors

/// Equal to a product with packed lines, bit for bit, since sums are exact. For so few rows, packing would take longer
/// than multiplying.
class Int8InPlace {
 public:
  static constexpr std::ptrdiff_t few_rows = 6;

  static bool suits(Int8Rows const& x) { return x.rows <= few_rows && x.stride % numbers == 0; }

  static void multiply(Int8Lines const& lines, std::span<float const> bias, std::span<std::int32_t const> rows,
                       Int8Rows const& x, ProductWriter const& write) {
    for (std::size_t first = 0; first < rows.size(); first += lanes) {
      std::array<std::int8_t const*, lanes> from{};
      alignas(64) std::uint32_t corrections[lanes] = {};
      alignas(64) float scales[lanes] = {}, biases[lanes] = {};
      for (std::size_t i = 0; i < lanes; ++i) {
        auto const row = rows[(std::min)(first + i, rows.size() - 1)];
        from[i] = lines[row];
        corrections[i] = lines.corrections[static_cast<std::size_t>(row)];
        scales[i] = lines.scales[static_cast<std::size_t>(row)];
        if (!bias.empty()) biases[i] = bias[static_cast<std::size_t>(row)];
        // The lines are scattered, so the hardware prefetcher cannot predict them in time.
        auto const* const next = lines[rows[(std::min)(first + i + lanes, rows.size() - 1)]];
        for (std::ptrdiff_t k = 0; k < x.stride; k += cache_line) __builtin_prefetch(next + k);
      }
      Int8Panels::Ending const ending{Int8Dot::load<Sums>(corrections), Int8Dot::load<Int8Dot::Floats>(scales),
                                      Int8Dot::load<Int8Dot::Floats>(biases)};
      for (std::ptrdiff_t r = 0; r < x.rows; ++r) {
        Sums sums[lanes];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < lanes; ++i) {
          sums[i] = Sums{};
          for (std::ptrdiff_t k = 0; k < x.stride; k += numbers)
            sums[i] = Int8Dot::add(sums[i], Int8Dot::load<Sums>(x[r] + k), Int8Dot::weights(from[i] + k));
        }
        write(r, static_cast<std::ptrdiff_t>(first),
              ending(across<lanes>(sums), x.scales[static_cast<std::size_t>(r)]));
      }
    }
  }

 private:
  using Sums = Int8Dot::Sums;
  static constexpr std::size_t lanes = Int8Dot::lanes;
  static constexpr std::ptrdiff_t numbers = Int8Dot::lanes * Int8Dot::depth;  // that one instruction multiplies

  template <std::size_t Distance, std::size_t... Lane>
  [[gnu::always_inline]] static Sums add_pairs(Sums a, Sums b, std::index_sequence<Lane...>) {
    // Lanes with the bit `Distance` take b, the others a; each adds its partner's sum.
    auto const own = __builtin_shufflevector(a, b, static_cast<int>(Lane & Distance ? Lane + lanes : Lane)...);
    auto const other =
        __builtin_shufflevector(a, b, static_cast<int>(Lane & Distance ? Lane + lanes - Distance : Lane + Distance)...);
    return own + other;
  }

  /// Lane i: the sum of all lanes of v[i].
  template <std::size_t Count>
  [[gnu::always_inline]] static Sums across(Sums* v) {
    if constexpr (Count == 1) {
      return v[0];
    } else {
      constexpr auto half = Count / 2;
      for (std::size_t i = 0; i < half; ++i)
        v[i] = add_pairs<half>(v[i], v[i + half], std::make_index_sequence<lanes>{});
      return across<half>(v);
    }
  }
};

#else

struct Int8InPlace {
  static bool suits(Int8Rows const&) { return false; }
  static void multiply(Int8Lines const&, std::span<float const>, std::span<std::int32_t const>, Int8Rows const&,
                       ProductWriter const&) {}
};

#endif

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
