// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a ClusteredProjection on a device may be told, and what it has seen.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/output/clusters/clustered_options.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::cuda {

/// What a ClusteredProjection may be told. The first four are those of sluice::ClusteredOptions; they say what the answers
/// are. The others say how they are computed: none of them changes which tokens a line may give.
struct ClusteredOptions {
  using Union = sluice::ClusteredOptions::Union;

  std::vector<Token> always{};  ///< active whatever the clusters say: the end of a sentence, at least
  Union unite = Union::sentence;
  std::int32_t nearest = 1;  ///< clusters of each line
  double full_above = 0.5;   ///< more active tokens than this share of the vocabulary: all of them are

  // Estimates, not measured yet:
  double token_cost =
      1.5;  ///< what a token of the union costs where its weights have to be gathered first, in tokens of
            ///< the full product; all logits are made where that is cheaper
  std::size_t full_below = std::size_t{40} << 20;  ///< bytes of weights: of so few, all logits are made, always
  std::int32_t few_lines =
      16;  ///< up to so many lines the weights are read where they are, once for every 16 of them, and the host
           ///< need not know how many are active; no host waits in any step where it is large
  std::int32_t matrix_lines =
      9;  ///< weights of 16 bits that are read where they are: of up to 16 lines, from so many on matrix
          ///< units multiply them; 17: never. Others, and `float`, by FMA
  std::size_t tile_bytes = 0;  ///< see ProductPass
  StepOptions step{};          ///< what a step's launches and copies are like
};

/// What a ClusteredProjection has seen.
struct ClusteredStatistics {
  std::uint64_t lines = 0;
  std::uint64_t unions = 0;    ///< sentences and steps (or steps, for Union::batch)
  std::uint64_t full = 0;      ///< of these, those for which all tokens were active
  std::uint64_t active = 0;    ///< tokens, summed over the others
  std::uint64_t steps = 0;     ///< calls of expand() with any line
  std::uint64_t reduced = 0;   ///< of these, those in which only the active tokens' logits were made
  std::uint64_t gathered = 0;  ///< of these, those that copied weights; the others read them in place or had the copy

  /// Mean share of the vocabulary that is active in a union.
  double active_share(std::int32_t vocabulary_size) const {
    return sluice::detail::active_share(unions, full, active, vocabulary_size);
  }
};

}  // namespace sluice::inline v0::cuda
