// SPDX-License-Identifier: Apache-2.0
/// \file
/// Device tasks given in C, checked and converted to C++.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/cuda/verify/verification.cuh>

#include "../sized.hpp"
#include "layout.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <sluice_cuda.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::c::device {

template <class T>
T& not_null(T* pointer, std::string_view name) {
  require(pointer != nullptr, name, "null", "must point to something");
  return *pointer;
}

/// What the caller filled, as far as its struct goes.
inline sluice_cuda_allocator taken(sluice_cuda_allocator const& given) {
  return c::taken(given, "sluice_cuda_allocator", offsetof(sluice_cuda_allocator, context));
}
inline sluice_cuda_step_options taken(sluice_cuda_step_options const& given) {
  return c::taken(given, "sluice_cuda_step_options", sizeof(sluice_cuda_step_options));
}
inline sluice_cuda_merge taken(sluice_cuda_merge const& given) {
  return c::taken(given, "sluice_cuda_merge", offsetof(sluice_cuda_merge, totals));
}
inline sluice_cuda_verification taken(sluice_cuda_verification const& given) {
  return c::taken(given, "sluice_cuda_verification", sizeof(sluice_cuda_verification));
}
/// The size of a task without its further passes.
inline constexpr std::size_t shortest_task = offsetof(sluice_cuda_task, selection);
inline sluice_cuda_task taken(sluice_cuda_task const& given) {
  return c::taken(given, "sluice_cuda_task", shortest_task);
}

inline void check_address(void const* pointer, std::size_t bytes, std::string_view name) {
  require(reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0, name, reinterpret_cast<std::uintptr_t>(pointer),
          "must be an address at a multiple of " + std::to_string(bytes) + " bytes");
}

/// Memory that the caller lends; empty: none.
inline std::span<std::byte> workspace(void* given, std::size_t bytes) {
  require(given != nullptr || bytes == 0, "workspace", "null", "must be `bytes` of the device's memory");
  check_address(given, 256, "workspace");
  return {static_cast<std::byte*>(given), given == nullptr ? 0 : bytes};
}

inline bool flag(std::int32_t value, std::string_view name) {
  require(value == 0 || value == 1, name, value, "must be 0 or 1");
  return value == 1;
}

inline cuda::LineQuery query_of(sluice_cuda_task const& task) {
  auto const& query = task.query;
  if (task.queries != nullptr) return {};  // not checked here
  require(query.best >= 0, "query.best", query.best, "must not be negative");
  require(query.temperature > 0, "query.temperature", query.temperature, "must be positive");
  require(query.stage <= SLUICE_CUDA_AFTER_SOFTMAX, "query.stage", static_cast<int>(query.stage), "must be 0 or 1");
  require(query.edit_count >= 0, "query.edit_count", query.edit_count, "must not be negative");
  require(query.probe_count >= 0, "query.probe_count", query.probe_count, "must not be negative");
  require(query.edit_count == 0 || task.edits != nullptr, "edits", "null", "must be there, as the query names some");
  require(query.probe_count == 0 || (task.probes != nullptr && task.probe_values != nullptr), "probes, probe_values",
          "null", "must be there, as the query names some");
  require((query.shortlist < 0 && query.only < 0) || task.masks != nullptr, "masks", "null",
          "must be there, as the query names some");
  return std::bit_cast<cuda::LineQuery>(query);
}

inline cuda::LineSelection selection_of(sluice_cuda_task const& task) {
  auto const& selection = task.selection;
  if (selection.queries == nullptr) return {};
  auto const draws = flag(selection.draws, "selection.draws"), cuts = flag(selection.cuts, "selection.cuts");
  require(selection.results != nullptr, "selection.results", "null", "must be there");
  require(selection.best != nullptr || (!draws && !cuts), "selection.best", "null", "must be there");
  check_address(selection.queries, alignof(cuda::LineSelect), "selection.queries");
  return {as<cuda::LineSelect const>(selection.queries),
          as<cuda::SelectResult>(selection.results),
          as<Candidate>(selection.best),
          draws,
          cuts,
          flag(selection.single, "selection.single")};
}

