// SPDX-License-Identifier: Apache-2.0
/// \file
/// Frames of CTC as log-probabilities in double precision.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

inline constexpr auto log_zero = -std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b)).
inline double log_sum(double a, double b) {
  auto const most = (std::max)(a, b), least = (std::min)(a, b);
  return least == log_zero ? most : most + std::log1p(std::exp(least - most));
}

/// The logarithms of the probabilities of the labels of some frames, [frames, labels]. Logits are normalised line by
/// line.
class CtcLines {
 public:
  /// Keeps a view of the frames.
  /// \throws std::invalid_argument  naming the frame, if one holds a NaN or +infinity, or only -infinity
  template <class T>
  explicit CtcLines(Scores<T> const& frames)
      : at_([](void const* data, std::ptrdiff_t i) { return static_cast<double>(static_cast<T const*>(data)[i]); }),
        data_(frames.data),
        rows_(frames.rows),
        columns_(frames.columns),
        stride_(frames.stride) {
    norms_.reserve(static_cast<std::size_t>(rows_));
    for (std::ptrdiff_t t = 0; t < rows_; ++t) {
      auto most = log_zero;
      for (std::ptrdiff_t v = 0; v < columns_; ++v) {
        auto const x = raw(t, v);
        require(x < HUGE_VAL, "frame " + std::to_string(t), x, "holds a NaN or +infinity");
        most = (std::max)(most, x);
      }
      require(most > log_zero, "frame " + std::to_string(t), "-infinity", "every label is impossible");
      double sum = 0;
      for (std::ptrdiff_t v = 0; frames.kind == Kind::logits && v < columns_; ++v) sum += std::exp(raw(t, v) - most);
      norms_.push_back(frames.kind == Kind::logits ? most + std::log(sum) : 0);
    }
  }

  std::ptrdiff_t rows() const { return rows_; }
  std::ptrdiff_t columns() const { return columns_; }
  double log_prob(std::ptrdiff_t frame, Token label) const {
    return raw(frame, label) - norms_[static_cast<std::size_t>(frame)];
  }

 private:
  double raw(std::ptrdiff_t t, std::ptrdiff_t v) const { return at_(data_, t * stride_ + v); }

  double (*at_)(void const*, std::ptrdiff_t);
  void const* data_;
  std::ptrdiff_t rows_, columns_, stride_;
  std::vector<double> norms_;  // [frames]
};

/// Refuses labels that no frame has.
SLUICE_LAZY void check_ctc(CtcLines const& lines, std::span<Token const> labels, Token blank) {
  auto const inside = [&](Token label) { return label >= 0 && label < lines.columns(); };
  auto const rule = "the frames have " + std::to_string(lines.columns()) + " labels";
  require(lines.rows() == 0 || inside(blank), "blank", blank, rule);
  for (auto const label : labels) {
    require(lines.rows() == 0 || inside(label), "label", label, rule);
    require(label != blank, "label", label, "is the blank");
  }
}

}  // namespace sluice::inline v0::detail
