// SPDX-License-Identifier: Apache-2.0
/// \file
/// LogSoftmaxTopK on a device: the expander for models whose scores are there.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/add_line.cuh>
#include <sluice/cuda/buffer.cuh>
#include <sluice/cuda/error.cuh>
#include <sluice/cuda/line_launch.cuh>
#include <sluice/cuda/line_query.cuh>
#include <sluice/cuda/line_shape.cuh>
#include <sluice/cuda/merge_launch.cuh>
#include <sluice/cuda/merge_plan.cuh>
#include <sluice/cuda/merge_query.cuh>
#include <sluice/cuda/scores.cuh>
#include <sluice/output/line_lists.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda {

/// What is to be done with lines on the device, and where the answers go. All pointers are the device's.
template <class T>
struct LineTask {
  MatrixView<T const> scores;
  std::int32_t k = 1;                  ///< the largest LineQuery::best
  LineQuery query{};                   ///< of every line
  LineQuery const* queries = nullptr;  ///< or one each, [rows]
  Edit const* edits = nullptr;         ///< the lines' parts of it are named by their queries; so with `probes`
  Token const* probes = nullptr;
  Token const* tokens =
      nullptr;  ///< [V], ascending: the token of each place, where scores are those of some tokens only;
                ///< edits and probes name places. None: the place itself

  Candidate* best = nullptr;      ///< [rows, k]; of each line as many as its result says
  float* probe_values = nullptr;  ///< as `probes`
  LineResult* results = nullptr;  ///< [rows]
};

