// SPDX-License-Identifier: Apache-2.0
/// \file
/// How lines are shared out to blocks.
#pragma once

#include <sluice/cuda/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// A line is cut into *chunks* of `loads` loads by every thread, wherever it lies and however many lines there are: sums
/// are added chunk by chunk. A block reads 1 to `most_chunks` of them.
struct LineShape {
  static constexpr int loads = 4;
  static constexpr int most_chunks = 4;

  /// Of a line of `size` scores.
  template <class Format>
  SLUICE_HOST_DEVICE static std::int64_t chunks(std::int64_t size, int threads) {
    auto const scores = std::int64_t{loads} * threads * Format::wide;
    return (size + scores - 1) / scores;
  }

  std::int32_t chunks_of_block = 1;
  std::int32_t splits = 1;  ///< blocks of a line

  /// Few lines are split as far as that goes; many as little as that keeps `wanted` blocks.
  static LineShape of(std::int64_t line_chunks, std::int64_t rows, std::int64_t wanted) {
    LineShape shape;
    auto const splits = [&](std::int64_t chunks) { return (line_chunks + chunks - 1) / chunks; };
    shape.chunks_of_block = most_chunks;
    while (shape.chunks_of_block > 1 &&
           (rows * splits(shape.chunks_of_block) < wanted || line_chunks <= shape.chunks_of_block / 2))
      shape.chunks_of_block /= 2;
    shape.splits = static_cast<std::int32_t>(splits(shape.chunks_of_block));
    return shape;
  }

  /// Whether the k best of every block are few enough for one block to merge them.
  static bool fits(std::int64_t splits, std::int64_t k, int threads) {
    auto const keys = (k * splits + threads - 1) / threads;  // that a thread looks at
    return k * keys <= std::int64_t{most_chunks} * loads * threads / 2;
  }
};

}  // namespace sluice::inline v0::cuda
