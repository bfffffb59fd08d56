// SPDX-License-Identifier: Apache-2.0
/// \file
/// The parts of a Query that need further passes over the line, and their result.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
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
  /// Every list is one drawn token (or none), so no keys are stored; `cuts` is false then.
  bool single = false;
};

namespace detail {

/// The arguments of the programs. Keys are made of scores, and of perturbed values; lines that do not want a kind have
/// none of it.
template <class Format>
struct SelectLaunch {
  detail::LineLaunch<Format> line{};  ///< with `totals` and `results`
  LineSelection selection{};
  int place_bits = 1;        ///< bits that number V places
  Key* keys = nullptr;       ///< [rows, V]: of scores; null: no line has a list by scores
  Key* perturbed = nullptr;  ///< [rows, V]: of perturbed values; null: no line has noise
  Key* spare = nullptr;      ///< [rows, V]: for lists that are too long for a block's shared memory
  std::int32_t parts = 0;    ///< of a line, of each of which `perturbed` has the best: [rows, parts]. 0: it has all

  SLUICE_DEVICE bool valid(std::int32_t row) const {
    auto const sum = line.totals[row].sum;
    return sum == sum;
  }
  SLUICE_DEVICE bool draws(std::int32_t row) const { return perturbed != nullptr && selection.queries[row].draws(); }
  SLUICE_DEVICE bool cuts(std::int32_t row) const { return keys != nullptr && selection.queries[row].cuts(); }
  /// A row of one of these arrays; null if there is none.
  SLUICE_DEVICE Key* row_of(Key* all, std::int32_t row) const {
    return all != nullptr ? all + std::int64_t{row} * line.size : nullptr;
  }
  SLUICE_DEVICE Token token(std::uint32_t place) const {
    return line.tokens != nullptr ? line.tokens[place] : static_cast<Token>(place);
  }
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