/// \throws std::invalid_argument  for arguments that no kernel accepts
template <class T>
cuda::LineTask<T> line_task(sluice_cuda_task const& task) {
  require(task.rows >= 0, "rows", task.rows, "must not be negative");
  require(task.columns >= 1, "columns", task.columns, "must be at least 1");
  require(task.k >= 1, "k", task.k, "must be at least 1");
  if (task.rows > 0) {
    not_null(static_cast<char const*>(task.scores), "scores");
    check_address(task.scores, sizeof(T), "scores");
    require(task.best != nullptr, "best", "null", "must be there");
    require(task.results != nullptr, "results", "null", "must be there");
  }
  check_address(task.bias, 16, "bias");
  cuda::LineTask<T> made;
  made.scores = {static_cast<T const*>(task.scores), static_cast<std::ptrdiff_t>(task.rows),
                 static_cast<std::ptrdiff_t>(task.columns),
                 static_cast<std::ptrdiff_t>(task.stride == 0 ? task.columns : task.stride)};
  made.k = task.k, made.query = query_of(task), made.queries = as<cuda::LineQuery const>(task.queries);
  made.edits = as<Edit const>(task.edits), made.probes = task.probes, made.tokens = task.tokens;
  made.masks = task.masks, made.bias = task.bias, made.ascending = task.ascending != 0;
  made.best = as<Candidate>(task.best), made.probe_values = task.probe_values;
  made.results = as<cuda::LineResult>(task.results), made.selection = selection_of(task);
  return made;
}
/// What a beam asks for each line.
inline sluice_cuda_task task_of(cuda::LineTask<float> const& asked) {
  auto made = sluice_cuda_task_init();
  made.rows = asked.scores.rows, made.columns = asked.scores.columns, made.k = asked.k;
  made.queries = as<sluice_cuda_query const>(asked.queries), made.edits = as<sluice_cuda_edit const>(asked.edits);
  made.probes = asked.probes, made.best = as<sluice_cuda_candidate>(asked.best);
  made.probe_values = asked.probe_values, made.results = as<sluice_cuda_line>(asked.results);
  return made;
}
/// \throws std::invalid_argument  for a task that is not this beam's
inline void check_task(sluice_cuda_task const& task, sluice_cuda_task const& wanted) {
  constexpr auto rule = "must be what sluice_cuda_beam_task() says";
  require(task.rows == wanted.rows, "task.rows", task.rows, rule);
  require(task.columns == wanted.columns, "task.columns", task.columns, rule);
  require(task.k == wanted.k, "task.k", task.k, rule);
  require(task.queries == wanted.queries, "task.queries", "another", rule);
  require(task.edits == wanted.edits, "task.edits", "another", rule);
  require(task.probes == wanted.probes, "task.probes", "another", rule);
  require(task.tokens == nullptr, "task.tokens", "not null", rule);
  require(task.best == wanted.best, "task.best", "another", rule);
  require(task.probe_values == wanted.probe_values, "task.probe_values", "another", rule);
  require(task.results == wanted.results, "task.results", "another", rule);
}

/// Calls f(LineTask<T>) with the type of the scores.
/// \throws std::invalid_argument  for invalid arguments
template <class F>
decltype(auto) with_task(sluice_cuda_task const& task, F&& f) {
  switch (task.type) {
    case SLUICE_CUDA_FLOAT: return f(line_task<float>(task));
    case SLUICE_CUDA_HALF: return f(line_task<__half>(task));
    default: break;
  }
  require(task.type == SLUICE_CUDA_BFLOAT16, "type", task.type,
          "must be SLUICE_CUDA_FLOAT, SLUICE_CUDA_HALF or SLUICE_CUDA_BFLOAT16");
  return f(line_task<__nv_bfloat16>(task));
}

/// Checks what `merge_beams` does not check itself.
inline cuda::MergeLaunch merge_launch(sluice_cuda_merge const& merge) {
  auto const some = merge.group_count > 0;
  require(!some || merge.best != nullptr, "best", "null", "must be there");
  require(!some || merge.results != nullptr, "results", "null", "must be there");
  require(!some || merge.groups != nullptr, "groups", "null", "must be there");
  require(!some || merge.lines != nullptr, "lines", "null", "must be there");
  require(!some || merge.kept != nullptr, "kept", "null", "must be there");
  require(merge.end_count <= 0 || merge.ends != nullptr, "ends", "null", "must be end_count tokens");
  cuda::MergeLaunch made;
  made.best = as<Candidate const>(merge.best), made.results = as<cuda::LineResult const>(merge.results);
  made.k = merge.k;
  made.groups = as<cuda::MergeGroup const>(merge.groups), made.group_count = merge.group_count;
  made.lines = as<cuda::MergeLine const>(merge.lines), made.widest = merge.widest, made.longest = merge.longest;
  made.ends = merge.ends, made.end_count = merge.end_count;
  made.kept = as<cuda::Kept>(merge.kept), made.totals = merge.totals, made.places = merge.places;
  return made;
}

/// `verify` checks the rest.
inline cuda::Verification verification(sluice_cuda_verification const& task) {
  require(task.accept >= SLUICE_CUDA_EXACT && task.accept <= SLUICE_CUDA_DISTANCE, "accept", task.accept,
          "must be SLUICE_CUDA_EXACT, SLUICE_CUDA_TOP_K or SLUICE_CUDA_DISTANCE");
  require(task.vocabulary >= 0, "vocabulary", task.vocabulary, "must not be negative");
  cuda::Verification made;
  made.sentences = task.sentences, made.block = task.block;
  made.best = as<Candidate const>(task.best), made.results = as<cuda::LineResult const>(task.results);
  made.k = task.k, made.guess_log_probs = task.guess_log_probs, made.first_lines = task.first_lines;
  made.guesses = task.guesses, made.guess_stride = task.guess_stride, made.guess_counts = task.guess_counts;
  made.accept = static_cast<cuda::Accept>(task.accept), made.n = task.n;
  if (task.minimum != 0) made.minimum = task.minimum;
  if (task.vocabulary != 0) made.vocabulary_size = task.vocabulary;
  made.eos = task.eos, made.eos_count = task.eos_count;
  made.tokens = as<Candidate>(task.tokens), made.verdicts = as<cuda::Verdict>(task.verdicts);
  return made;
}

}  // namespace sluice::c::device
