// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the kernel of CacheIndirection is told.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// What a step does to one slot: what a Row says of its `to`. Slots whose `from` is -1 stay as they are; one without
/// `length` and `count` is emptied.
struct SlotStep {
  Slot from = -1;
  std::int32_t length = 0;  ///< positions of `from` that stay
  std::int32_t count = 0;   ///< positions behind them

  SLUICE_HOST_DEVICE bool named() const { return from >= 0; }
};

/// The arguments of the kernel; all pointers are the device's.
struct IndirectionLaunch {
  static constexpr std::int32_t tile = 32;          ///< positions of a block
  static constexpr std::int32_t most_width = 1024;  ///< slots of a group

  Slot* table = nullptr;            ///< [slots, positions]; -1 where there is none
  SlotStep const* steps = nullptr;  ///< [slots]
  std::int32_t slot_count = 0;
  std::int32_t positions = 0;
  std::int32_t width = 1;   ///< slots of a group; the last group may have fewer
  std::int32_t active = 0;  ///< positions that may change: no slot that is named has more, before or after

  SLUICE_HOST_DEVICE std::int32_t tiles() const { return (active + tile - 1) / tile; }
  SLUICE_HOST_DEVICE std::int32_t groups() const { return (slot_count + width - 1) / width; }
};

}  // namespace sluice::inline v0::cuda
