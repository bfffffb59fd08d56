// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the merge of beams is told, and what it tells.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// A hypothesis: where its candidates are listed.
struct MergeLine {
  double base = 0;       ///< its log-probability; that of a candidate is base + log_prob, added in double precision
  std::int32_t row = 0;  ///< its list: [row, k]
};

/// The lines of one sentence.
struct MergeGroup {
  std::int32_t first = 0, lines = 0;  ///< its part of MergeLaunch::lines, best-ranked first: so equals are ordered
  std::int32_t keep = 0;              ///< so many of all candidates; 0: all of them, and as they are
  std::int32_t kept = 0;              ///< where its part of MergeLaunch::kept begins
};

/// A candidate that is kept.
struct Kept {
  std::int32_t parent;  ///< line of the group, in the order of MergeLaunch::lines
  Token token;
  float log_prob;  ///< of the token alone
};

/// The arguments of the merge; all pointers are the device's.
struct MergeLaunch {
  Candidate const* best = nullptr;      ///< [rows, k], as LogSoftmaxTopK leaves it
  LineResult const* results = nullptr;  ///< [rows]: how many each row has
  std::int32_t k = 1;                   ///< in [1, most_listed]

  MergeGroup const* groups = nullptr;  ///< [group_count]
  std::int32_t group_count = 0;
  MergeLine const* lines = nullptr;
  std::int32_t widest = 0;   ///< the largest `lines` of a group with keep > 0, or more
  std::int32_t longest = 0;  ///< the largest `keep`, or more

  Token const* ends = nullptr;  ///< [end_count]: tokens that finish a hypothesis; only `places` looks at them
  std::int32_t end_count = 0;

  /// Of a group with keep > 0: the `keep` best of its candidates, or as many as there are, best first. Of others: line by
  /// line, k entries each, as many of them filled as the row has.
  Kept* kept = nullptr;
  double* totals = nullptr;  ///< as `kept`, or none: base + log_prob
  /// As `kept`, or none; only of groups with keep > 0. Of a candidate that goes on: how many better ones do, which is its
  /// place in the next beam. Of one that ends: ~how many better ones end.
  std::int32_t* places = nullptr;

  LineResult* told = nullptr;  ///< [rows], or none: `results` of all lines once more, for the host
};

}  // namespace sluice::inline v0::cuda
