// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random sentences with the lengths of the papers' test sets.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>

#include "script.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace simulation {

/// Source lengths are log-normal. The output has `ratio` times as many tokens, times a log-normal factor of mean 1, and
/// eos; at most `cap` times the source, as in amun, and `limit`. Some never find their end and run to that bound.
///
/// Log-normal, because the top-up paper reports more than mean and deviation: of 128 sentences of OpenSubtitles, at
/// most 7 are left in half of the steps. Gamma and negative binomial distributions have too thin a tail for that (37 to
/// 40 % of the steps). The paper does not give `noise`: with 0.12, the batch is full in 42 % of the steps on Europarl.
struct Traffic {
  std::string_view name = "europarl";
  double mean = 26.3;       ///< source tokens; > 0
  double deviation = 14.9;  ///< of the source tokens; >= 0
  double ratio = 1;         ///< output tokens for one of the source
  double noise = 0.12;      ///< standard deviation of the logarithm of that
  double endless = 0;       ///< part of the sentences that run to the bound
  double cap = 3;           ///< bound of the output: tokens per source token,
  double limit = 1e6;       ///< and in total

  /// Throws std::invalid_argument naming the member and its value.
  void check() const {
    auto const positive = [](double x) { return x > 0 && std::isfinite(x); };
    sluice::require(positive(mean), "mean", mean, "must be more than 0");
    sluice::require(deviation >= 0 && std::isfinite(deviation), "deviation", deviation, "must be 0 or more");
    sluice::require(positive(ratio), "ratio", ratio, "must be more than 0");
    sluice::require(noise >= 0 && noise <= 3, "noise", noise, "must be between 0 and 3");
    sluice::require(endless >= 0 && endless <= 1, "endless", endless, "must be between 0 and 1");
    sluice::require(positive(cap), "cap", cap, "must be more than 0");
    sluice::require(limit >= 1 && limit <= 1e6, "limit", limit, "must be between 1 and 1000000");
  }
};

/// The test sets of the top-up paper (table 1), and newstest in the pieces of Yang et al. 2020. For newstest, that
/// paper gives only the mean output (table 5: 3,967,200 expansions of 3,004 beams of 50). The spread is that of
/// Europarl, 200 is fairseq's limit; `noise` and `endless` are chosen so that its tables 1 and 4 come out: VAR-BATCH
/// can take longer than VAR-STREAM in fewer steps only through steps with few rows at great lengths.
inline constexpr std::array<Traffic, 3> test_sets{
    {{.name = "europarl"},
     {.name = "opensubtitles", .mean = 9.4, .deviation = 6.1},
     {.name = "wmt", .mean = 25.3, .deviation = 14.3, .noise = 0.15, .endless = 0.0005, .cap = 1e6, .limit = 200}}};

/// The width of grown beams.
struct Widths {
  double mean = 5;                ///< >= 1
  double spread = 0;              ///< standard deviation over the mean, between sentences (log-normal)
  std::int32_t most = 1000;       ///< k
  std::int32_t growth = 1 << 15;  ///< M: children of one hypothesis

  /// Throws std::invalid_argument naming the member and its value.
  void check() const {
    sluice::require(mean >= 1 && mean <= 1000, "width", mean, "must be between 1 and 1000");
    sluice::require(spread >= 0 && spread <= 10, "width-spread", spread, "must be between 0 and 10");
    sluice::require(most >= 1, "most", most, "must be at least 1");
    sluice::require(growth >= 2, "growth", growth, "must be at least 2");
  }
};

/// A standard normal number that belongs to (key, which).
inline double normal(std::uint64_t key, std::int32_t which) {
  auto const radius = std::sqrt(-2 * std::log(sluice::uniform(key, 2 * which)));
  return radius * std::cos(2 * std::numbers::pi * sluice::uniform(key, 2 * which + 1));
}

/// `mean` times a log-normal factor of mean 1 and that coefficient of variation.
inline double log_normal(double mean, double variation, double normal) {
  auto const variance = std::log1p(variation * variation);
  return mean * std::exp(std::sqrt(variance) * normal - variance / 2);
}

/// `count` sentences. The i-th depends on the seed and i alone.
inline Scripts draw(Traffic const& traffic, Widths const& widths, std::size_t count, std::uint64_t seed) {
  traffic.check(), widths.check();
  constexpr double longest = 1e6;
  auto const whole = [](double x, double least, double most) {
    return static_cast<std::int32_t>(std::clamp(std::round(x), least, std::max(least, most)));
  };
  auto const half_variance = traffic.noise * traffic.noise / 2;
  // Endless sentences come at equal distances: at random, one test set might have none and the next three.
  auto const start =
      traffic.endless > 0 ? sluice::uniform(sluice::derive(seed, std::uint64_t{1} << 63), 0) / traffic.endless : 0.0;
  Scripts scripts;
  scripts.all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto const key = sluice::derive(seed, i);
    Script s;
    s.source = whole(log_normal(traffic.mean, traffic.deviation / traffic.mean, normal(key, 0)), 1, longest);
    auto const source = static_cast<double>(s.source);
    auto const factor = traffic.ratio * std::exp(traffic.noise * normal(key, 1) - half_variance);
    auto const bound = std::min(traffic.cap * source, traffic.limit);
    auto const nth = static_cast<double>(i) + start;
    auto const endless = std::floor((nth + 1) * traffic.endless) > std::floor(nth * traffic.endless);
    s.output = whole(endless ? bound : std::round(source * factor) + 1, 1, bound);
    s.width = whole(widths.spread > 0 ? log_normal(widths.mean, widths.spread, normal(key, 2)) : widths.mean, 1,
                    static_cast<double>(widths.most));
    s.growth = widths.growth;
    scripts.all.push_back(s);
  }
  return scripts;
}

}  // namespace simulation
