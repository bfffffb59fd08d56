// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a guess costs on this machine, learnt from the steps.
#pragma once

#include <Eigen/Core>
#include <Eigen/LU>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0::detail {

/// Learns how long a step takes: fixed + each * sentences + guess * guesses seconds, by least squares in which the past
/// fades. Begins with a belief that few steps correct.
class StepTimes {
 public:
  /// \param seconds  of a step and of making the guesses that it verified
  void note(double seconds, double sentences, double guesses) {
    if (!(seconds > 0) || !(sentences > 0)) return;
    if (steps_++ == 0) believe(seconds, sentences);
    Eigen::Vector3d const x(1, sentences, guesses);
    auto const expected = std::max(x.dot(times_), 0.1 * believed_[0]);
    auto const y = std::min(seconds, 2 * expected);  // more: somebody else had the processor
    auto const weight = 1 / (y * y);                 // relative errors count
    products_ = fade * products_ + weight * x * x.transpose();
    sums_ = fade * sums_ + weight * y * x;
    times_ = (products_ + belief_).inverse() * (sums_ + belief_ * believed_);  // 3 x 3: in closed form
  }

  /// What a guess for each sentence adds to a step of so many, as a part of it; < 0: not known.
  double added(double sentences) const {
    if (steps_ == 0) return -1;
    auto const plain = std::max(times_[0] + times_[1] * sentences, 0.05 * believed_.sum());
    return std::clamp(times_[2] * sentences / plain, 0.01, 10.0);
  }

  /// Whether it is time to guess although it did not pay lately.
  bool explore() const { return steps_ % 128 == 127; }

 private:
  static constexpr double fade = 0.99;

  void believe(double seconds, double sentences) {
    believed_ = {0.75 * seconds, 0.25 * seconds / sentences, 0.25 * seconds / sentences};
    auto const weight = 0.1 / (seconds * seconds);
    belief_ = Eigen::Vector3d(weight, weight * sentences * sentences, weight * sentences * sentences).asDiagonal();
    times_ = believed_;
  }

  Eigen::Matrix3d products_ = Eigen::Matrix3d::Zero(), belief_ = Eigen::Matrix3d::Zero();
  Eigen::Vector3d sums_ = Eigen::Vector3d::Zero(), believed_ = Eigen::Vector3d::Zero(),
                  times_ = Eigen::Vector3d::Zero();
  std::uint64_t steps_ = 0;
};

}  // namespace sluice::inline v0::detail
