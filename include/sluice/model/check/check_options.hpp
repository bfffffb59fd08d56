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
  std::int32_t every = 8;   ///< every n-th step, including the first; 0: never
  std::int32_t rows = 1;    ///< rows drawn of such a step; fewer if a row is drawn twice
  double tolerance = 1e-3;  ///< allowed difference, times (1 + expected number); 0: must match bit for bit
  std::uint64_t seed = 1;   ///< for the draws

  void check() const {
    require(every >= 0, "check.every", every, "must not be negative");
    require(rows >= 1, "check.rows", rows, "must be at least 1");
    require(tolerance >= 0 && std::isfinite(tolerance), "check.tolerance", tolerance, "must be a number >= 0");
  }
};

}  // namespace sluice::inline v0
