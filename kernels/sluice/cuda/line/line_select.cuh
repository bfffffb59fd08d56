// SPDX-License-Identifier: Apache-2.0
/// \file
/// The parts of a Query that need further passes over the line, and their result.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// The part of a line's Query that is not in LineQuery; fields as there.
struct LineSelect {
  std::uint64_t noise = 0;
  float mass = 0, within = 0, typical = 0, deviations = 0, at_least = 0;
  std::int32_t best = 0;     ///< tokens of the list made here; LineQuery::best is for the other list, and is usually 0
                             ///< then
  std::int32_t entropy = 0;  ///< 1: compute the entropy
  /// 1: edits after the softmax (with their penalties) and `only` apply to this list and to the line's probes;
  /// penalties apply to log-probabilities rounded to float. 0: no penalties.
  std::int32_t rounded = 0;
  std::int32_t room = 0;   ///< the capacity of the list
  std::int64_t first = 0;  ///< where the list begins in LineSelection::best

  SLUICE_HOST_DEVICE bool selects() const {
    return mass > 0 || within > 0 || typical > 0 || deviations > 0 || at_least > 0;
  }
  /// Whether values are perturbed.
  SLUICE_HOST_DEVICE bool draws() const { return noise != 0 && best > 0; }
  /// Whether there is also a list by scores.
  SLUICE_HOST_DEVICE bool cuts() const { return selects() || (noise == 0 && best > 0); }
  SLUICE_HOST_DEVICE bool asks() const { return draws() || cuts() || entropy != 0 || rounded != 0; }
};

/// What a selection tells of a line, besides its list.
struct SelectResult {
  std::int32_t count = 0;  ///< length of the list; if more than `room`, only the first `room` are stored
  float entropy = 0;
};

/// The parts of a LineTask that need further passes. All pointers are device pointers.
struct LineSelection {
  LineSelect const* queries = nullptr;  ///< [rows]; null: no line needs it
  SelectResult* results = nullptr;      ///< [rows]
  Candidate* best = nullptr;            ///< the lists, at the places that the queries give
  bool draws = true;                    ///< false: none of them has noise
  bool cuts = true;                     ///< false: none of them has a list by scores
  /// Every list is one drawn token (or none), so nothing is sorted; `cuts` is false then.
  bool single = false;
};

namespace detail {

/// The arguments of the programs. Keys are made of scores, or of perturbed values.
template <class Format>
struct SelectLaunch {
  detail::LineLaunch<Format> line{};  ///< with `totals` and `results`
  LineSelection selection{};
  bool draws = false;              ///< keys are made of perturbed values
  int place_bits = 1;              ///< bits that number V places
  Key* keys = nullptr;             ///< [rows, V]
  Key* narrowed = nullptr;         ///< [rows, V]: the keys of each row that matter, in any order
  std::int32_t* sizes = nullptr;   ///< [rows]: the number of keys in a row, then the number that matter; 0 if none are
                                   ///< wanted
  Key const* sorted = nullptr;     ///< the keys that matter, each row's in order, best first
  std::uint32_t* drawn = nullptr;  ///< [rows, words]: a bit for every place drawn by noise
  std::int32_t words = 0;
  std::int32_t parts = 0;  ///< of a line, of each of which `keys` has the best: [rows, parts]. 0: `keys` has all

  SLUICE_DEVICE bool valid(std::int32_t row) const {
    auto const sum = line.totals[row].sum;
    return sum == sum;
  }
  SLUICE_DEVICE std::uint32_t* drawn_of(std::int32_t row) const { return drawn + std::int64_t{row} * words; }
  SLUICE_DEVICE Key const* sorted_of(std::int32_t row) const { return sorted + std::int64_t{row} * line.size; }
};

/// The number of keys, best first, that reach `least`.
SLUICE_DEVICE std::int32_t count_reaching(Key const* sorted, std::int32_t size, Key least) {
  std::int32_t low = 0;
  while (low < size) {
    auto const middle = low + (size - low) / 2;
    if (sorted[middle] >= least) low = middle + 1;
    else size = middle;
  }
  return low;
}

}  // namespace detail

}  // namespace sluice::inline v0::cuda
