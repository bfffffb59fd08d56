// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a step's data reaches the device, its lines are read, and its answers come back.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/loads.cuh>

#include <cstddef>

namespace sluice::inline v0::cuda {

/// Launches, loads and copies of a step. No option changes an answer. What each gains on an H200: docs/cuda.md,
/// "Measured"; sluice.bench.cuda.steps and sluice.bench.cuda.top_k compare both settings of each.
struct StepOptions {
  /// How lines are read.
  Loads loads = Loads::direct;

  /// Kernels write small answers to page-locked host memory, which saves a copy. Only for data written once and never
  /// read on the device: whole lists of at most 64 tokens, kept candidates of merges, results and probes, if a step's
  /// total is at most `most_mapped`. false: to device memory, and a copy.
  bool mapped_answers = true;

  /// Kernels that follow one of ours start while that is still running, and wait for it by themselves (programmatic
  /// dependent launch: sm_90 and CUDA 12.3 or newer; no effect otherwise). Off: an H200 lost more (up to 1.2 times) than it gained, and kernels read data past the
  /// coherent caches that the previous kernel writes.
  bool early_starts = false;
  /// For a kernel right after one of ours.
  detail::Start behind_ours() const { return early_starts && !two_tiles ? detail::Start::early : detail::Start::after; }

  /// An output layer that computes logits tile by tile computes the next tile while the lines of the last are read, in
  /// a second stream; tiles are half as large. Disables early starts. Off: an H200 took 1.0 to 1.4 times as long.
  bool two_tiles = false;

  /// The block that finishes a sentence's last line merges its beams, which saves a launch: for whole lines (no tiles)
  /// without masks, at most 16 lines per sentence and 64 candidates kept. Off: an H200 gained 1.2 times for
  /// beams of 16, and nothing for beams of 5.
  bool merge_behind_lines = false;

  /// The blocks of a line are a cluster (sm_90 and newer; no effect otherwise): they leave their lists in the shared
  /// memory of the first one, which merges them, in place of memory, a fence and a ticket. For lines whose clusters the
  /// device runs at once, whole and without masks, in 2, 4, 8 or 16 blocks each, read by direct loads, unless beams are
  /// merged behind them. Off, though an H200 gained 1.1 to 1.3 times for few lines: no other device has run it.
  bool clusters = false;

  /// The most bytes of a step's answers that kernels write over the bus; more are copied in one go. An estimate, not
  /// measured: at 25 GB/s they take 3 us, about as long as starting a copy.
  static constexpr std::size_t most_mapped = std::size_t{64} << 10;
};

}  // namespace sluice::inline v0::cuda
