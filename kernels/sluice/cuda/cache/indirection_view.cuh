// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a hypothesis finds its keys and values when beams are reordered without copying them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// For attention kernels: position `p` of slot `s` is stored in the memory of slot owner(s, p), at the same position.
/// For a cache [slots, positions, ...] per layer, or with any dimensions before and after these two.
struct IndirectionView {
  static constexpr Slot none = -1;  ///< the slot has no such position

  Slot const* table = nullptr;  ///< [slots, positions], the device's
  std::int32_t positions = 0;

  SLUICE_HOST_DEVICE Slot owner(Slot slot, std::int32_t position) const {
    return table[static_cast<std::int64_t>(slot) * positions + position];
  }
  /// The index in [slots * positions].
  SLUICE_HOST_DEVICE std::int64_t cell(Slot slot, std::int32_t position) const {
    return static_cast<std::int64_t>(owner(slot, position)) * positions + position;
  }
};

}  // namespace sluice::inline v0::cuda
