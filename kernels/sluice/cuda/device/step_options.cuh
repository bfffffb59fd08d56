// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a step is brought to the device, its lines are read, and its answers brought back.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/loads.cuh>
#include <sluice/cuda/device/detail/start.cuh>

#include <cstddef>

namespace sluice::inline v0::cuda {

/// What a step's launches, loads and copies are like. None of it changes an answer. No GPU has judged it yet:
/// sluice.bench.cuda.steps and sluice.bench.cuda.top_k compare both ways of each.
struct StepOptions {
  /// How lines are read.
  Loads loads = Loads::direct;

  /// The kernels write small answers to page-locked memory of the host, and no copy follows them. Only what is written once
  /// and never read on the device: whole lists of at most 64 and what merges keep, results and probes, where all of a step is
  /// at most `most_mapped`. false: to the device's memory, and a copy.
  bool mapped_answers = true;

  /// Kernels that follow one of ours are started while that is still at work, and wait for it by themselves (programmatic
  /// dependent launch: sm_90 and CUDA 12.3 or newer; else nothing changes). Off until a device has run it: what kernels read
  /// past the coherent caches is written by the kernel before, and only a device can show that it is never seen too early.
  bool early_starts = false;
  /// Of a kernel right behind one of ours.
  Start behind_ours() const { return early_starts && !two_tiles ? Start::early : Start::after; }

  /// An output layer that makes logits tile by tile makes the next tile while the lines of the last are read, in a stream beside
  /// the caller's; tiles are half as large. No kernel is started early then. Off until a device has said what it saves.
  bool two_tiles = false;

  /// The block that finishes a sentence's last line merges its beams, and no second launch does: whole lines (no tiles) without
  /// masks, at most 16 of a sentence and 64 candidates kept. Off until a device has said what it saves.
  bool merge_behind_lines = false;

  /// Bytes of a step's answers that kernels write over the bus; more are copied at once. An estimate, not measured: at some
  /// 25 GB/s so many take 3 us, about what it takes to start a copy.
  static constexpr std::size_t most_mapped = std::size_t{64} << 10;
};

}  // namespace sluice::inline v0::cuda
