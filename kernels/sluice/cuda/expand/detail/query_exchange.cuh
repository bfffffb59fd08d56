// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sends queries to the device, and fetches answers.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/detail/add_line.cuh>
#include <sluice/cuda/expand/detail/merge_plan.cuh>
#include <sluice/cuda/expand/detail/selection_plan.cuh>
#include <sluice/cuda/expand/detail/token_masks.cuh>
#include <sluice/cuda/line/edit_order.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/output/line_lists.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace sluice::inline v0::cuda::detail {

/// The frame of a decoder step around the work on its lines: one copy to the device, one back unless kernels write the
/// answers to host memory (StepOptions), and a wait for the stream. Merges beams after the work if groups ask for it.
/// Runs twice if a list by probability did not fit its memory (SelectionPlan). Allocates nothing once it has seen its
/// largest step.
class QueryExchange {
 public:
  QueryExchange() = default;
  /// \param allocator  for device memory
  explicit QueryExchange(Allocator const& allocator, StepOptions const& options = {})
      : options_(options), asked_(allocator), answered_(allocator), between_(allocator), tickets_(allocator) {}

  /// Calls add(task), which enqueues what answers the task, one of our kernels last; calls it again if lists did not
  /// fit.
  /// \param task  everything except the queries
  /// \throws std::invalid_argument  for an invalid query, naming the field
  /// \throws Error  of CUDA
  template <class T, class Add>
  Expansion run(LineTask<T> task, Kind kind, cudaStream_t stream, std::span<Query const> queries,
                std::span<Group const> groups, Add&& add) {
    auto const size = task.scores.columns;
    check_all(queries);
    lists_.clear();
    if (queries.empty()) return lists_.answer(queries, groups);
    task.scores.rows = std::ssize(queries);
    selection_.build(queries, size);
    for (auto const& query : queries) task.k = (std::max)(task.k, listed(query, size));
    auto const whole = task.k > most_listed || selection_.any();
    mapped_ = options_.mapped_answers && !whole;
    plan_.build(queries, whole ? std::span<Group const>() : groups, task.k, LargeMerge::lines, LargeMerge::kept);
    masks_.collect(queries, size);
    while (!attempt(task, kind, stream, queries, add)) lists_.clear();
    return lists_.answer(queries, groups);
  }

  /// \throws std::invalid_argument  for an invalid query, naming the field
  static void check_all(std::span<Query const> queries) {
    for (auto const& query : queries) require(query.best >= 0, "query.best", query.best, "must not be negative");
  }

  /// Bytes of device memory in use.
  std::size_t workspace() const { return asked_.size() + answered_.size() + between_.size() + tickets_.size(); }

