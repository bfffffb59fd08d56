// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a block gets the scores of its part of a line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Loads by every thread, directly to registers: Loads::direct.
struct DirectLoads {
  /// Whether registers suffice for four blocks on a multiprocessor, from sm_90 on. Masks need more.
  template <bool masked>
  static constexpr bool four_blocks = !masked;

  /// The number of groups to load before the first `count` of them are used: a chunk's, 64 bytes per thread, where
  /// scores need no registers beyond that. Other lines are bound by instructions.
  template <int count, bool plain>
  static constexpr int ahead = plain ? LineShape::loads : count;

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

}  // namespace sluice::inline v0::cuda::detail
