// SPDX-License-Identifier: Apache-2.0
/// \file
/// A task: lines on a device and their queries.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda {

namespace detail {
struct MergeBehindTask;  // in merge/, which depends on lines
}  // namespace detail

/// The work on lines on the device, and where the answers go. All pointers are device pointers.
template <class T>
struct LineTask {
  MatrixView<T const> scores;
  std::int32_t k = 1;                  ///< the largest LineQuery::best; > 64: the slow way
  LineQuery query{};                   ///< for every line
  LineQuery const* queries = nullptr;  ///< or one per line, [rows]
  Edit const* edits = nullptr;         ///< queries name their parts of it; likewise `probes`
  /// Every query's edits are in ascending order of tokens (negative ones last), several edits of one token in the order
  /// in which they apply: a block searches for its own. false: any order; every edited group of 16 bytes reads all
  /// edits of its line.
  bool ascending = false;
  Token const* probes = nullptr;  ///< a token outside [0, V) gives -infinity; an edit of one has no effect
  /// [V], ascending: the token of each place, if scores cover only some tokens; edits, probes and masks name places
  /// (-1: no place, and an edit has no effect). Null: the place itself.
  Token const* tokens = nullptr;
  /// Sets of places, one bit each in ceil(V / 32) words; queries say where their sets begin.
  std::uint32_t const* masks = nullptr;
  float const* bias = nullptr;  ///< [V], 16-byte aligned, followed by 7 zeros; replaces the constructor's bias

  Candidate* best = nullptr;      ///< [rows, k]; each line's result says how many are valid
  float* probe_values = nullptr;  ///< as `probes`
  LineResult* results = nullptr;  ///< [rows]

  LineSelection selection{};  ///< the parts of queries that need further passes

  float* probe_parts = nullptr;  ///< as `probes`: values that tiles pass on to the last one; null: probe_values
  detail::MergeBehindTask* merge_behind =
      nullptr;  ///< in host memory: a merge that the same launch may do; null: no merge, or a later one
};

/// The part of a task for some of its rows.
template <class T>
LineTask<T> rows_of(LineTask<T> task, std::ptrdiff_t first, std::ptrdiff_t count) {
  task.scores.data += first * task.scores.stride, task.scores.rows = count;
  if (task.queries != nullptr) task.queries += first;
  task.best += first * task.k, task.results += first, task.merge_behind = nullptr;
  if (task.selection.queries != nullptr) task.selection.queries += first, task.selection.results += first;
  return task;
}

}  // namespace sluice::inline v0::cuda
