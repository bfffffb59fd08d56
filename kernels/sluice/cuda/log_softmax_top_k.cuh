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
#include <sluice/cuda/line_order_launch.cuh>
#include <sluice/cuda/line_query.cuh>
#include <sluice/cuda/line_shape.cuh>
#include <sluice/cuda/merge_launch.cuh>
#include <sluice/cuda/merge_plan.cuh>
#include <sluice/cuda/merge_query.cuh>
#include <sluice/cuda/scores.cuh>
#include <sluice/output/line/line_lists.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda {

/// What is to be done with lines on the device, and where the answers go. All pointers are the device's.
template <class T>
struct LineTask {
  MatrixView<T const> scores;
  std::int32_t k = 1;                  ///< the largest LineQuery::best; > 64: the slow way
  LineQuery query{};                   ///< of every line
  LineQuery const* queries = nullptr;  ///< or one each, [rows]
  Edit const* edits = nullptr;         ///< the lines' parts of it are named by their queries; so with `probes`
  Token const* probes = nullptr;
  Token const* tokens =
      nullptr;  ///< [V], ascending: the token of each place, where scores are those of some tokens only;
                ///< edits and probes name places (-1: no place, an edit of nothing). None: the place itself
  float const* bias = nullptr;  ///< [V], 16-byte aligned, with 7 zeros behind it; instead of the constructor's

  Candidate* best = nullptr;      ///< [rows, k]; of each line as many as its result says
  float* probe_values = nullptr;  ///< as `probes`
  LineResult* results = nullptr;  ///< [rows]
};

/// The part of a task that is about some of its rows.
template <class T>
LineTask<T> rows_of(LineTask<T> task, std::ptrdiff_t first, std::ptrdiff_t count) {
  task.scores.data += first * task.scores.stride, task.scores.rows = count;
  if (task.queries != nullptr) task.queries += first;
  task.best += first * task.k, task.results += first;
  return task;
}

