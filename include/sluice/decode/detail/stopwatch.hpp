// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the time of a step goes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/decode/detail/interfaces.hpp>

#include <chrono>

namespace sluice::inline v0::detail {

/// Adds the time since its last call to one of several sums.
class Stopwatch final : public AnyStopwatch {
 public:
  void restart() { last_ = Clock::now(); }
  void book(double& account) override {
    auto const now = Clock::now();
    account += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace sluice::inline v0::detail