 private:
  /// Whether all lists fitted; then they have been fetched.
  template <class T, class Add>
  bool attempt(LineTask<T> task, Kind kind, cudaStream_t stream, std::span<Query const> queries, Add&& add) {
    auto const size = task.scores.columns;
    std::size_t edit_count = 0, probe_count = 0;
    for (auto const& query : queries) edit_count += query.edits.size(), probe_count += query.probes.size();
    auto const merges = plan_.merges();
    auto const listed_in_all = queries.size() * static_cast<std::size_t>(task.k);
    Parts asked, answered;
    auto const ask_queries = asked.add<LineQuery>(queries.size());
    auto const ask_edits = asked.add<Edit>(edit_count);
    auto const ask_probes = asked.add<Token>(probe_count);
    auto const ask_masks = asked.add<std::uint32_t>(masks_.words());
    auto const ask_groups = asked.add<MergeGroup>(merges ? plan_.groups().size() : 0);
    auto const ask_lines = asked.add<MergeLine>(merges ? plan_.lines().size() : 0);
    auto const tails = merges && options_.merge_behind_lines;
    auto const ask_group_of = asked.add<std::int32_t>(tails ? queries.size() : 0);
    auto const selects = selection_.any();
    auto const ask_selection = asked.add<LineSelect>(selects ? queries.size() : 0);
    Parts between;  // data that kernels read again
    auto const tell_results = answered.add<LineResult>(queries.size());
    auto const tell_probes = answered.add<float>(probe_count);
    auto const tell_best = merges ? answered.add<Kept>(plan_.kept()) : answered.add<Candidate>(listed_in_all);
    auto const tell_selection = answered.add<SelectResult>(selects ? queries.size() : 0);
    auto const tell_selected = answered.add<Candidate>(selection_.room());

    auto const mapped = mapped_ && answered.size() <= StepOptions::most_mapped;
    auto const best_between = between.add<Candidate>(merges ? listed_in_all : 0);
    auto const results_between = between.add<LineResult>(merges && mapped ? queries.size() : 0);
    auto const probes_between = between.add<float>(mapped ? probe_count : 0);

    auto* const host = host_.get((std::max)(asked.size(), mapped ? 0 : answered.size()), stream);
    auto* const asks = asked_.get(asked.size(), stream);
    auto* const told = mapped ? straight_.get(answered.size(), stream) : host;
    auto* const tells = mapped ? straight_.on_device()
                               : answered_.get(answered.size(), stream, true);  // all of it is copied, written or not
    auto* const left = between.size() > 0 ? between_.get(between.size(), stream) : nullptr;
    write(queries, kind, size, part<LineQuery>(host, ask_queries), part<Edit>(host, ask_edits),
          part<Token>(host, ask_probes));
    masks_.write(part<std::uint32_t>(host, ask_masks));
    if (merges) {
      std::ranges::copy(plan_.groups(), part<MergeGroup>(host, ask_groups));
      std::ranges::copy(plan_.lines(), part<MergeLine>(host, ask_lines));
    }
    if (tails) plan_.number(part<std::int32_t>(host, ask_group_of));
    if (selects) std::ranges::copy(selection_.lines(), part<LineSelect>(host, ask_selection));
    check(cudaMemcpyAsync(asks, host, asked.size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    task.queries = part<LineQuery>(asks, ask_queries);
    task.edits = part<Edit>(asks, ask_edits), task.probes = part<Token>(asks, ask_probes);
    task.ascending = true;
    if (masks_.words() > 0) task.masks = part<std::uint32_t>(asks, ask_masks);
    task.results = part<LineResult>(tells, tell_results), task.probe_values = part<float>(tells, tell_probes);
    task.best = merges ? part<Candidate>(left, best_between) : part<Candidate>(tells, tell_best);
    if (mapped) task.probe_parts = part<float>(left, probes_between);
    if (mapped && merges) task.results = part<LineResult>(left, results_between);
    if (selects) {
      task.selection.queries = part<LineSelect>(asks, ask_selection);
      task.selection.results = part<SelectResult>(tells, tell_selection);
      task.selection.best = part<Candidate>(tells, tell_selected);
      task.selection.draws = selection_.draws(), task.selection.cuts = selection_.cuts();
      task.selection.single = selection_.single();
    }
    MergeBehindTask behind;
    auto& merge = behind.launch.merge;
    if (merges) {
      merge.best = task.best, merge.results = task.results, merge.k = task.k;
      merge.groups = part<MergeGroup>(asks, ask_groups);
      merge.group_count = static_cast<std::int32_t>(plan_.groups().size());
      merge.lines = part<MergeLine>(asks, ask_lines);
      merge.widest = plan_.widest(), merge.longest = plan_.longest();
      merge.kept = part<Kept>(tells, tell_best);
      if (mapped) merge.told = part<LineResult>(tells, tell_results);
    }
    if (tails) {
      behind.launch.group_of = part<std::int32_t>(asks, ask_group_of);
      behind.launch.tickets =
          static_cast<unsigned*>(tickets_.get(plan_.groups().size() * sizeof(unsigned), stream, true));
      task.merge_behind = &behind;
    }
    add(std::as_const(task));
    if (merges && !behind.merged) merge_beams(merge, stream, options_.behind_ours());
    if (!mapped)
      check(cudaMemcpyAsync(host, tells, answered.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "the answers of a step");
    auto const* const results = part<LineResult>(told, tell_results);
    auto const* const probes = part<float>(told, tell_probes);
    auto const* const selected = part<SelectResult>(told, tell_selection);
    if (selects && !selection_.fits(selected)) return false;
    if (merges) plan_.read(queries, results, probes, part<Kept>(told, tell_best), lists_);
    else
      read(queries, task.k, results, probes, part<Candidate>(told, tell_best), selects ? selected : nullptr,
           part<Candidate>(told, tell_selected));
    return true;
  }

  /// How many tokens a line can list in one pass.
  std::int32_t listed(Query const& query, std::ptrdiff_t size) const {
    if (selection_.lists(query)) return 0;
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(query.best, size));
  }

  void write(std::span<Query const> queries, Kind kind, std::ptrdiff_t size, LineQuery* lines, Edit* edits,
             Token* probes) {
    std::int32_t edit = 0, probe = 0;
    for (auto const& query : queries) {
      auto const before = query.stage == Stage::before_softmax && (!query.edits.empty() || query.only != nullptr);
      auto const changed = before || query.shortlist != nullptr || query.temperature != 1.0f;
      LineQuery line;
      line.best = listed(query, size), line.temperature = query.temperature, line.stage = query.stage;
      line.normalise = query.normalise && (kind == Kind::logits || changed) ? 1 : 0;
      line.edits = edit, line.edit_count = static_cast<std::int32_t>(query.edits.size());
      line.probes = probe, line.probe_count = static_cast<std::int32_t>(query.probes.size());
      line.shortlist = masks_.first(query.shortlist), line.only = masks_.first(query.only);
      *lines++ = line;
      order_.copy(query.edits, edits + edit);
      std::copy(query.probes.begin(), query.probes.end(), probes + probe);
      edit += line.edit_count, probe += line.probe_count;
    }
  }

  /// \param selected, lists  those of further passes; nullptr: none
  void read(std::span<Query const> queries, std::int32_t k, LineResult const* results, float const* probes,
            Candidate const* best, SelectResult const* selected, Candidate const* lists) {
    for (std::size_t i = 0; i < queries.size(); ++i, best += k) {
      auto const again = selected != nullptr && selection_.lists(queries[i]);
      auto const list =
          again ? selection_.list(i, lists, selected) : std::span(best, static_cast<std::size_t>(results[i].count));
      add_line(lists_, queries[i], results[i], list, probes, queries[i].entropy ? selected[i].entropy : 0);
    }
  }

  StepOptions options_;
  bool mapped_ = false;  // no kernel reads this step's answers
  Buffer<Where::device> asked_, answered_, between_, tickets_;
  Buffer<Where::host> host_;
  Buffer<Where::mapped> straight_;
  MergePlan plan_;
  SelectionPlan selection_;
  EditOrder order_;
  TokenMasks masks_;
  LineLists lists_;
};

}  // namespace sluice::inline v0::cuda::detail
