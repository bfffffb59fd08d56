// SPDX-License-Identifier: Apache-2.0
/// \file
/// The probabilities of texts that begin with a prefix, under CTC.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/ctc_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The frames of one utterance, with their probabilities.
struct CtcUtterance {
  CtcLines lines;
  std::vector<double> probabilities;  // [frames, columns]

  template <class T>
  explicit CtcUtterance(Scores<T> const& frames) : lines(frames) {
    probabilities.reserve(static_cast<std::size_t>(lines.rows() * lines.columns()));
    for (std::ptrdiff_t t = 0; t < lines.rows(); ++t)
      for (std::ptrdiff_t v = 0; v < lines.columns(); ++v)
        probabilities.push_back(std::exp(lines.log_prob(t, static_cast<Token>(v))));
  }
};

/// A prefix of texts. All numbers are logarithms.
struct CtcPrefix {
  std::shared_ptr<CtcPrefix const> parent;  // null: the empty one
  Token label = -1;
  /// [frames + 1]: the probability that the first t frames write the prefix, and the last of them is a label, or a
  /// blank.
  std::vector<double> in_label, in_blank;
  double total = 0;  // of all texts that begin so
};

/// The empty prefix.
SLUICE_LAZY std::shared_ptr<CtcPrefix const> ctc_empty(CtcUtterance const& utterance, Token blank) {
  auto made = std::make_shared<CtcPrefix>();
  auto const frames = static_cast<std::size_t>(utterance.lines.rows());
  made->in_label.assign(frames + 1, log_zero), made->in_blank.assign(frames + 1, 0);
  for (std::size_t t = 1; t <= frames; ++t)
    made->in_blank[t] = made->in_blank[t - 1] + utterance.lines.log_prob(static_cast<std::ptrdiff_t>(t) - 1, blank);
  return made;
}

/// The probability that the first t frames write the prefix, and frame t may begin another `label`.
inline double ctc_open(CtcPrefix const& prefix, Token label, std::size_t t) {
  return label == prefix.label ? prefix.in_blank[t] : log_sum(prefix.in_blank[t], prefix.in_label[t]);
}

/// The prefix and one label more. O(frames).
SLUICE_LAZY std::shared_ptr<CtcPrefix const>
ctc_extend(CtcUtterance const& utterance, std::shared_ptr<CtcPrefix const> const& parent, Token label, Token blank) {
  auto made = std::make_shared<CtcPrefix>();
  auto const frames = static_cast<std::size_t>(utterance.lines.rows());
  made->parent = parent, made->label = label, made->total = log_zero;
  made->in_label.assign(frames + 1, log_zero), made->in_blank.assign(frames + 1, log_zero);
  if (label < 0 || label >= utterance.lines.columns()) return made;
  for (std::size_t t = 1; t <= frames; ++t) {
    auto const frame = static_cast<std::ptrdiff_t>(t) - 1;
    auto const begins = ctc_open(*parent, label, t - 1) + utterance.lines.log_prob(frame, label);
    made->total = log_sum(made->total, begins);
    made->in_label[t] = log_sum(made->in_label[t - 1] + utterance.lines.log_prob(frame, label), begins);
    made->in_blank[t] = log_sum(made->in_blank[t - 1], made->in_label[t - 1]) + utterance.lines.log_prob(frame, blank);
  }
  return made;
}

/// The probability of the prefix itself as a text.
inline double ctc_whole(CtcPrefix const& prefix) { return log_sum(prefix.in_label.back(), prefix.in_blank.back()); }

/// Sums, for every label, the probability of all texts that go on with it. O(frames * labels): one multiplication and
/// one addition each.
class CtcContinuations {
 public:
  /// The logarithms, [columns]; that of blank means nothing. Valid until the next call.
  SLUICE_LAZY std::span<double const> of(CtcUtterance const& utterance, CtcPrefix const& prefix) {
    auto const& lines = utterance.lines;
    auto const columns = static_cast<std::size_t>(lines.columns()), frames = static_cast<std::size_t>(lines.rows());
    open_.resize(frames), sums_.assign(columns, 0);
    auto most = log_zero;
    for (std::size_t t = 0; t < frames; ++t) most = (std::max)(most, open_[t] = ctc_open(prefix, -2, t));
    for (std::size_t t = 0; t < frames && most > log_zero; ++t) {
      auto const weight = std::exp(open_[t] - most);
      if (weight <= 0) continue;
      auto const* const line = utterance.probabilities.data() + t * columns;
      for (std::size_t v = 0; v < columns; ++v) sums_[v] += weight * line[v];
    }
    for (std::size_t v = 0; v < columns; ++v) {
      auto const label = static_cast<Token>(v);
      if (label != prefix.label && sums_[v] > smallest) {
        sums_[v] = most + std::log(sums_[v]);
        continue;
      }
      auto sum = log_zero;  // the same label again needs a blank; and what is too small for the sum above
      for (std::size_t t = 0; t < frames; ++t)
        sum = log_sum(sum, ctc_open(prefix, label, t) + lines.log_prob(static_cast<std::ptrdiff_t>(t), label));
      sums_[v] = sum;
    }
    return sums_;
  }

 private:
  static constexpr double smallest = 1e-250;
  std::vector<double> open_, sums_;
};

}  // namespace sluice::inline v0::detail
