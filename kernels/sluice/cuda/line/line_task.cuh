// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines on a device and what is asked of them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::cuda {

struct TailTask;  // of merge/, which knows of lines

/// What is to be done with lines on the device, and where the answers go. All pointers are the device's.
template <class T>
struct LineTask {
  MatrixView<T const> scores;
  std::int32_t k = 1;                  ///< the largest LineQuery::best; > 64: the slow way
  LineQuery query{};                   ///< of every line
  LineQuery const* queries = nullptr;  ///< or one each, [rows]
  Edit const* edits = nullptr;         ///< the lines' parts of it are named by their queries; so with `probes`
  bool ascending =
      false;  ///< every query's edits are in ascending order of tokens (those below 0 behind all others), several of
              ///< one token in the order in which they act: a block finds its own among them. false: any order;
              ///< every edited group of 16 bytes takes a look at all edits of its line
  Token const* probes = nullptr;  ///< a token outside [0, V): -infinity; an edit of one edits nothing
  Token const* tokens =
      nullptr;  ///< [V], ascending: the token of each place, where scores are those of some tokens only;
                ///< edits, probes and masks name places (-1: no place, an edit of nothing). None: the place itself
  std::uint32_t const* masks =
      nullptr;                  ///< sets of places, a bit each and ceil(V / 32) words; queries say where theirs begin
  float const* bias = nullptr;  ///< [V], 16-byte aligned, with 7 zeros behind it; instead of the constructor's

  Candidate* best = nullptr;      ///< [rows, k]; of each line as many as its result says
  float* probe_values = nullptr;  ///< as `probes`
  LineResult* results = nullptr;  ///< [rows]

  LineSelection selection{};  ///< what lines ask that takes another look at them

  float* probe_parts = nullptr;  ///< as `probes`: where tiles leave what the last one reads; none: probe_values
  TailTask* tail =
      nullptr;  ///< of the host's: a merge that one launch may do, too; none: there is no merge, or it comes later
};

/// The part of a task that is about some of its rows.
template <class T>
LineTask<T> rows_of(LineTask<T> task, std::ptrdiff_t first, std::ptrdiff_t count) {
  task.scores.data += first * task.scores.stride, task.scores.rows = count;
  if (task.queries != nullptr) task.queries += first;
  task.best += first * task.k, task.results += first, task.tail = nullptr;
  if (task.selection.queries != nullptr) task.selection.queries += first, task.selection.results += first;
  return task;
}

}  // namespace sluice::inline v0::cuda
