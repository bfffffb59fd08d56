// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options of a CacheIndirection.
#pragma once

#include <sluice/language.hpp>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// Options of a CacheIndirection.
struct CacheIndirectionOptions {
  std::int32_t slot_count = 0;  ///< > 0: slots of the model
  std::int32_t positions = 0;   ///< > 0: capacity of a slot
  /// Slots 0 .. width - 1 form a group, and so on; rows fork only within a group. If all requests use one search, the
  /// number of slots that it needs per sentence (slot_count()); else `slot_count`. In [1, 1024].
  std::int32_t width = 0;
};

}  // namespace sluice::inline v0::cuda
