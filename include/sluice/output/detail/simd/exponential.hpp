// SPDX-License-Identifier: Apache-2.0
/// \file
/// Exponentials for softmax sums.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/fused.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <cmath>
#include <cstdint>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace simd {

/// 2^rest for rest in [-0.5, 0.5], relative error below 1e-7: a minimax polynomial with 2^0 = 1.
[[gnu::always_inline]] inline Vec power_of_rest(Vec rest) {
  auto value = rest * 1.326473879e-3f + 9.671516667e-3f;
  value = value * rest + 5.550733753e-2f;
  value = value * rest + 2.402224202e-1f;
  value = value * rest + 6.931469776e-1f;
  return value * rest + 1.0f;
}

/// exp(x) for every lane x <= 0, relative error below 2e-7 (1 + |x|); 1e-38 for x below -87, including -infinity.
/// exp(0) is 1. Half the cost of an exp for all arguments.
[[gnu::always_inline]] inline Vec exp_of_negative(Vec x) {
  constexpr auto shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the lowest bits
  auto const power = (max)(Vec{} - 126.0f, x * 1.44269504f);
  auto const rounded = power + shift;
  auto const value = power_of_rest(power - (rounded - shift));
  return reinterpret_cast<Vec>(reinterpret_cast<Ints>(value) + (reinterpret_cast<Ints>(rounded) << 23));
}

/// Sums exp(x - reference()) for scores x around a number `around`; no x may exceed `around` by more than `above`.
///
/// Every term has a relative error below 6e-7 + 1.4e-8 |x - around| (without fused multiply-adds 2e-7 (1 + |x -
/// around|)), and so has the sum. Scores more than 75 below `around` count as if they were 75 below it. A NaN makes the
/// sum NaN.
class Exponentials {
 public:
  static constexpr float farthest = 32768;  ///< most |around|
  static constexpr float above = 11;

  Exponentials() : Exponentials(0) {}
  explicit Exponentials(float around) : around_(around), power_(std::nearbyint(around * scale)) {
    constexpr auto log_2 = 0.69314718055994530942;
    least_ = has_fused ? around - 75 : -75;
    // 2^(scale x) differs from exp(x) only by the rounding of `scale`; terms that matter are close to `around`.
    constexpr auto excess = static_cast<double>(scale) * log_2 - 1;
    reference_ = has_fused ? static_cast<double>(power_) * log_2 - excess * static_cast<double>(around)
                           : static_cast<double>(around);
    shift_ = tabled ? 786432.0f - power_ : 12582912.0f + 127 - power_;
  }

  double reference() const { return reference_; }

  /// sum + exp(x - reference()), lane by lane.
  [[gnu::always_inline]] Vec add(Vec sum, Vec x) const {
    if constexpr (has_fused) {
      x = least_ > x ? broadcast(least_) : x;  // operand order keeps a NaN
      // Adding 1.5 * 2^23 rounds to an integer in the lowest bits (1.5 * 2^19: to sixteenths). The remainder of the
      // exact product is then rounded once.
      auto const rounded = fused(x, broadcast(scale), broadcast(shift_));
      auto const rest = fused(x, broadcast(scale), shift_ - rounded);
      auto const bits = reinterpret_cast<Ints>(rounded);
      if constexpr (tabled) {
        // Minimax on [-1/32, 1/32]: within 4.3e-7.
        auto const value = fused(fused(broadcast(0.24022651f), rest, broadcast(0.69318783f)), rest, broadcast(1));
        auto const power = reinterpret_cast<Ints>(look_up(sixteenths(), bits)) + (bits << 19);
        return fused(value, reinterpret_cast<Vec>(power), sum);
      } else {
        return fused(power_of_rest(rest), reinterpret_cast<Vec>(bits << 23), sum);
      }
    } else {
      x -= around_;
      x = least_ > x ? broadcast(least_) : x;
      auto const power = x * scale;
      constexpr auto shift = 12582912.0f + 127;
      auto const rounded = power + shift;
      return sum +
             power_of_rest(power - (rounded - shift)) * reinterpret_cast<Vec>(reinterpret_cast<Ints>(rounded) << 23);
    }
  }

 private:
  static constexpr float scale = 1.44269504f;               // log2(e)
  static constexpr bool tabled = has_fused && lanes == 16;  // a polynomial two degrees lower

  /// 2^(i/16) as bits, minus i * 2^19, where the lowest four bits of a number in sixteenths end up.
  [[gnu::always_inline]] static Vec sixteenths() {
    alignas(64) static constexpr std::int32_t bits[16] = {
        0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
        0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d};
    Vec table;
    __builtin_memcpy(&table, bits, sizeof(table));
    return table;
  }

  float around_, power_, least_, shift_;
  double reference_;
};

}  // namespace simd
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
