// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tails of the distributions of a detector's score.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sluice::inline v0::detail {

/// log(n!), with a relative error near that of a double.
SLUICE_LAZY double log_factorial(std::int64_t n) {
  if (n < 32) {
    double product = 1;
    for (std::int64_t i = 2; i <= n; ++i) product *= static_cast<double>(i);
    return std::log(product);
  }
  auto const x = static_cast<double>(n) + 1;  // Stirling's series for Gamma(x)
  auto const y = 1 / (x * x);
  return (x - 0.5) * std::log(x) - x + 0.91893853320467274178 +
         (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y / 1188)))) / x;
}

/// P(X >= x) of a sum of `shape` independent exponential variables of mean 1 (a Gamma variable): the probability that a
/// Poisson variable of mean x is below `shape`. O(shape).
SLUICE_LAZY double gamma_tail(std::int64_t shape, double x) {
  if (shape <= 0) return x > 0 ? 0 : 1;
  if (!(x > 0)) return 1;
  auto const log_x = std::log(x);
  auto const log_term = [&](std::int64_t k) { return static_cast<double>(k) * log_x - x - log_factorial(k); };
  // The terms rise up to k = x and fall afterwards: sum from the largest down, on the side where they fall.
  if (static_cast<double>(shape) <= x) {
    double sum = 0, term = 1;
    for (auto k = shape - 1; k >= 0 && term > 1e-18 * sum; --k) sum += term, term *= static_cast<double>(k) / x;
    return (std::min)(1.0, std::exp(log_term(shape - 1) + std::log(sum)));
  }
  double sum = 0, term = 1;
  for (auto k = shape; term > 1e-18 * sum; ++k) sum += term, term *= x / static_cast<double>(k + 1);
  return (std::max)(0.0, 1 - std::exp(log_term(shape) + std::log(sum)));
}

/// P(X >= successes) of a binomial variable. O(trials).
SLUICE_LAZY double binomial_tail(std::int64_t successes, std::int64_t trials, double probability) {
  if (successes <= 0) return 1;
  if (successes > trials) return 0;
  auto const odds = probability / (1 - probability);
  auto const log_term = [&](std::int64_t k) {
    return log_factorial(trials) - log_factorial(k) - log_factorial(trials - k) +
           static_cast<double>(k) * std::log(probability) + static_cast<double>(trials - k) * std::log1p(-probability);
  };
  double sum = 0, term = 1;
  if (static_cast<double>(successes) >= static_cast<double>(trials) * probability) {
    for (auto k = successes; k <= trials && term > 1e-18 * sum; ++k)
      sum += term, term *= odds * static_cast<double>(trials - k) / static_cast<double>(k + 1);
    return (std::min)(1.0, std::exp(log_term(successes) + std::log(sum)));
  }
  for (auto k = successes - 1; k >= 0 && term > 1e-18 * sum; --k)
    sum += term, term *= static_cast<double>(k) / (odds * static_cast<double>(trials - k + 1));
  return (std::max)(0.0, 1 - std::exp(log_term(successes - 1) + std::log(sum)));
}

/// P(w X + (1 - w) Y >= score) of two independent Gamma variables of that shape, w in (0, 1). With a >= b the two weights, a
/// Gamma variable of scale a is one of scale b whose shape grew by a negative binomial number (failures before `shape`
/// successes of probability b / a). O(shape a / b).
SLUICE_LAZY double mixed_gamma_tail(std::int64_t shape, double weight, double score) {
  if (shape <= 0) return score > 0 ? 0 : 1;
  auto const greater = (std::max)(weight, 1 - weight), lesser = (std::min)(weight, 1 - weight);
  auto const chance = lesser / greater, x = score / lesser;
  if (!(x > 0)) return 1;
  auto const n = static_cast<double>(shape);
  auto log_chance = n * std::log(chance);  // of k more
  auto const log_x = std::log(x), log_fail = std::log1p(-chance);
  auto tail = gamma_tail(2 * shape, x);
  auto log_step = static_cast<double>(2 * shape) * log_x - x - log_factorial(2 * shape);  // to the next tail
  double sum = 0;
  for (std::int64_t k = 0;; ++k) {
    auto const i = static_cast<double>(k);
    auto const likely = std::exp(log_chance);
    sum += likely * tail;
    auto const ratio = (n + i) / (i + 1) * (1 - chance);  // of the next chance to this one
    if (ratio < 1 && likely <= 1e-17 * sum * (1 - ratio)) break;
    if (!(chance < 1)) break;
    log_chance += std::log((n + i) / (i + 1)) + log_fail;
    tail = (std::min)(1.0, tail + std::exp(log_step));
    log_step += log_x - std::log(static_cast<double>(2 * shape + k + 1));
  }
  return (std::min)(1.0, sum);
}

}  // namespace sluice::inline v0::detail
