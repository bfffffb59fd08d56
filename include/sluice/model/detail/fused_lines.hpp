// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines of a model, to which those of a language model are added.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

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

/// Log-probabilities [lines, V]. Logits are normalised first. A line that holds a NaN or +infinity in any of the answers becomes NaN as
/// a whole. A line's result does not depend on the other lines, bit for bit. Allocates nothing once it has seen its largest matrix.
class FusedLines {
 public:
  template <class = void>
  void begin(std::ptrdiff_t lines, std::ptrdiff_t columns) {
    lines_ = lines, columns_ = columns;
    stride_ = (columns + unit - 1) / unit * unit;
    if (std::ssize(sum_) < lines * stride_) sum_.resize(static_cast<std::size_t>(lines * stride_));
  }

  /// sum = log p + bonus.
  /// \param bonus  [V], or empty: 0
  /// \throws std::logic_error  if the scores are not [lines, V]
  template <class T>
  void add_model(Scores<T> const& scores, std::span<float const> bonus) {
    check(scores, columns_);
    for (std::ptrdiff_t i = 0; i < lines_; ++i) {
      auto const line = as_float(scores[i]);
      auto* const sum = sum_.data() + i * stride_;
      auto const norm = scan(line, scores.kind, sum);
      if (!norm.valid) continue;
      each([&](std::ptrdiff_t v, auto load) { return (load(line.data() + v) - norm.maximum) - norm.rest; }, sum);
      for (std::size_t v = 0; v < bonus.size(); ++v) sum[v] += bonus[v];
    }
  }

  /// sum = sum + weight * (log p of the token that is mapped to + extra).
  /// \param tokens   [V] of columns, < 0: impossible; empty: the same
  /// \param extra    [V]
  /// \param columns  of the scores
  /// \throws std::logic_error  if the scores are not [lines, columns]
  template <class T>
  void add_language(Scores<T> const& scores, double weight, std::span<Token const> tokens, std::span<float const> extra,
                    std::ptrdiff_t columns) {
    check(scores, columns);
    auto const factor = static_cast<float>(weight);
    for (std::ptrdiff_t i = 0; i < lines_; ++i) {
      auto* const sum = sum_.data() + i * stride_;
      if (std::isnan(sum[0])) continue;
      auto const line = as_float(scores[i]);
      auto const norm = scan(line, scores.kind, sum);
      if (!norm.valid) continue;
      if (tokens.empty()) {
        each(
            [&](std::ptrdiff_t v, auto load) {
              auto const log_prob = (load(line.data() + v) - norm.maximum) - norm.rest;
              auto const before = load(sum + v);
              return log_prob > LineScan::lowest ? before + factor * log_prob : log_prob;
            },
            sum);
        continue;
      }
      for (std::size_t v = 0; v < tokens.size(); ++v) {
        auto const token = tokens[v];
        auto const log_prob = token < 0
                                  ? LineScan::lowest
                                  : ((line[static_cast<std::size_t>(token)] - norm.maximum) - norm.rest) + extra[v];
        sum[v] = log_prob > LineScan::lowest ? sum[v] + factor * log_prob : LineScan::lowest;
      }
    }
  }

  Scores<float> scores(Kind kind) const { return {{sum_.data(), lines_, columns_, stride_}, kind}; }

 private:
  static constexpr std::ptrdiff_t unit = 16;

  /// log p = (score - maximum) - rest.
  struct Norm {
    bool valid = false;
    float maximum = 0, rest = 0;
  };

  template <class T>
  void check(Scores<T> const& scores, std::ptrdiff_t columns) const {
    if (scores.rows != lines_ || scores.columns != columns)
      throw std::logic_error("sluice: asked for scores [" + std::to_string(lines_) + ", " + std::to_string(columns) +
                             "], got [" + std::to_string(scores.rows) + ", " + std::to_string(scores.columns) + "]");
  }
  /// Fills `sum` with NaN if the line is invalid.
  template <class = void>
  Norm scan(std::span<float const> line, Kind kind, float* sum) {
    scan_.begin(0, kind == Kind::logits);
    scan_.run(line);
    if (!scan_.valid()) {
      std::fill_n(sum, columns_, std::numeric_limits<float>::quiet_NaN());
      return {};
    }
    if (kind != Kind::logits || !(scan_.maximum() > LineScan::lowest)) return {.valid = true};
    return {true, scan_.maximum(), static_cast<float>(scan_.log_sum())};
  }
  /// sum[v] = f(v, how to load from v on), whole vectors at a time; the same operations for the last few.
  template <class F>
  void each(F&& f, float* sum) const {
    std::ptrdiff_t v = 0;
    for (; v + simd::lanes <= columns_; v += simd::lanes)
      simd::store(sum + v, f(v, [](float const* from) { return simd::load(from); }));
    for (; v < columns_; ++v) sum[v] = f(v, [](float const* from) { return *from; });
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
  AlignedVector<float> sum_;
  std::vector<float> converted_;
  LineScan scan_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
