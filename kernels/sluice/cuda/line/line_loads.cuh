// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a block gets the scores of its part of a line.
#pragma once

#include <sluice/cuda/device/host_device.cuh>
#include <sluice/cuda/device/score_format.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// Loads by every thread, straight to registers: Loads::direct.
struct DirectLoads {
  /// Groups first, first + threads, ...
  template <int count, class Block, class Reader>
  SLUICE_DEVICE void load(Block& block, Reader const& reader, std::uint32_t first, Words (&words)[count]) const {
    constexpr std::uint32_t threads = Block::threads;
    if (reader.inside(first, first + (count - 1) * threads)) {
      reader.load(block, first, threads, words);
    } else {
      SLUICE_UNROLL
      for (std::uint32_t i = 0; i < count; ++i) words[i] = reader.load_any(block, first + i * threads);
    }
  }
};

}  // namespace sluice::inline v0::cuda
