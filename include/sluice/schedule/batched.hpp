// SPDX-License-Identifier: Apache-2.0
/// \file
/// The usual static batching: fill a batch, decode it to its end, take the next.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Admits `size` sentences when none is left, and steps all of them. Ended sentences take no more rows.
struct Batched {
  std::size_t size = 64;  ///< sentences; >= 1

  void check() const { require(size >= 1, "size", size, "must be at least 1"); }

  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const>) const { return live.empty() ? size : 0; }

  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i) chosen.push_back(static_cast<std::int32_t>(i));
  }
};

}  // namespace sluice::inline v0
