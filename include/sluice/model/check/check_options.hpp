// SPDX-License-Identifier: Apache-2.0
/// \file
/// How Checked compares lines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <cmath>
#include <cstdint>

namespace sluice::inline v0 {

/// How Checked compares a model with itself.
struct CheckOptions {
  std::int32_t every = 8;   ///< every n-th step, the first included; 0: never
  std::int32_t rows = 1;    ///< so many rows of such a step, drawn; fewer where the same is drawn twice
  double tolerance = 1e-3;  ///< numbers may differ by this times (1 + what was expected); 0: not in one bit
  std::uint64_t seed = 1;   ///< of what is drawn

  void check() const {
    require(every >= 0, "check.every", every, "must not be negative");
    require(rows >= 1, "check.rows", rows, "must be at least 1");
    require(tolerance >= 0 && std::isfinite(tolerance), "check.tolerance", tolerance, "must be a number >= 0");
  }
};

}  // namespace sluice::inline v0
