// SPDX-License-Identifier: Apache-2.0
/// \file
/// How lines are split among thread blocks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// A line is cut into *chunks* of `loads` loads per thread, independently of its address and of the number of lines:
/// sums are added chunk by chunk. A block reads 1 to `most_chunks` chunks.
struct LineShape {
  static constexpr int loads = 4;
  static constexpr int most_chunks = 4;

  /// The number of chunks in a line of `size` scores.
  template <class Format>
  SLUICE_HOST_DEVICE static std::int64_t chunks(std::int64_t size, int threads) {
    auto const scores = std::int64_t{loads} * threads * Format::wide;
    return (size + scores - 1) / scores;
  }

  std::int32_t chunks_of_block = 1;
  std::int32_t splits = 1;  ///< blocks per line

  /// The fastest shape if `places` blocks run at once, wave after wave: few lines are split as far as possible, many
  /// lines as little as possible. Besides its chunks, a block takes about the time of one more chunk for the selection
  /// (an estimate, not measured).
  /// \param places  > 0
  /// \param most    the most chunks per block
  static LineShape of(std::int64_t line_chunks, std::int64_t rows, std::int64_t places,
                      std::int64_t most = most_chunks) {
    LineShape best;
    std::int64_t least = 0;
    for (std::int32_t chunks = 1; chunks <= most_chunks && chunks <= most && chunks <= line_chunks; ++chunks) {
      auto const splits = (line_chunks + chunks - 1) / chunks;
      auto const waves = (rows * splits + places - 1) / places;
      auto const time = waves * (1 + chunks);
      if (chunks > 1 && time > least) continue;  // among equals, fewer blocks
      least = time, best = {chunks, static_cast<std::int32_t>(splits)};
    }
    return best;
  }

  /// The same blocks for a line of `line_chunks`; larger blocks if one block could not merge the k best of all.
  LineShape over(std::int64_t line_chunks, std::int64_t k, int threads, std::int64_t most = most_chunks) const {
    auto shape = *this;
    auto const split = [&] {
      return static_cast<std::int32_t>((line_chunks + shape.chunks_of_block - 1) / shape.chunks_of_block);
    };
    shape.splits = split();
    while (!fits(shape.splits, k, threads) && shape.chunks_of_block < most && shape.chunks_of_block < most_chunks) {
      ++shape.chunks_of_block;
      shape.splits = split();
    }
    return shape;
  }

  /// Whether one block can merge the k best of every block.
  static bool fits(std::int64_t splits, std::int64_t k, int threads) {
    auto const keys = (k * splits + threads - 1) / threads;  // keys per thread
    return k * keys <= std::int64_t{most_chunks} * loads * threads / 2;
  }
};

}  // namespace sluice::inline v0::cuda