/// Bias, softmax and selection in one launch that reads each line once; see sluice::LogSoftmaxTopK, of which this is the
/// twin: same queries, same order of ties, and log-probabilities that err by at most 1e-5. Of a Query it answers `best` up
/// to 64, `probes`, `edits` (without penalties after the softmax), `temperature` and `normalise`.
///
/// A line's answer depends on that line alone, to the last bit: not on the number of lines, their address or how they are
/// shared out. The order of a line's blocks does not matter; none waits for another.
///
/// An object belongs to the device that was current when it was first used, and to one stream at a time: two streams at
/// once need two objects. Allocates nothing once it has seen its largest task.
class LogSoftmaxTopK {
 public:
  LogSoftmaxTopK() = default;
  /// \param bias  added to every line, [V], in the host's memory, copied; empty: none
  /// \throws Error  of CUDA
  explicit LogSoftmaxTopK(std::span<float const> bias) : bias_size_(std::ssize(bias)) {
    if (bias.empty()) return;
    bias_ = static_cast<float*>(bias_memory_.get((bias.size() + 8) * sizeof(float), nullptr, true));
    check(cudaMemcpy(bias_, bias.data(), bias.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  /// Adds the work to the stream. May be captured in a graph, once the same task, or a larger one, has run before; such a
  /// graph stays good when the workspace grows, and lives no longer than this object.
  /// \throws std::invalid_argument  for a task that makes no sense
  /// \throws Error  of CUDA
  template <class T>
  void enqueue(LineTask<T> const& task, cudaStream_t stream) {
    using Format = FormatOf<T>;
    auto const rows = task.scores.rows, size = task.scores.columns;
    if (rows == 0) return;
    require(bias_ == nullptr || bias_size_ == size, "LogSoftmaxTopK: bias.size()", bias_size_,
            "must be 0 or the number of columns");
    require(size >= 1 && size < 0x7fffffff - 0x10000, "LogSoftmaxTopK: columns", size,
            "must be at least 1, and 31 bits");
    require(task.k >= 1 && task.k <= most_listed, "LogSoftmaxTopK: k", task.k, "must be in [1, 64]");
    auto const chunks = LineShape::chunks<Format>(size, line_threads);
    auto const shape = LineShape::of(chunks, rows, 2 * processors());
    require(LineShape::fits(shape.splits, task.k, line_threads), "LogSoftmaxTopK: columns", size, "are too many for k");
    require(rows <= 0x7fffffff / shape.splits, "LogSoftmaxTopK: rows", rows, "are too many");

    LineLaunch<Format> launch;
    launch.scores = reinterpret_cast<typename Format::Bits const*>(task.scores.data);
    launch.stride = task.scores.stride;
    launch.size = static_cast<std::int32_t>(size), launch.rows = static_cast<std::int32_t>(rows);
    launch.k = task.k, launch.chunks = shape.chunks_of_block, launch.splits = shape.splits;
    launch.common = task.query, launch.queries = task.queries;
    launch.bias = bias_, launch.tokens = task.tokens, launch.edits = task.edits, launch.probes = task.probes;
    launch.best = task.best, launch.probe_values = task.probe_values, launch.results = task.results;
    if (shape.splits > 1) {
      auto const lines = static_cast<std::size_t>(rows);
      Parts parts;
      auto const keys =
          parts.add<Key>(lines * static_cast<std::size_t>(task.k) * static_cast<std::size_t>(shape.splits));
      auto const sums = parts.add<PartialSum>(lines * static_cast<std::size_t>(chunks) * (line_threads / 32));
      auto* const memory = workspace_.get(parts.size(), stream);
      launch.keys = part<Key>(memory, keys), launch.sums = part<PartialSum>(memory, sums);
      launch.tickets = static_cast<unsigned*>(tickets_.get(lines * sizeof(unsigned), stream, true));
    }
    launch_lines(launch, stream);
  }

  /// The answers in the host's memory: one copy there, one launch, one copy back, and a wait for the stream. Where groups ask
  /// to keep some of their candidates alone (Group::keep, at most 256 of at most 128 lines), a second launch merges their
  /// lists, and only what is kept is copied back.
  /// \throws std::invalid_argument  for a query that the device does not answer, naming the field
  /// \throws Error  of CUDA
  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    for (auto const& query : queries) check_query(query, scores.columns);
    lists_.clear();
    if (queries.empty()) return lists_.answer(queries, groups);
    LineTask<T> task;
    task.scores = scores;
    task.scores.rows = std::ssize(queries);
    std::size_t edit_count = 0, probe_count = 0;
    for (auto const& query : queries) {
      task.k = std::max(task.k, query.best);
      edit_count += query.edits.size(), probe_count += query.probes.size();
    }
    plan_.build(queries, groups, task.k, LargeMerge::lines, LargeMerge::kept);
    auto const merges = plan_.merges();
    auto const listed = queries.size() * static_cast<std::size_t>(task.k);
    Parts asked, answered;
    auto const ask_queries = asked.add<LineQuery>(queries.size());
    auto const ask_edits = asked.add<Edit>(edit_count);
    auto const ask_probes = asked.add<Token>(probe_count);
    auto const ask_groups = asked.add<MergeGroup>(merges ? plan_.groups().size() : 0);
    auto const ask_lines = asked.add<MergeLine>(merges ? plan_.lines().size() : 0);
    auto const tell_results = answered.add<LineResult>(queries.size());
    auto const tell_probes = answered.add<float>(probe_count);
    auto const tell_best = merges ? answered.add<Kept>(plan_.kept()) : answered.add<Candidate>(listed);

    auto* const host = host_.get(std::max(asked.size(), answered.size()), scores.stream);
    auto* const asks = asked_.get(asked.size(), scores.stream);
    auto* const tells = answered_.get(answered.size(), scores.stream);
    write(queries, scores.kind, part<LineQuery>(host, ask_queries), part<Edit>(host, ask_edits),
          part<Token>(host, ask_probes));
    if (merges) {
      std::ranges::copy(plan_.groups(), part<MergeGroup>(host, ask_groups));
      std::ranges::copy(plan_.lines(), part<MergeLine>(host, ask_lines));
    }
    check(cudaMemcpyAsync(asks, host, asked.size(), cudaMemcpyHostToDevice, scores.stream), "cudaMemcpyAsync");
    task.queries = part<LineQuery>(asks, ask_queries);
    task.edits = part<Edit>(asks, ask_edits), task.probes = part<Token>(asks, ask_probes);
    task.results = part<LineResult>(tells, tell_results), task.probe_values = part<float>(tells, tell_probes);
    task.best = merges ? static_cast<Candidate*>(lists_memory_.get(listed * sizeof(Candidate), scores.stream))
                       : part<Candidate>(tells, tell_best);
    enqueue(task, scores.stream);
    if (merges) {
      MergeLaunch merge;
      merge.best = task.best, merge.results = task.results, merge.k = task.k;
      merge.groups = part<MergeGroup>(asks, ask_groups);
      merge.group_count = static_cast<std::int32_t>(plan_.groups().size());
      merge.lines = part<MergeLine>(asks, ask_lines);
      merge.widest = plan_.widest(), merge.longest = plan_.longest();
      merge.kept = part<Kept>(tells, tell_best);
      merge_beams(merge, scores.stream);
    }
    check(cudaMemcpyAsync(host, tells, answered.size(), cudaMemcpyDeviceToHost, scores.stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(scores.stream), "LogSoftmaxTopK::expand");
    auto const* const results = part<LineResult>(host, tell_results);
    auto const* const probes = part<float>(host, tell_probes);
    if (merges) plan_.read(queries, results, probes, part<Kept>(host, tell_best), lists_);
    else read(queries, task.k, results, probes, part<Candidate>(host, tell_best));
    return lists_.answer(queries, groups);
  }

  /// Bytes of the device's memory in use, old pieces not counted.
  std::size_t workspace() const {
    return workspace_.size() + tickets_.size() + asked_.size() + answered_.size() + lists_memory_.size();
  }

 private:
  static void check_query(Query const& query, std::ptrdiff_t size) {
    auto const inside = [size](Token token) { return token >= 0 && token < size; };
    require(query.best >= 0 && query.best <= most_listed, "query.best", query.best, "must be in [0, 64] on a device");
    require(query.mass <= 0, "query.mass", query.mass, "is not answered on a device");
    require(query.within <= 0, "query.within", query.within, "is not answered on a device");
    require(query.typical <= 0, "query.typical", query.typical, "is not answered on a device");
    require(query.noise == 0, "query.noise", query.noise, "is not answered on a device");
    require(!query.entropy, "query.entropy", true, "is not answered on a device");
    require(query.only == nullptr, "query.only", true, "is not answered on a device");
    require(query.shortlist == nullptr, "query.shortlist", true, "is not answered on a device");
    for (auto const token : query.probes) require(inside(token), "query.probes", token, "is outside the line");
    for (auto const& edit : query.edits) {
      require(inside(edit.token), "query.edits", edit.token, "is outside the line");
      require(edit.penalty == 1 || query.stage == Stage::before_softmax, "edit.penalty", edit.penalty,
              "is not applied after the softmax on a device");
    }
  }

  static void write(std::span<Query const> queries, Kind kind, LineQuery* lines, Edit* edits, Token* probes) {
    std::int32_t edit = 0, probe = 0;
    for (auto const& query : queries) {
      auto const changed = query.temperature != 1.0f || (query.stage == Stage::before_softmax && !query.edits.empty());
      LineQuery line;
      line.best = query.best, line.temperature = query.temperature, line.stage = query.stage;
      line.normalise = query.normalise && (kind == Kind::logits || changed) ? 1 : 0;
      line.edits = edit, line.edit_count = static_cast<std::int32_t>(query.edits.size());
      line.probes = probe, line.probe_count = static_cast<std::int32_t>(query.probes.size());
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

  std::int64_t processors() {
    if (processors_ == 0) {
      int device = 0;
      check(cudaGetDevice(&device), "cudaGetDevice");
      check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    }
    return processors_;
  }

  std::ptrdiff_t bias_size_ = 0;
  float* bias_ = nullptr;
  int processors_ = 0;
  Buffer<Where::device> bias_memory_, workspace_, tickets_, asked_, answered_, lists_memory_;
  Buffer<Where::host> host_;
  MergePlan plan_;
  LineLists lists_;
};

}  // namespace sluice::inline v0::cuda
