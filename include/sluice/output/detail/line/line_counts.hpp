// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts tokens of a line above a threshold.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// The best score; -infinity for an empty line.
inline float largest(std::span<float const> line) {
  auto best = simd::broadcast(LineScan::lowest);
  std::size_t i = 0;
  for (; i + simd::lanes <= line.size(); i += simd::lanes) best = (simd::max)(best, simd::load(line.data() + i));
  auto result = LineScan::lowest;
  for (std::size_t lane = 0; lane < simd::lanes; ++lane) result = (std::max)(result, best[lane]);
  for (; i < line.size(); ++i) result = (std::max)(result, line[i]);
  return result;
}

/// Divides a whole line by a temperature. If its best finite score would overflow, that is subtracted first, which
/// changes no probability, and returned; else 0. A result that would underflow the range becomes the lowest float.
inline double divide(std::span<float> line, float temperature) {
  constexpr auto most = (std::numeric_limits<float>::max)();
  if (temperature < 1) {
    auto const top = largest(line);
    if (std::abs(top) <= most && std::abs(top / temperature) > most) {
      auto const centre = static_cast<double>(top), scale = static_cast<double>(temperature);
      for (auto& x : line) {
        auto const below = (static_cast<double>(x) - centre) / scale;
        x = static_cast<float>(x >= -most && below < -static_cast<double>(most) ? -static_cast<double>(most) : below);
      }
      return centre;
    }
  }
  for (auto& x : line) x /= temperature;
  return 0;
}

/// The number of scores >= bar.
inline std::size_t count_from(std::span<float const> line, double bar) {
  auto least = static_cast<float>(bar);  // no float lies between
  if (static_cast<double>(least) < bar) least = std::nextafter(least, std::numeric_limits<float>::infinity());
  least = (std::max)(least, std::numeric_limits<float>::lowest());  // excludes -infinity
  std::uint32_t count = 0;                                          // compilers vectorise this size
  for (auto const x : line) count += x >= least ? 1u : 0u;
  return count;
}

/// The number of tokens that are at least `factor` times as probable as the best.
inline std::size_t count_within(std::span<float const> line, double factor) {
  return count_from(line, static_cast<double>(largest(line)) + std::log(factor));
}

/// The number of tokens at most so many standard deviations below the best.
inline std::size_t count_near(std::span<float const> line, double deviations) {
  auto const best = static_cast<double>(largest(line));
  constexpr std::size_t lanes = 8;  // separate sums, so that compilers vectorise
  std::array<double, lanes> sums{}, squares{}, counts{};
  auto const add = [&](std::size_t lane, float x) {
    auto const counted = x > LineScan::lowest ? 1.0 : 0.0;
    auto const below = x > LineScan::lowest ? static_cast<double>(x) - best : 0.0;
    sums[lane] += below, squares[lane] += below * below, counts[lane] += counted;
  };
  std::size_t i = 0;
  for (; i + lanes <= line.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) add(lane, line[i + lane]);
  for (; i < line.size(); ++i) add(i % lanes, line[i]);
  double sum = 0, square = 0, count = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) sum += sums[lane], square += squares[lane], count += counts[lane];
  if (count == 0) return 0;
  auto const mean = sum / count;
  return count_from(line, best - deviations * std::sqrt((std::max)(0.0, square / count - mean * mean)));
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
