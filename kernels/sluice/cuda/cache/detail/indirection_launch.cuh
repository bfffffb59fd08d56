// SPDX-License-Identifier: Apache-2.0
/// \file
/// The arguments of the CacheIndirection kernel.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/slot_step.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The arguments of the kernel; all pointers are device pointers.
struct IndirectionLaunch {
  static constexpr std::int32_t tile = 32;          ///< per block
  static constexpr std::int32_t most_width = 1024;  ///< per group

  Slot* table = nullptr;            ///< [slots, positions]; -1 where there is none
  SlotStep const* steps = nullptr;  ///< [slots]
  std::int32_t slot_count = 0;
  std::int32_t positions = 0;
  std::int32_t width = 1;   ///< slots of a group; the last group may have fewer
  std::int32_t active = 0;  ///< positions that may change: no named slot has more, before or after

  SLUICE_HOST_DEVICE std::int32_t tiles() const { return (active + tile - 1) / tile; }
  SLUICE_HOST_DEVICE std::int32_t groups() const { return (slot_count + width - 1) / width; }
};

}  // namespace sluice::inline v0::cuda::detail
