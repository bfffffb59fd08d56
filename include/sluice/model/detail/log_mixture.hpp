// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums of distributions: of their probabilities, or of their logarithms.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/simd/log_add.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Sums the answers of several models to the same rows, in one matrix of log-probabilities [lines, V].
///
/// Logits are normalised first, in one pass over each line. A line that holds a NaN or +infinity in any of the answers
/// becomes NaN as a whole. A line without any possible token (all -infinity) stays as it is. A line's result does not
/// depend on the other lines, bit for bit. Allocates nothing once it has seen its largest matrix.
class LogMixture {
 public:
  /// Begins a sum for `lines` lines of V = `columns` scores.
  SLUICE_LAZY void begin(std::ptrdiff_t lines, std::ptrdiff_t columns) {
    lines_ = lines, columns_ = columns, first_ = true;
    stride_ = (columns + unit - 1) / unit * unit;
    if (std::ssize(sum_) < lines * stride_) sum_.resize(static_cast<std::size_t>(lines * stride_));
  }

  /// sum = log(exp(sum) + weight * p), for weight > 0. The error is a few units in the last place of the larger
  /// logarithm, for improbable tokens too.
  /// \throws std::logic_error  if the scores are not [lines, V]
  template <class T>
  void add_probabilities(Scores<T> const& scores, double weight) {
    auto const log_weight = std::log(weight);
    add(scores, [&](float const* line, float maximum, double rest, float* sum) {
      auto const less = static_cast<float>(rest - log_weight);
      auto const mix = [&](simd::Vec x, simd::Vec before) {
        auto const term = (x - maximum) - less;
        return first_ ? term : simd::log_add(before, term);
      };
      std::ptrdiff_t v = 0;
      for (; v + simd::lanes <= columns_; v += simd::lanes)
        simd::store(sum + v, mix(simd::load(line + v), simd::load(sum + v)));
      for (; v < columns_; ++v) sum[v] = mix(simd::broadcast(line[v]), simd::broadcast(sum[v]))[0];
    });
  }

  /// sum = sum + weight * log p. A token that is impossible in one of the distributions is impossible in the sum,
  /// whatever the sign of its weight.
  /// \throws std::logic_error  if the scores are not [lines, V]
  template <class T>
  void add_log_probs(Scores<T> const& scores, double weight) {
    auto const factor = static_cast<float>(weight);
    add(scores, [&](float const* line, float maximum, double rest, float* sum) {
      auto const less = static_cast<float>(rest);
      for (std::ptrdiff_t v = 0; v < columns_; ++v) {
        auto const log_prob = (line[v] - maximum) - less;
        auto const term = log_prob > LineScan::lowest ? factor * log_prob : LineScan::lowest;
        sum[v] = first_ ? term : sum[v] + term;
      }
    });
  }

  /// The sum so far [lines, V]; valid until begin().
  Scores<float> scores(Kind kind) const { return {{sum_.data(), lines_, columns_, stride_}, kind}; }

 private:
  // every line begins at a cache line, so the order of summation is the same for all
  static constexpr std::ptrdiff_t unit = 16;

  /// Calls mix(line, maximum, rest, sum) for all lines; log p = (line - maximum) - rest.
  template <class T, class Mix>
  void add(Scores<T> const& scores, Mix const& mix) {
    if (scores.rows != lines_ || scores.columns != columns_)
      throw std::logic_error("sluice: asked for scores [" + std::to_string(lines_) + ", " + std::to_string(columns_) +
                             "], got [" + std::to_string(scores.rows) + ", " + std::to_string(scores.columns) + "]");
    for (std::ptrdiff_t i = 0; i < lines_; ++i) {
      auto* const sum = sum_.data() + i * stride_;
      if (!first_ && std::isnan(sum[0])) continue;
      auto const line = as_float(scores[i]);
      scan_.begin(0, scores.kind == Kind::logits);
      scan_.run(line);
      if (!scan_.valid()) {
        std::fill_n(sum, columns_, std::numeric_limits<float>::quiet_NaN());
        continue;
      }
      auto const normalise = scores.kind == Kind::logits && scan_.maximum() > LineScan::lowest;
      auto const maximum = normalise ? scan_.maximum() : 0.0f;
      auto const rest = normalise ? scan_.log_sum() : 0.0;
      mix(line.data(), maximum, rest, sum);
    }
    first_ = false;
  }

  template <class T>
  std::span<float const> as_float(std::span<T const> line) {
    if constexpr (std::is_same_v<T, float>) {
      return line;
    } else {
      converted_.resize(line.size());
      std::transform(line.begin(), line.end(), converted_.begin(), [](T x) { return static_cast<float>(x); });
      return converted_;
    }
  }

  std::ptrdiff_t lines_ = 0, columns_ = 0, stride_ = 0;
  bool first_ = true;
  AlignedVector<float> sum_;
  std::vector<float> converted_;
  LineScan scan_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
