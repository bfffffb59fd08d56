// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a step of a CacheIndirection does to one slot.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// What a step does to one slot, as a Row does to its `to`. Slots with `from` -1 are unchanged; one with neither
/// `length` nor `count` is emptied.
struct SlotStep {
  Slot from = -1;
  std::int32_t length = 0;  ///< positions of `from` that stay
  std::int32_t count = 0;   ///< new positions after them

  SLUICE_HOST_DEVICE bool named() const { return from >= 0; }
};

}  // namespace sluice::inline v0::cuda
