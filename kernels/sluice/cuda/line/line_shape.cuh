// SPDX-License-Identifier: Apache-2.0
/// \file
/// How lines are split among thread blocks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0::cuda {

/// What runs on a device at once, as far as it decides how lines are split.
struct LineResidents {
  std::int64_t processors = 1;     ///< multiprocessors, > 0
  double blocks = 1;               ///< resident on each, > 0
  std::int32_t under_way = 16384;  ///< bytes that a block has under way while it reads, > 0
  bool ahead = false;              ///< and while it selects (rings)
};

/// A line is cut into *chunks* of `loads` loads per thread, independently of its address and of the number of lines:
/// sums are added chunk by chunk. A block reads 1 to `most_chunks` chunks.
struct LineShape {
  static constexpr int loads = 4;
  static constexpr int most_chunks = 8;

  /// The number of chunks in a line of `size` scores.
  template <class Format>
  SLUICE_HOST_DEVICE static std::int64_t chunks(std::int64_t size, int threads) {
    auto const scores = std::int64_t{loads} * threads * Format::wide;
    return (size + scores - 1) / scores;
  }

  std::int32_t chunks_of_block = 1;
  std::int32_t splits = 1;  ///< blocks per line

  static constexpr double chunk_bytes = 16384;  ///< of blocks of 256 threads
  /// Fitted to 18 times of an H200 (docs/cuda.md, "Estimates"; 12 % off on average): the bytes under way with which a
  /// multiprocessor reads at its share of the memory's bandwidth; and, in the time in which it reads a chunk at that
  /// rate (0.5 us), a block's start and selection, and what a line's last block adds if there are others.
  static constexpr double needed_bytes = 32 * 1024, selection = 12, merging = 6;
  static constexpr double equal = 0.02;  ///< times that differ relatively by less count as equal

  /// An estimate of the time that lines take in blocks of `chunks`, in the time in which a multiprocessor reads a chunk
  /// at its share of the memory's bandwidth. The blocks that run last read together, then select. Before them waves are
  /// continuous: blocks follow each other as places become free, and some read while others select (mean value analysis
  /// of a closed queue: a block that begins to read finds as many readers as there are on average without it). Blocks
  /// read at less than the full rate if they have too few bytes under way together (Little's law).
  static double time(std::int64_t line_chunks, std::int64_t rows, LineResidents const& residents, std::int64_t chunks) {
    auto const splits = (line_chunks + chunks - 1) / chunks;
    auto const blocks = rows * splits;
    auto const each = static_cast<double>(line_chunks) / static_cast<double>(splits);  // chunks of a block
    auto const one = static_cast<double>((blocks + residents.processors - 1) / residents.processors);  // its blocks
    auto const last = (std::min)(one, residents.blocks);
    auto const alone = (std::max)(each, each * needed_bytes / residents.under_way);  // a block's time to read
    auto const merge = splits > 1 ? merging : 0.0;
    auto const selecting = selection + merge / static_cast<double>(splits);
    auto const beside = (residents.ahead ? (std::max)(0.0, selecting - alone) : selecting) + alone - each;
    auto readers = 0.0, apart = 0.0;  // on average; time between two blocks
    for (auto running = 1.0; running <= (std::max)(1.0, last); ++running) {
      auto const reading = each * (1 + readers);
      apart = (reading + beside) / running;
      readers = reading / apart;
    }
    return (one - last) * apart + (std::max)(last * each, alone) + selection + merge;
  }

  /// The fastest shape by that estimate: few lines are split as far as possible, many lines as little as possible; of
  /// about equal ones, that of the fewest blocks.
  /// \param most  the most chunks per block
  static LineShape of(std::int64_t line_chunks, std::int64_t rows, LineResidents const& residents,
                      std::int64_t most = most_chunks) {
    LineShape best;
    double least = 0;
    for (std::int32_t chunks = 1; chunks <= most_chunks && chunks <= most && chunks <= line_chunks; ++chunks) {
      auto const time = LineShape::time(line_chunks, rows, residents, chunks);
      if (chunks > 1 && time > least * (1 + equal)) continue;
      least = chunks > 1 ? (std::min)(least, time) : time;
      best = {chunks, static_cast<std::int32_t>((line_chunks + chunks - 1) / chunks)};
    }
    // As many blocks, each with about the same part.
    best.chunks_of_block = static_cast<std::int32_t>((line_chunks + best.splits - 1) / best.splits);
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
    return k * keys <= std::int64_t{most_chunks} * loads * threads / 4;
  }
};

}  // namespace sluice::inline v0::cuda
