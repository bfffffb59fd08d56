// SPDX-License-Identifier: Apache-2.0
/// \file
/// The script of each sentence: its number of steps, and the width of its beam in each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulation {

/// One sentence. Its beam has one row in the first step, `growth` times as many in each next step, up to `width`; or
/// exactly the rows that a file gives.
struct Script {
  std::int32_t source = 1;        ///< tokens
  std::int32_t output = 1;        ///< steps that the sentence takes; eos is one of them
  std::int32_t width = 1;         ///< rows when the beam has grown
  std::int32_t growth = 1 << 15;  ///< the beam's growth in a step
  std::uint32_t first = 0;        ///< in Scripts::widths
  std::uint32_t count = 0;        ///< rows given there; the last holds for the steps that follow
};

/// All sentences of a run.
struct Scripts {
  std::vector<Script> all;
  std::vector<std::int32_t> widths;  ///< of the scripts with a `count`

  std::size_t size() const { return all.size(); }

  /// Rows after one with `now` rows in step `step` (0: the first step, whatever `now` is).
  std::int32_t rows(Script const& script, std::int32_t step, std::int32_t now) const {
    if (script.count > 0) return widths[script.first + std::min(static_cast<std::uint32_t>(step), script.count - 1)];
    if (step == 0) return 1;
    return now >= script.width
               ? script.width
               : static_cast<std::int32_t>(std::min<std::int64_t>(script.width, std::int64_t{now} * script.growth));
  }
  /// The widest beam.
  std::int32_t widest() const {
    std::int32_t most = 1;
    for (auto const& script : all) {
      if (script.count == 0) most = std::max(most, script.width);
      for (std::uint32_t i = 0; i < script.count; ++i) most = std::max(most, widths[script.first + i]);
    }
    return most;
  }
};

}  // namespace simulation
