// SPDX-License-Identifier: Apache-2.0
/// \file
/// Input and output of the merge of beams.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// A hypothesis, and where its candidates are listed.
struct MergeLine {
  double base = 0;       ///< its log-probability; a candidate's is base + log_prob, added in double precision
  std::int32_t row = 0;  ///< its list: [row, k]
};

/// The lines of one sentence.
struct MergeGroup {
  std::int32_t first = 0, lines = 0;  ///< its part of MergeLaunch::lines, best first, which breaks ties
  std::int32_t keep = 0;              ///< the number of candidates kept; 0: all of them, unmerged
  std::int32_t kept = 0;              ///< where its part of MergeLaunch::kept begins
};

/// A candidate that is kept.
struct Kept {
  std::int32_t parent;  ///< line of the group, in the order of MergeLaunch::lines
  Token token;
  float log_prob;  ///< of the token alone
};

/// The arguments of the merge; all pointers are device pointers.
struct MergeLaunch {
  Candidate const* best = nullptr;      ///< [rows, k], as LogSoftmaxTopK writes it
  LineResult const* results = nullptr;  ///< [rows]: the number of candidates of each row
  std::int32_t k = 1;                   ///< in [1, most_listed]

  MergeGroup const* groups = nullptr;  ///< [group_count]
  std::int32_t group_count = 0;
  MergeLine const* lines = nullptr;
  std::int32_t widest = 0;   ///< the largest `lines` of a group with keep > 0, or more
  std::int32_t longest = 0;  ///< the largest `keep`, or more

  Token const* ends = nullptr;  ///< [end_count]: tokens that finish a hypothesis; used only for `places`
  std::int32_t end_count = 0;

  /// For a group with keep > 0: its `keep` best candidates, or as many as there are, best first. For others: line by
  /// line, k entries each, of which as many are filled as the row has.
  Kept* kept = nullptr;
  double* totals = nullptr;  ///< as `kept`, or null: base + log_prob
  /// As `kept`, or null; only for groups with keep > 0. For a candidate that continues: how many better ones continue,
  /// which is its place in the next beam. For one that ends: ~(how many better ones end).
  std::int32_t* places = nullptr;

  LineResult* told = nullptr;  ///< [rows], or null: a copy of the `results` of all lines, for the host
};

}  // namespace sluice::inline v0::cuda
