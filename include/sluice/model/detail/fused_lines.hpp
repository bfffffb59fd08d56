// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines of a model, to which those of a language model are added.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
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

/// Log-probabilities [lines, V]. Logits are normalised first. A line that holds a NaN or +infinity in any of the answers becomes NaN as
/// a whole. A line's result does not depend on the other lines, bit for bit. Allocates nothing once it has seen its largest matrix.
class FusedLines {
 public:
  SLUICE_LAZY void begin(std::ptrdiff_t lines, std::ptrdiff_t columns) {
    lines_ = lines, columns_ = columns;
    stride_ = (columns + unit - 1) / unit * unit;
    if (std::ssize(sum_) < lines * stride_) sum_.resize(static_cast<std::size_t>(lines * stride_));
  }

  /// sum = log p + bonus, without a language model.
  /// \param bonus  [V], or empty: 0
  /// \throws std::logic_error  if the scores are not [lines, V]
  template <class T>
  void add(Scores<T> const& model, std::span<float const> bonus) {
    check(model, columns_);
    for (std::ptrdiff_t i = 0; i < lines_; ++i) {
      auto const line = as_float(model[i], converted_);
      auto* const sum = sum_.data() + i * stride_;
      auto const norm = scan(line, model.kind);
      each([&](std::ptrdiff_t v, auto load) { return norm(load(line.data() + v)); }, bonus, norm.valid, sum);
    }
  }

  /// How a language model's scores are added.
  struct Addition {
    float weight = 0;
    std::span<float const> bonus{};   ///< [V], or empty: 0
    std::span<Token const> tokens{};  ///< [V]: the language model's, < 0: impossible; empty: the same
    std::span<float const> extra{};   ///< [V]: added to log p of the language model's tokens, if there are `tokens`
    std::ptrdiff_t columns = 0;       ///< of the language model's scores
  };

  /// sum = log p + bonus + weight * (log p of the language model's token + extra).
  /// \throws std::logic_error  if the scores are not [lines, V] and [lines, columns]
  template <class T, class U>
  void add(Scores<T> const& model, Scores<U> const& language, Addition const& how) {
    check(model, columns_), check(language, how.columns);
    for (std::ptrdiff_t i = 0; i < lines_; ++i) {
      auto const line = as_float(language[i], other_converted_);
      add_line(i, model, line, scan(line, language.kind), how);
    }
  }
  /// The same for one line of log-probabilities without NaN and +infinity.
  /// \param language  [columns]
  template <class T>
  void add_line(std::ptrdiff_t i, Scores<T> const& model, std::span<float const> language, Addition const& how) {
    add_line(i, model, language, Norm(), how);
  }
  /// \throws std::logic_error  if the scores are not [lines, columns]
  template <class T>
  void check(Scores<T> const& scores, std::ptrdiff_t columns) const {
    if (scores.rows != lines_ || scores.columns != columns)
      throw std::logic_error("sluice: asked for scores [" + std::to_string(lines_) + ", " + std::to_string(columns) +
                             "], got [" + std::to_string(scores.rows) + ", " + std::to_string(scores.columns) + "]");
  }

  Scores<float> scores(Kind kind) const { return {{sum_.data(), lines_, columns_, stride_}, kind}; }

 private:
  static constexpr std::ptrdiff_t unit = 16;

  /// log p = (score - maximum) - rest.
  struct Norm {
    bool valid = true;
    float maximum = 0, rest = 0;
    template <class X>
    X operator()(X score) const {
      return (score - maximum) - rest;
    }
  };

  template <class T>
  void add_line(std::ptrdiff_t i, Scores<T> const& model, std::span<float const> language, Norm const& other,
                Addition const& how) {
    auto const ours = as_float(model[i], converted_);
    auto* const sum = sum_.data() + i * stride_;
    auto const norm = scan(ours, model.kind);
    auto const mix = [&](auto log_prob, auto added) {
      return added > LineScan::lowest ? log_prob + how.weight * added : added;
    };
    if (how.tokens.empty()) {
      each([&](std::ptrdiff_t v,
               auto load) { return mix(norm(load(ours.data() + v)), other(load(language.data() + v))); },
           how.bonus, norm.valid && other.valid, sum);
      return;
    }
    auto const size = how.tokens.size();
    if (mapped_.size() < size) mapped_.resize(size);
    for (std::size_t v = 0; v < size; ++v) {
      auto const token = how.tokens[v];
      mapped_[v] = token < 0 ? LineScan::lowest : other(language[static_cast<std::size_t>(token)]) + how.extra[v];
    }
    each([&](std::ptrdiff_t v, auto load) { return mix(norm(load(ours.data() + v)), load(mapped_.data() + v)); },
         how.bonus, norm.valid && other.valid, sum);
  }
  SLUICE_LAZY Norm scan(std::span<float const> line, Kind kind) {
    if (kind == Kind::log_probs) return {.valid = possible(line)};
    scan_.begin(0, true);
    scan_.run(line);
    if (!scan_.valid() || !(scan_.maximum() > LineScan::lowest)) return {.valid = scan_.valid()};
    return {true, scan_.maximum(), static_cast<float>(scan_.log_sum())};
  }
  /// Whether there is neither a NaN nor +infinity.
  SLUICE_LAZY static bool possible(std::span<float const> line) {
    constexpr auto highest = (std::numeric_limits<float>::max)();
    auto const size = std::ssize(line);
    auto good = true;
    std::ptrdiff_t v = 0;
    auto most = simd::broadcast(0) <= simd::broadcast(highest);  // all true
    for (; v + simd::lanes <= size; v += simd::lanes) most &= simd::load(line.data() + v) <= simd::broadcast(highest);
    for (int i = 0; i < simd::lanes; ++i) good = good && most[i] != 0;
    for (; v < size; ++v) good = good && line[static_cast<std::size_t>(v)] <= highest;
    return good;
  }
  /// sum[v] = f(v, how to load from v on) + bonus[v], whole vectors at a time; the same operations for the last few. NaN if the line
  /// is not valid.
  template <class F>
  void each(F&& f, std::span<float const> bonus, bool valid, float* sum) const {
    if (!valid) {
      std::fill_n(sum, columns_, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    std::ptrdiff_t v = 0;
    for (; v + simd::lanes <= columns_; v += simd::lanes)
      simd::store(sum + v, f(v, [](float const* from) { return simd::load(from); }));
    for (; v < columns_; ++v) sum[v] = f(v, [](float const* from) { return *from; });
    for (std::size_t w = 0; w < bonus.size(); ++w) sum[w] += bonus[w];
  }
  template <class T>
  static std::span<float const> as_float(std::span<T const> line, std::vector<float>& converted) {
    if constexpr (std::is_same_v<T, float>) {
      return line;
    } else {
      converted.resize(line.size());
      std::transform(line.begin(), line.end(), converted.begin(), [](T x) { return static_cast<float>(x); });
      return converted;
    }
  }

  std::ptrdiff_t lines_ = 0, columns_ = 0, stride_ = 0;
  AlignedVector<float> sum_;
  std::vector<float> converted_, other_converted_;
  AlignedVector<float> mapped_;  // a language model's line, in the model's tokens
  LineScan scan_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
