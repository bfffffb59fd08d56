// SPDX-License-Identifier: Apache-2.0
/// \file
/// The cost of a step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simulation {

/// The rows of one step, as far as they affect its cost.
struct Load {
  std::int64_t rows = 0;
  std::int32_t longest = 0;  ///< tokens in a slot, those that the row brings included
  std::int64_t length = 0;   ///< sum of all rows' tokens
};

/// Seconds:
///
///     step     = launch + launch_length * longest + row * rows + row_length * (padded ? rows * longest : length)
///     encoding = encode_call + encode_token * (padded ? sentences * longest : source tokens)
///
/// If steps of so many rows were measured, `measured` replaces launch + row * rows.
struct Cost {
  struct Point {
    double rows = 0, seconds = 0;
  };
  double launch = 0;
  double launch_length = 0;
  double row = 0;
  double row_length = 0;
  double encode_call = 0;
  double encode_token = 0;
  bool padded = false;            ///< rows of a step are as long as the longest: such models are not `ragged`
  std::vector<Point> measured{};  ///< ascending in rows; linear between two points and beyond the last

  double step(Load const& load) const {
    auto const longest = static_cast<double>(load.longest), rows = static_cast<double>(load.rows);
    auto const fed = padded ? rows * longest : static_cast<double>(load.length);
    return (measured.empty() ? launch + row * rows : interpolate(rows)) + launch_length * longest + row_length * fed;
  }
  double encode(Load const& load) const {
    auto const fed = padded ? static_cast<double>(load.rows) * load.longest : static_cast<double>(load.length);
    return encode_call + encode_token * fed;
  }

 private:
  double interpolate(double rows) const {
    if (measured.size() == 1) return measured[0].seconds;
    auto const next = std::upper_bound(measured.begin(), measured.end(), rows,
                                       [](double x, Point const& point) { return x < point.rows; });
    auto const i = std::clamp<std::ptrdiff_t>(next - measured.begin(), 1, std::ssize(measured) - 1);
    auto const &a = measured[static_cast<std::size_t>(i) - 1], &b = measured[static_cast<std::size_t>(i)];
    return std::max(a.seconds + (b.seconds - a.seconds) * (rows - a.rows) / (b.rows - a.rows), 0.0);
  }
};

/// Yang et al. 2020 on a V100 (five models, fairseq): see fit_yang. The paper does not describe the encoder: a call is
/// assumed to cost as much as a step at length 1, and a token as much as a row.
inline Cost gpu() {
  return {.launch = 0.00887,
          .launch_length = 0.002546,
          .row = 7.818e-5,
          .encode_call = 0.0114,
          .encode_token = 7.818e-5,
          .padded = true};
}

/// The same GPU, but the cost of a step does not depend on its rows' lengths, and rows of all lengths share a step:
/// recurrent models, paged attention.
inline Cost flat_gpu() { return {.launch = 0.09236, .row = 7.818e-5, .encode_call = 0.0114, .encode_token = 7.818e-5}; }

}  // namespace simulation
