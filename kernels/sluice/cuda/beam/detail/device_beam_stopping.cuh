// SPDX-License-Identifier: Apache-2.0
/// \file
/// When a sentence of a DeviceBeam ends before its beam is empty and before the maximum length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/search/beam_options.hpp>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The rules of search/detail/beam_steps.hpp, after a step.
class BeamStopping {
 public:
  SLUICE_DEVICE BeamStopping(BeamTask const& task, BeamWarpMemory const& memory, BeamSentence const& now,
                             std::int32_t number)
      : task_(task), memory_(memory), now_(now), best_(task.half(number, now.half)) {}

  SLUICE_DEVICE bool stops() const {
    auto const& rules = task_.rules;
    switch (rules.rule) {
      case EarlyStopping::Rule::count: return now_.ended >= rules.needed;
      case EarlyStopping::Rule::top_ended: return now_.top_ended != 0 && now_.ended >= rules.n_best;
      case EarlyStopping::Rule::exact:
        return now_.ended >= rules.n_best && none_can_pass(best_[rules.n_best - 1].score);
      case EarlyStopping::Rule::heuristic:
      case EarlyStopping::Rule::never_early:
        return now_.ended >= rules.width && falls_short(best_[rules.width - 1].score);
    }
    return false;
  }

 private:
  /// LengthPenalty::bound of every live hypothesis.
  SLUICE_DEVICE bool none_can_pass(double bar) const {
    auto const from = task_.divisors[now_.generated + 1], to = task_.divisors[now_.max];
    auto passes = false;
    SLUICE_ROLLED
    for (std::int32_t rank = 0; rank < now_.live; ++rank) {
      auto const log_prob = memory_.next[rank].log_prob;
      passes = passes || log_prob / from > bar || log_prob / to > bar;
    }
    return !passes;
  }
  SLUICE_DEVICE bool falls_short(double bar) const {
    return memory_.next[0].log_prob / task_.divisors[task_.rules.hopeful ? now_.max : now_.generated] <= bar;
  }

  BeamTask const& task_;
  BeamWarpMemory const& memory_;
  BeamSentence const& now_;
  BeamEnded const* best_;
};

}  // namespace sluice::inline v0::cuda::detail