/// Bias, softmax and selection in one launch that reads each line once; see sluice::LogSoftmaxTopK, of which this is the
/// twin: same queries, same order of ties, and log-probabilities that err by at most 1e-5. Of a Query it answers `best`,
/// `probes`, `edits` (without penalties after the softmax), `temperature` and `normalise`.
///
/// Where any line wants more than 64, all of them take a slower way: three passes over the scores, and a sort of 8 bytes for each
/// (CUB's, so 16 bytes of workspace a score, for at most 16 million scores at once). Its answers are the same, bit for bit.
///
/// A line's answer depends on that line alone, to the last bit: not on the number of lines, their address or how they are
/// shared out. The order of a line's blocks does not matter; none waits for another.
///
/// An object belongs to the device that was current when it was first used, and to one stream at a time: two streams at
/// once need two objects. Allocates nothing once it has seen its largest task.
class LogSoftmaxTopK {
 public:
  static constexpr bool answers_entropy = false;

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
    if (task.scores.rows == 0) return;
    if (task.k > most_listed) return enqueue_sorted(task, stream);
    launch_lines(prepare(task, LineShape::chunks<FormatOf<T>>(task.scores.columns, line_threads), stream), stream);
  }

  /// The same for lines that are made tile by tile, so that no more of them than a tile ever lies in memory: calls
  /// product(first, count), which adds to the stream what writes columns first .. first + count - 1 of all lines to the
  /// first `count` columns of the tile, then adds what reads them. The answers are those of enqueue() for whole lines, bit
  /// for bit.
  /// \param task  its scores have rows and columns; their memory is not looked at. k is at most 64
  /// \param tile  [rows, a multiple of tile_columns<T>()], at an address and with a stride that are multiples of 16 bytes;
  ///              not all of its columns need be used at once
  template <class T, class Product>
  void enqueue_tiles(LineTask<T> task, MatrixView<T> tile, cudaStream_t stream, Product&& product) {
    if (task.scores.rows == 0) return;
    auto const chunk = tile_columns<T>(), size = task.scores.columns;
    require(tile.columns >= chunk && tile.columns % chunk == 0 && tile.rows == task.scores.rows,
            "LogSoftmaxTopK: tile.columns", tile.columns, "must be a multiple of tile_columns(), with all rows");
    require(reinterpret_cast<std::uintptr_t>(tile.data) % 16 == 0 && tile.stride * sizeof(T) % 16 == 0,
            "LogSoftmaxTopK: tile.stride", tile.stride, "must be a multiple of 16 bytes, as the address");
    require(task.k <= most_listed, "LogSoftmaxTopK: k", task.k, "must be at most 64 where lines are made in tiles");
    task.scores.data = tile.data, task.scores.stride = tile.stride;
    auto launch = prepare(task, tile.columns / chunk, stream);
    if (size <= tile.columns) {
      product(std::ptrdiff_t{0}, size);
      return launch_lines(launch, stream);
    }
    auto const of_block = launch.chunks * chunk, width = tile.columns / of_block * of_block;
    auto const* const scores = launch.scores;
    try {
      for (std::ptrdiff_t first = 0; first < size; first += width) {
        auto const count = std::min(width, size - first);
        product(first, count);
        launch.scores = scores - first;
        launch.first_split = static_cast<std::int32_t>(first / of_block);
        launch.tile_splits = static_cast<std::int32_t>((count + of_block - 1) / of_block);
        launch_lines(launch, stream);
      }
    } catch (...) {  // blocks that never came would be missed by the next lines
      auto const bytes = static_cast<std::size_t>(launch.rows) * sizeof(unsigned);
      static_cast<void>(cudaMemsetAsync(launch.tickets, 0, bytes, stream));
      throw;
    }
  }
  /// What the width of a tile is a multiple of.
  template <class T>
  static constexpr std::ptrdiff_t tile_columns() {
    return std::ptrdiff_t{LineShape::loads} * line_threads * FormatOf<T>::wide;
  }

  /// The answers in the host's memory: one copy there, one launch, one copy back, and a wait for the stream. Where groups ask
  /// to keep some of their candidates alone (Group::keep, at most 256 of at most 128 lines, of lists of at most 64), a second
  /// launch merges their lists, and only what is kept is copied back.
  /// \throws std::invalid_argument  for a query that the device does not answer, naming the field
  /// \throws Error  of CUDA
  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    LineTask<T> task;
    task.scores = scores;
    return exchange(task, scores.kind, scores.stream, queries, groups,
                    [&](LineTask<T> const& all) { enqueue(all, scores.stream); });
  }

  /// What expand() does around the work: puts the queries where `task` says what of the lines, calls add(task), which adds
  /// to the stream what answers it, and fetches the answers.
  template <class T, class Add>
  Expansion exchange(LineTask<T> task, Kind kind, cudaStream_t stream, std::span<Query const> queries,
                     std::span<Group const> groups, Add&& add) {
    auto const size = task.scores.columns;
    for (auto const& query : queries) check_query(query, size);
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
    auto const merges = plan_.merges();
    auto const listed_in_all = queries.size() * static_cast<std::size_t>(task.k);
    Parts asked, answered;
    auto const ask_queries = asked.add<LineQuery>(queries.size());
    auto const ask_edits = asked.add<Edit>(edit_count);
    auto const ask_probes = asked.add<Token>(probe_count);
    auto const ask_groups = asked.add<MergeGroup>(merges ? plan_.groups().size() : 0);
    auto const ask_lines = asked.add<MergeLine>(merges ? plan_.lines().size() : 0);
    auto const tell_results = answered.add<LineResult>(queries.size());
    auto const tell_probes = answered.add<float>(probe_count);
    auto const tell_best = merges ? answered.add<Kept>(plan_.kept()) : answered.add<Candidate>(listed_in_all);

    auto* const host = host_.get(std::max(asked.size(), answered.size()), stream);
    auto* const asks = asked_.get(asked.size(), stream);
    auto* const tells = answered_.get(answered.size(), stream);
    write(queries, kind, size, part<LineQuery>(host, ask_queries), part<Edit>(host, ask_edits),
          part<Token>(host, ask_probes));
    if (merges) {
      std::ranges::copy(plan_.groups(), part<MergeGroup>(host, ask_groups));
      std::ranges::copy(plan_.lines(), part<MergeLine>(host, ask_lines));
    }
    check(cudaMemcpyAsync(asks, host, asked.size(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    task.queries = part<LineQuery>(asks, ask_queries);
    task.edits = part<Edit>(asks, ask_edits), task.probes = part<Token>(asks, ask_probes);
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
    check(cudaStreamSynchronize(stream), "LogSoftmaxTopK::expand");
    auto const* const results = part<LineResult>(host, tell_results);
    auto const* const probes = part<float>(host, tell_probes);
    if (merges) plan_.read(queries, results, probes, part<Kept>(host, tell_best), lists_);
    else read(queries, task.k, results, probes, part<Candidate>(host, tell_best));
    return lists_.answer(queries, groups);
  }

  /// Bytes of the device's memory in use, old pieces not counted.
  std::size_t workspace() const {
    return workspace_.size() + tickets_.size() + order_.size() + asked_.size() + answered_.size() +
           lists_memory_.size();
  }

 private:
  /// A launch for whole lines. Blocks read so many chunks at most as `at_once` has.
  template <class T>
  LineLaunch<FormatOf<T>> prepare(LineTask<T> const& task, std::ptrdiff_t at_once, cudaStream_t stream) {
    using Format = FormatOf<T>;
    auto const rows = task.scores.rows, size = task.scores.columns;
    require(task.bias != nullptr || bias_ == nullptr || bias_size_ == size, "LogSoftmaxTopK: bias.size()", bias_size_,
            "must be 0 or the number of columns");
    require(size >= 1 && size < 0x7fffffff - 0x10000, "LogSoftmaxTopK: columns", size,
            "must be at least 1, and 31 bits");
    require(task.k >= 1 && task.k <= most_listed, "LogSoftmaxTopK: k", task.k, "must be in [1, 64]");
    auto const chunks = LineShape::chunks<Format>(size, line_threads);
    auto shape = LineShape::of(std::min<std::int64_t>(chunks, at_once), rows, 2 * processors());
    if (at_once < chunks)
      while (shape.chunks_of_block > at_once) shape.chunks_of_block /= 2;
    shape.splits = static_cast<std::int32_t>((chunks + shape.chunks_of_block - 1) / shape.chunks_of_block);
    require(LineShape::fits(shape.splits, task.k, line_threads), "LogSoftmaxTopK: columns", size, "are too many for k");
    require(rows <= 0x7fffffff / shape.splits, "LogSoftmaxTopK: rows", rows, "are too many");

    LineLaunch<Format> launch;
    launch.scores = reinterpret_cast<typename Format::Bits const*>(task.scores.data);
    launch.stride = task.scores.stride;
    launch.size = static_cast<std::int32_t>(size), launch.rows = static_cast<std::int32_t>(rows);
    launch.k = task.k, launch.chunks = shape.chunks_of_block, launch.splits = shape.splits;
    launch.common = task.query, launch.queries = task.queries;
    launch.bias = task.bias != nullptr ? task.bias : bias_;
    launch.tokens = task.tokens, launch.edits = task.edits, launch.probes = task.probes;
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
    return launch;
  }

  /// Any k: one pass for the sums and the probes, one that makes keys, CUB's sort of all keys, one that lists.
  template <class T>
  void enqueue_sorted(LineTask<T> const& task, cudaStream_t stream) {
    constexpr std::ptrdiff_t at_once = 1 << 24;  // keys
    auto const size = std::max<std::ptrdiff_t>(task.scores.columns, 1);
    auto const most = std::clamp<std::ptrdiff_t>(at_once / size, 1, std::min<std::ptrdiff_t>(task.scores.rows, 65535));
    std::size_t sort_bytes = 0;
    sort_keys<Key>(nullptr, sort_bytes, nullptr, nullptr, most, size, stream);
    Parts parts;
    auto const keys = parts.add<Key>(static_cast<std::size_t>(most * size));
    auto const sorted = parts.add<Key>(static_cast<std::size_t>(most * size));
    auto const totals = parts.add<PartialSum>(static_cast<std::size_t>(most));
    auto const top = parts.add<Candidate>(static_cast<std::size_t>(most));
    auto const sort = parts.add<Words>(sort_bytes / sizeof(Words) + 1);
    auto* const memory = order_.get(parts.size(), stream);
    for (std::ptrdiff_t first = 0; first < task.scores.rows; first += most) {
      auto some = rows_of(task, first, std::min(most, task.scores.rows - first));
      auto* const best = some.best;
      some.k = 1, some.best = part<Candidate>(memory, top);
      OrderLaunch<FormatOf<T>> launch;
      launch.line = prepare(some, LineShape::chunks<FormatOf<T>>(size, line_threads), stream);
      launch.line.totals = part<PartialSum>(memory, totals);
      launch_lines(launch.line, stream);
      launch.line.k = task.k, launch.line.best = best;
      launch.keys = part<Key>(memory, keys), launch.sorted = part<Key>(memory, sorted);
      launch_keys(launch, stream);
      auto bytes = sort_bytes;
      sort_keys<Key>(part<Words>(memory, sort), bytes, launch.keys, part<Key>(memory, sorted), some.scores.rows, size,
                     stream);
      launch_lists(launch, stream);
    }
  }

  static void check_query(Query const& query, std::ptrdiff_t size) {
    auto const inside = [size](Token token) { return token >= 0 && token < size; };
    require(query.best >= 0, "query.best", query.best, "must not be negative");
    require(query.mass <= 0, "query.mass", query.mass, "is not answered on a device");
    require(query.within <= 0, "query.within", query.within, "is not answered on a device");
    require(query.typical <= 0, "query.typical", query.typical, "is not answered on a device");
    require(query.deviations <= 0, "query.deviations", query.deviations, "is not answered on a device");
    require(query.at_least <= 0, "query.at_least", query.at_least, "is not answered on a device");
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

  /// How many a line can list.
  static std::int32_t listed(Query const& query, std::ptrdiff_t size) {
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(query.best, size));
  }

  static void write(std::span<Query const> queries, Kind kind, std::ptrdiff_t size, LineQuery* lines, Edit* edits,
                    Token* probes) {
    std::int32_t edit = 0, probe = 0;
    for (auto const& query : queries) {
      auto const changed = query.temperature != 1.0f || (query.stage == Stage::before_softmax && !query.edits.empty());
      LineQuery line;
      line.best = listed(query, size), line.temperature = query.temperature, line.stage = query.stage;
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
  Buffer<Where::device> bias_memory_, workspace_, tickets_, order_, asked_, answered_, lists_memory_;
  Buffer<Where::host> host_;
  MergePlan plan_;
  LineLists lists_;
};

}  // namespace sluice::inline v0::cuda
