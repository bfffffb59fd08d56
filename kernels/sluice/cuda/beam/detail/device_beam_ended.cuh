// SPDX-License-Identifier: Apache-2.0
/// \file
/// The finished hypotheses of a DeviceBeam.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Merges the first `added` hypotheses of memory.out into a sentence's finished ones: sorted by score, equal ones in
/// the order in which they ended. Those beyond BeamRules::most_ended are dropped, since no rule and no n-best list
/// needs them. Each hypothesis counts its rank and moves from one half of the memory to the other, so that none is
/// overwritten before it has been read.
template <class Block>
SLUICE_DEVICE void set_aside(Block& block, BeamWarpMemory const& memory, BeamTask const& task, std::int32_t number,
                             std::int32_t added, BeamSentence& now) {
  if (added == 0) return;
  auto const most = task.rules.most_ended, before = now.ended;
  auto const* const old = task.half(number, now.half);
  auto* const to = task.half(number, 1 - now.half);
  for (auto i = block.thread(); i < before; i += 32) {
    auto rank = i;
    SLUICE_ROLLED
    for (std::int32_t j = 0; j < added; ++j) rank += memory.out[j].score > old[i].score ? 1 : 0;
    if (rank < most) to[rank] = old[i];
  }
  for (auto j = block.thread(); j < added; j += 32) {
    auto const mine = memory.out[j].score;
    std::int32_t rank = 0;
    SLUICE_ROLLED
    for (std::int32_t i = 0; i < before; ++i) rank += old[i].score >= mine ? 1 : 0;
    SLUICE_ROLLED
    for (std::int32_t other = 0; other < added; ++other) {
      auto const theirs = memory.out[other].score;
      rank += theirs > mine || (theirs == mine && other < j) ? 1 : 0;
    }
    if (rank < most) to[rank] = memory.out[j];
  }
  now.half = 1 - now.half;
  now.ended = before + added < most ? before + added : most;
}

}  // namespace sluice::inline v0::cuda::detail
