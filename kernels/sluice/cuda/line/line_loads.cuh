// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a block gets the scores of its part of a line.
#pragma once

#include <sluice/cuda/device/host_device.cuh>
#include <sluice/cuda/device/score_format.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// Which way LogSoftmaxTopK reads lines. Answers are the same bits.
enum class Loads {
  direct,  ///< every thread loads 64 or 32 bytes, uses them, loads the next; nothing is under way while a block selects
  ring  ///< blocks stay, and bulk copies fill a ring of stages ahead of them; from sm_90 on. Lines with masks go the direct way
};

/// Loads by every thread, straight to registers.
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
