// SPDX-License-Identifier: Apache-2.0
/// \file
/// Learns from the steps what a guess costs on this machine.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0::detail {

/// Learns how long a step takes: fixed + each * sentences + guess * guesses seconds. Least squares with exponential forgetting,
/// and a prior that few steps override.
class StepTimes {
 public:
  /// \param seconds  the time of a step, and of making the guesses that it verified
  template <class = void>
  void note(double seconds, double sentences, double guesses) {
    if (!(seconds > 0) || !(sentences > 0)) return;
    if (steps_++ == 0) believe(seconds, sentences);
    Three const x{1, sentences, guesses};
    auto const expected = (std::max)(x[0] * times_[0] + x[1] * times_[1] + x[2] * times_[2], 0.1 * believed_[0]);
    auto const y = (std::min)(seconds, 2 * expected);  // an outlier: another program had the processor
    auto const weight = 1 / (y * y);                   // relative errors count
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) products_[i][j] = fade * products_[i][j] + weight * x[i] * x[j];
      sums_[i] = fade * sums_[i] + weight * y * x[i];
    }
    solve();
  }

  /// What one guess per sentence adds to a step of so many sentences, as a fraction of the step; < 0: not known.
  template <class = void>
  double added(double sentences) const {
    if (steps_ == 0) return -1;
    auto const plain =
        (std::max)(times_[0] + times_[1] * sentences, 0.05 * (believed_[0] + believed_[1] + believed_[2]));
    return std::clamp(times_[2] * sentences / plain, 0.01, 10.0);
  }

  /// Whether to guess in this step even if guesses did not pay lately.
  bool explore() const { return steps_ % 128 == 127; }

 private:
  using Three = double[3];
  static constexpr double fade = 0.99;

  template <class = void>
  void believe(double seconds, double sentences) {
    auto const weight = 0.1 / (seconds * seconds);
    Three const believed{0.75 * seconds, 0.25 * seconds / sentences, 0.25 * seconds / sentences};
    Three const belief{weight, weight * sentences * sentences, weight * sentences * sentences};
    for (int i = 0; i < 3; ++i) times_[i] = believed_[i] = believed[i], belief_[i] = belief[i];
  }

  /// times_: (products_ + belief_ on the diagonal) times_ = sums_ + belief_ believed_, by Cramer's rule. The matrix is
  /// symmetric and positive definite.
  template <class = void>
  void solve() {
    Three matrix[3], right;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) matrix[i][j] = products_[i][j] + (i == j ? belief_[i] : 0);
      right[i] = sums_[i] + belief_[i] * believed_[i];
    }
    Three cofactors[3];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        auto const *const a = matrix[(i + 1) % 3], *const b = matrix[(i + 2) % 3];
        cofactors[i][j] = a[(j + 1) % 3] * b[(j + 2) % 3] - a[(j + 2) % 3] * b[(j + 1) % 3];
      }
    auto const& first = cofactors[0];
    auto const determinant = matrix[0][0] * first[0] + matrix[0][1] * first[1] + matrix[0][2] * first[2];
    for (int i = 0; i < 3; ++i)
      times_[i] = (cofactors[i][0] * right[0] + cofactors[i][1] * right[1] + cofactors[i][2] * right[2]) / determinant;
  }

  Three products_[3] = {}, belief_ = {};  // the belief's matrix is diagonal
  Three sums_ = {}, believed_ = {}, times_ = {};
  std::uint64_t steps_ = 0;
};

}  // namespace sluice::inline v0::detail
