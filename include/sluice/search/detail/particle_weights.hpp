// SPDX-License-Identifier: Apache-2.0
/// \file
/// The weights of a population of particles: how many are effective, systematic resampling, the estimate of log Z and its error.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Weights since the last resampling, as logarithms.
class ParticleWeights {
 public:
  static constexpr auto none = -std::numeric_limits<double>::infinity();

  SLUICE_LAZY void begin(std::size_t count, double log_weight) {
    logs_.assign(count, log_weight);
    founders_.resize(count), parts_.assign(count, 1), by_founder_.resize(count), counts_.resize(count),
        ancestors_.resize(count);
    for (std::size_t i = 0; i < count; ++i) founders_[i] = i;
    before_ = 0;
  }
  std::size_t size() const { return logs_.size(); }
  double operator[](std::size_t i) const { return logs_[i]; }
  void multiply(std::size_t i, double log_factor) { logs_[i] += log_factor; }
  void kill(std::size_t i) { logs_[i] = none; }

  /// The logarithm of the sum of all weights; -infinity if none is left.
  SLUICE_LAZY double log_sum() const {
    auto const most = *std::max_element(logs_.begin(), logs_.end());
    if (!(most > none)) return none;
    double sum = 0;
    for (auto const x : logs_) sum += std::exp(x - most);
    return most + std::log(sum);
  }
  /// The effective number of particles, 1 / sum of squared shares (Kong, Liu and Wong 1994); 0 if no weight is left.
  SLUICE_LAZY double effective() const {
    auto const all = log_sum();
    if (!(all > none)) return 0;
    double squares = 0;
    for (auto const x : logs_) squares += std::exp(2 * (x - all));
    return 1 / squares;
  }

  /// Systematic resampling (Kitagawa 1996): particle i has floor or ceil of size() * w(i) children, size() * w(i) on average, where w(i) is its part of
  /// all weight. A
  /// particle with children is the first of them; further ones take the places of those without, in ascending order. All weights are
  /// equal afterwards. Some weight must be left.
  /// \param uniform  in (0, 1)
  /// \returns        [size()] each place's parent; valid until the next call
  SLUICE_LAZY std::span<std::size_t const> resample(double uniform) {
    auto const all = log_sum();
    auto const n = logs_.size();
    auto last = n;  // of those with weight: it takes what rounding leaves
    while (!(logs_[last - 1] > none)) --last;
    double held = 0;
    std::size_t given = 0;
    for (std::size_t i = 0; i < n; ++i) {
      held += std::exp(logs_[i] - all) * static_cast<double>(n);
      auto const up_to = (std::max)(0.0, std::ceil(held - uniform));
      auto const upper = i + 1 >= last ? n : (std::min)(n, (std::max)(given, static_cast<std::size_t>(up_to)));
      counts_[i] = upper - given, given = upper;
    }
    std::size_t parent = 0;
    auto left = counts_[0];  // children of `parent` beyond its own place
    auto const spare = [&] {
      while (left < 2) left = counts_[++parent];
      --left;
      return parent;
    };
    for (std::size_t i = 0; i < n; ++i) ancestors_[i] = counts_[i] > 0 ? i : spare();
    for (std::size_t i = 0; i < n; ++i) {
      auto const expected = std::exp(logs_[i] - all) * static_cast<double>(n);
      if (expected > 1) parts_[i] *= expected / static_cast<double>(counts_[i]);
    }
    inherit(founders_), inherit(parts_);
    before_ += all - std::log(static_cast<double>(n));
    std::fill(logs_.begin(), logs_.end(), 0.0);
    return ancestors_;
  }
  /// Moves what belongs to particles to their children. A parent that has children keeps its place, so nothing is overwritten that is
  /// still needed.
  template <class T>
  void inherit(std::vector<T>& of_particles) const {
    for (std::size_t i = 0; i < ancestors_.size(); ++i)
      if (ancestors_[i] != i) of_particles[i] = of_particles[ancestors_[i]];
  }

  /// The estimate of log Z. Its exponential is unbiased.
  SLUICE_LAZY double log_z() const { return before_ + log_sum() - std::log(static_cast<double>(logs_.size())); }
  /// An estimate of the standard deviation of log_z(), from one run. Z is a mean over the particles of the first generation
  /// (founders) of the weight that descends from each: its relative variance is s^2 / n over the square of the mean, as if founders
  /// were independent of each other. As in Lee and Whiteley (2018), "Variance estimation in the particle filter", but for systematic
  /// resampling: what rounding adds to a parent's children, or takes from them, does not count (`parts_`). NaN for one particle.
  SLUICE_LAZY double log_z_error() {
    auto const all = log_sum();
    if (!(all > none) || logs_.size() < 2) return std::numeric_limits<double>::quiet_NaN();
    std::fill(by_founder_.begin(), by_founder_.end(), 0.0);
    for (std::size_t i = 0; i < logs_.size(); ++i) by_founder_[founders_[i]] += std::exp(logs_[i] - all) * parts_[i];
    double sum = 0, squares = 0;
    for (auto const x : by_founder_) sum += x, squares += x * x;
    auto const n = static_cast<double>(logs_.size());
    return std::sqrt((std::max)(0.0, (n * squares / (sum * sum) - 1) / (n - 1)));
  }

 private:
  std::vector<double> logs_, by_founder_;
  std::vector<double> parts_;  // what a particle counts for its founder
  std::vector<std::size_t> founders_, counts_, ancestors_;
  double before_ = 0;  // log of the product of mean weights at resamplings
};

}  // namespace sluice::inline v0::detail
