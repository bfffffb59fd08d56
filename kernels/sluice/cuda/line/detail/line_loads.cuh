// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a block gets the scores of its part of a line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// Loads by every thread, directly to registers: Loads::direct.
struct DirectLoads {
  /// Whether registers suffice for four blocks on a multiprocessor, with a chunk's loads under way in each: 64 bytes per
  /// thread. With 16-bit scores, they suffice only for half-precision lists (ptxas of CUDA 13, sm_90); before sm_90,
  /// lists need a few more. Masks need some, too.
  template <class Format, bool many, bool masked>
  static constexpr bool four_blocks = !masked && (Format::wide == 4 || (many && std::is_same_v<Format, Float16>));

  /// The number of groups to load before the first `count` of them are used: a chunk's, but for 16-bit scores with
  /// masks, whose registers do not suffice even with three blocks.
  template <class Format, int count, bool many, bool masked>
  static constexpr int ahead = masked && (Format::wide == 8) && !(many && std::is_same_v<Format, Float16>)
                                   ? count
                                   : LineShape::loads;

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
