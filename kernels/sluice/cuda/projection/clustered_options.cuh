// SPDX-License-Identifier: Apache-2.0
/// \file
/// Options and statistics of a ClusteredProjection on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/output/clusters.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::cuda {

/// Options of a ClusteredProjection. The first four are those of sluice::ClusteredOptions; they determine the answers.
/// The others say how they are computed: none of them changes which tokens a line may give.
struct ClusteredOptions {
  using Union = sluice::ClusteredOptions::Union;

  std::vector<Token> always{};  ///< always active: at least the end of sentence
  Union unite = Union::sentence;
  std::int32_t nearest = 1;  ///< clusters per line
  double full_above = 0.5;   ///< a larger active share of the vocabulary: all tokens are active

  // Estimates, not measured yet:
  /// The cost of a token of the union whose weights must be gathered, relative to a token of the full product; all
  /// logits are computed if that is cheaper.
  double token_cost = 1.5;
  std::size_t full_below = std::size_t{40} << 20;  ///< weights of at most this many bytes: all logits are always
                                                   ///< computed
  /// For at most this many lines, weights are read in place, once per 16 lines, and the host need not know how many
  /// tokens are active; if it is large, the host waits in no step.
  std::int32_t few_lines = 16;
  /// For 16-bit weights read in place and at most 16 lines: from this many lines on, use matrix units; 17: never.
  /// Otherwise, and for `float`, FMA.
  std::int32_t matrix_lines = 9;
  std::size_t tile_bytes = 0;  ///< see ProductPass
  StepOptions step{};          ///< launches and copies of a step
};

/// Statistics of a ClusteredProjection.
struct ClusteredStatistics {
  std::uint64_t lines = 0;
  std::uint64_t unions = 0;    ///< sentences and steps (or steps, for Union::batch)
  std::uint64_t full = 0;      ///< of these, those with all tokens active
  std::uint64_t active = 0;    ///< active tokens, summed over the other unions
  std::uint64_t steps = 0;     ///< calls of expand() with at least one line
  std::uint64_t reduced = 0;   ///< of these, those that computed only the active tokens' logits
  std::uint64_t gathered = 0;  ///< of these, those that copied weights; the others read them in place or reused the
                               ///< copy

  /// The mean active share of the vocabulary per union.
  double active_share(std::int32_t vocabulary_size) const {
    return sluice::detail::active_share(unions, full, active, vocabulary_size);
  }
};

}  // namespace sluice::inline v0::cuda
