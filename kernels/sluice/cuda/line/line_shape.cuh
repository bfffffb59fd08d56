// SPDX-License-Identifier: Apache-2.0
/// \file
/// How lines are shared out to blocks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

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

  /// What takes least time where `places` blocks run at once, wave after wave: few lines are split as far as that goes, many
  /// as little. Besides its chunks a block takes about the time of one more, for the selection (an estimate, not measured).
  /// \param places  > 0
  /// \param most    chunks of a block
  static LineShape of(std::int64_t line_chunks, std::int64_t rows, std::int64_t places,
                      std::int64_t most = most_chunks) {
    LineShape best;
    std::int64_t least = 0;
    for (std::int32_t chunks = 1; chunks <= most_chunks && chunks <= most && chunks <= line_chunks; ++chunks) {
      auto const splits = (line_chunks + chunks - 1) / chunks;
      auto const waves = (rows * splits + places - 1) / places;
      auto const time = waves * (1 + chunks);
      if (chunks > 1 && time > least) continue;  // of equals, fewer blocks
      least = time, best = {chunks, static_cast<std::int32_t>(splits)};
    }
    return best;
  }

  /// The same blocks for a line of `line_chunks`; larger ones, where the k best of all would be too many for one to merge.
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

  /// Whether the k best of every block are few enough for one block to merge them.
  static bool fits(std::int64_t splits, std::int64_t k, int threads) {
    auto const keys = (k * splits + threads - 1) / threads;  // that a thread looks at
    return k * keys <= std::int64_t{most_chunks} * loads * threads / 2;
  }
};

}  // namespace sluice::inline v0::cuda
