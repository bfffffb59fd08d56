// SPDX-License-Identifier: Apache-2.0
/// \file
/// What of a Query takes another look at the line, and what becomes of it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// The part of a line's Query that LineQuery has not; fields as there.
struct LineSelect {
  std::uint64_t noise = 0;
  float mass = 0, within = 0, typical = 0, deviations = 0, at_least = 0;
  std::int32_t best = 0;     ///< in the list that is made here; LineQuery::best is another's, and usually 0 then
  std::int32_t entropy = 0;  ///< 1: is wanted
  /// 1: edits with penalties, and `only`, act after the softmax on this list and on the line's probes, and penalties act on
  /// log-probabilities that are rounded to float. 0: they do not.
  std::int32_t rounded = 0;
  std::int32_t room = 0;   ///< how many there is memory for
  std::int64_t first = 0;  ///< where the list begins in LineSelection::best

  SLUICE_HOST_DEVICE bool selects() const {
    return mass > 0 || within > 0 || typical > 0 || deviations > 0 || at_least > 0;
  }
  /// Whether values are perturbed.
  SLUICE_HOST_DEVICE bool draws() const { return noise != 0 && best > 0; }
  /// Whether scores decide, too.
  SLUICE_HOST_DEVICE bool cuts() const { return selects() || (noise == 0 && best > 0); }
  SLUICE_HOST_DEVICE bool asks() const { return draws() || cuts() || entropy != 0 || rounded != 0; }
};

struct SelectResult {
  std::int32_t count = 0;  ///< of the list; more than `room`: the first `room` of them are there
  float entropy = 0;
};

/// Of a LineTask: what lines ask that takes another look at them. All pointers are the device's.
struct LineSelection {
  LineSelect const* queries = nullptr;  ///< [rows]; none: nobody asks
  SelectResult* results = nullptr;      ///< [rows]
  Candidate* best = nullptr;            ///< the lists, where their queries say
  bool draws = true;                    ///< false: none of them has noise
  bool cuts = true;                     ///< false: none of them has a list by scores
};

/// The arguments of the programs. Keys are those of scores, or of perturbed values.
template <class Format>
struct SelectLaunch {
  LineLaunch<Format> line{};  ///< with `totals` and `results`
  LineSelection selection{};
  bool draws = false;              ///< keys are those of perturbed values
  int place_bits = 1;              ///< that number V places
  Key* keys = nullptr;             ///< [rows, V]
  Key* narrowed = nullptr;         ///< [rows, V]: of each row those that matter, in any order
  std::int32_t* sizes = nullptr;   ///< [rows]: how many keys a row has, then how many matter; 0 where none are wanted
  Key const* sorted = nullptr;     ///< those that matter, each row's in order, best first
  std::uint32_t* drawn = nullptr;  ///< [rows, words]: a bit for every place that noise has drawn
  std::int32_t words = 0;

  SLUICE_DEVICE bool valid(std::int32_t row) const {
    auto const sum = line.totals[row].sum;
    return sum == sum;
  }
  SLUICE_DEVICE std::uint32_t* drawn_of(std::int32_t row) const { return drawn + std::int64_t{row} * words; }
  SLUICE_DEVICE Key const* sorted_of(std::int32_t row) const { return sorted + std::int64_t{row} * line.size; }
};

/// How many keys, best first, reach `least`.
SLUICE_DEVICE std::int32_t count_reaching(Key const* sorted, std::int32_t size, Key least) {
  std::int32_t low = 0;
  while (low < size) {
    auto const middle = low + (size - low) / 2;
    if (sorted[middle] >= least) low = middle + 1;
    else size = middle;
  }
  return low;
}

}  // namespace sluice::inline v0::cuda
