// SPDX-License-Identifier: Apache-2.0
/// \file
/// Queries to the device, answers back.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/add_line.cuh>
#include <sluice/cuda/allocator.cuh>
#include <sluice/cuda/buffer.cuh>
#include <sluice/cuda/error.cuh>
#include <sluice/cuda/line_query.cuh>
#include <sluice/cuda/line_task.cuh>
#include <sluice/cuda/merge_launch.cuh>
#include <sluice/cuda/merge_plan.cuh>
#include <sluice/cuda/merge_query.cuh>
#include <sluice/cuda/token_masks.cuh>
#include <sluice/output/line/line_lists.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace sluice::inline v0::cuda {

/// What a step of a decoder does around the work on its lines: one copy there, one back, and a wait for the stream. Merges
/// beams behind the work where groups ask for it. Allocates nothing once it has seen its largest step.
class QueryExchange {
 public:
  QueryExchange() = default;
  /// \param allocator  of the device's memory
  explicit QueryExchange(Allocator const& allocator)
      : asked_(allocator), answered_(allocator), lists_memory_(allocator) {}

  /// Calls add(task), which adds to the stream what answers the task.
  /// \param task  all but what queries say
  /// \throws std::invalid_argument  for a query that the device does not answer, naming the field
  /// \throws Error  of CUDA
  template <class T, class Add>
  Expansion run(LineTask<T> task, Kind kind, cudaStream_t stream, std::span<Query const> queries,
                std::span<Group const> groups, Add&& add) {
    auto const size = task.scores.columns;
    check_all(queries);
    lists_.clear();
    if (queries.empty()) return lists_.answer(queries, groups);
    task.scores.rows = std::ssize(queries);
    std::size_t edit_count = 0, probe_count = 0;
    for (auto const& query : queries) {
      task.k = std::max(task.k, listed(query, size));
      edit_count += query.edits.size(), probe_count += query.probes.size();
    }
    plan_.build(queries, task.k <= most_listed ? groups : std::span<Group const>(), task.k, LargeMerge::lines,
                LargeMerge::kept);
    masks_.collect(queries, size);
    auto const merges = plan_.merges();
    auto const listed_in_all = queries.size() * static_cast<std::size_t>(task.k);
    Parts asked, answered;
    auto const ask_queries = asked.add<LineQuery>(queries.size());
    auto const ask_edits = asked.add<Edit>(edit_count);
    auto const ask_probes = asked.add<Token>(probe_count);
    auto const ask_masks = asked.add<std::uint32_t>(masks_.words());
    auto const ask_groups = asked.add<MergeGroup>(merges ? plan_.groups().size() : 0);
    auto const ask_lines = asked.add<MergeLine>(merges ? plan_.lines().size() : 0);
    auto const tell_results = answered.add<LineResult>(queries.size());
    auto const tell_probes = answered.add<float>(probe_count);
    auto const tell_best = merges ? answered.add<Kept>(plan_.kept()) : answered.add<Candidate>(listed_in_all);

    auto* const host = host_.get(std::max(asked.size(), answered.size()), stream);
    auto* const asks = asked_.get(asked.size(), stream);
    auto* const tells = answered_.get(answered.size(), stream, true);  // all of it is copied, written or not
    write(queries, kind, size, part<LineQuery>(host, ask_queries), part<Edit>(host, ask_edits),
          part<Token>(host, ask_probes));
    masks_.write(part<std::uint32_t>(host, ask_masks));
    if (merges) {
      std::ranges::copy(plan_.groups(), part<MergeGroup>(host, ask_groups));
      std::ranges::copy(plan_.lines(), part<MergeLine>(host, ask_lines));
    }
    check(cudaMemcpyAsync(asks, host, asked.size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    task.queries = part<LineQuery>(asks, ask_queries);
    task.edits = part<Edit>(asks, ask_edits), task.probes = part<Token>(asks, ask_probes);
    if (masks_.words() > 0) task.masks = part<std::uint32_t>(asks, ask_masks);
    task.results = part<LineResult>(tells, tell_results), task.probe_values = part<float>(tells, tell_probes);
    task.best = merges ? static_cast<Candidate*>(lists_memory_.get(listed_in_all * sizeof(Candidate), stream))
                       : part<Candidate>(tells, tell_best);
    add(std::as_const(task));
    if (merges) {
      MergeLaunch merge;
      merge.best = task.best, merge.results = task.results, merge.k = task.k;
      merge.groups = part<MergeGroup>(asks, ask_groups);
      merge.group_count = static_cast<std::int32_t>(plan_.groups().size());
      merge.lines = part<MergeLine>(asks, ask_lines);
      merge.widest = plan_.widest(), merge.longest = plan_.longest();
      merge.kept = part<Kept>(tells, tell_best);
      merge_beams(merge, stream);
    }
    check(cudaMemcpyAsync(host, tells, answered.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "the answers of a step");
    auto const* const results = part<LineResult>(host, tell_results);
    auto const* const probes = part<float>(host, tell_probes);
    if (merges) plan_.read(queries, results, probes, part<Kept>(host, tell_best), lists_);
    else read(queries, task.k, results, probes, part<Candidate>(host, tell_best));
    return lists_.answer(queries, groups);
  }

  /// \throws std::invalid_argument  for a query that the device does not answer, naming the field
  static void check_all(std::span<Query const> queries) {
    for (auto const& query : queries) check_query(query);
  }

  /// Bytes of the device's memory in use.
  std::size_t workspace() const { return asked_.size() + answered_.size() + lists_memory_.size(); }

 private:
  static void check_query(Query const& query) {
    require(query.best >= 0, "query.best", query.best, "must not be negative");
    require(query.mass <= 0, "query.mass", query.mass, "is not answered on a device");
    require(query.within <= 0, "query.within", query.within, "is not answered on a device");
    require(query.typical <= 0, "query.typical", query.typical, "is not answered on a device");
    require(query.deviations <= 0, "query.deviations", query.deviations, "is not answered on a device");
    require(query.at_least <= 0, "query.at_least", query.at_least, "is not answered on a device");
    require(query.noise == 0, "query.noise", query.noise, "is not answered on a device");
    require(!query.entropy, "query.entropy", true, "is not answered on a device");
    for (auto const& edit : query.edits)
      require(edit.penalty == 1 || query.stage == Stage::before_softmax, "edit.penalty", edit.penalty,
              "is not applied after the softmax on a device");
  }

  /// How many a line can list.
  static std::int32_t listed(Query const& query, std::ptrdiff_t size) {
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(query.best, size));
  }

  void write(std::span<Query const> queries, Kind kind, std::ptrdiff_t size, LineQuery* lines, Edit* edits,
             Token* probes) const {
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
      std::copy(query.edits.begin(), query.edits.end(), edits + edit);
      std::copy(query.probes.begin(), query.probes.end(), probes + probe);
      edit += line.edit_count, probe += line.probe_count;
    }
  }

  void read(std::span<Query const> queries, std::int32_t k, LineResult const* results, float const* probes,
            Candidate const* best) {
    for (auto const& query : queries) {
      add_line(lists_, query, *results, {best, static_cast<std::size_t>(results->count)}, probes);
      ++results, best += k;
    }
  }

  Buffer<Where::device> asked_, answered_, lists_memory_;
  Buffer<Where::host> host_;
  MergePlan plan_;
  TokenMasks masks_;
  LineLists lists_;
};

}  // namespace sluice::inline v0::cuda
