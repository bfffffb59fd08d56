// SPDX-License-Identifier: Apache-2.0
/// \file
/// The normaliser over a few tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/log_add.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// log sum exp of scores, with each term accurate to 3e-7 relative; 0 if none is more than -infinity.
SLUICE_LAZY double log_sum_exp(std::span<float const> scores) {
  constexpr auto lowest = -std::numeric_limits<float>::infinity();
  constexpr auto lanes = static_cast<std::size_t>(simd::lanes);
  auto const whole = scores.size() / lanes * lanes;
  alignas(64) std::array<float, lanes> tail;
  std::copy(scores.begin() + static_cast<std::ptrdiff_t>(whole), scores.end(), tail.begin());
  std::fill(tail.begin() + static_cast<std::ptrdiff_t>(scores.size() - whole), tail.end(), lowest);
  auto highest = simd::load(tail.data());
  for (std::size_t i = 0; i < whole; i += lanes) highest = (simd::max)(highest, simd::load(scores.data() + i));
  auto top = lowest;
  for (std::size_t i = 0; i < lanes; ++i) top = (std::max)(top, highest[static_cast<int>(i)]);
  if (top == lowest) return 0;
  auto sums = simd::Vec{};
  for (std::size_t i = 0; i < whole; i += lanes)
    sums += simd::precise_exp_of_negative(simd::load(scores.data() + i) - top);
  if (whole < scores.size()) sums += simd::precise_exp_of_negative(simd::load(tail.data()) - top);
  double sum = 0;
  for (std::size_t i = 0; i < lanes; ++i) sum += static_cast<double>(sums[static_cast<int>(i)]);
  return static_cast<double>(top) + std::log(sum);
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
