// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory of a DeviceBeam: one piece, allocated once.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/detail/device_beam_result.cuh>
#include <sluice/cuda/beam/detail/device_beam_rows.cuh>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/beam/device_beam_options.cuh>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/line/edit_order.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/search/history.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

class DeviceBeamMemory {
 public:
  explicit DeviceBeamMemory(Allocator const& allocator) : memory_(allocator) {}

  void make(BeamSearch const& search, Vocabulary const& vocabulary, DeviceBeamOptions const& options,
            std::int32_t longest) {
    auto& rules = task_.rules;
    rules = rules_of(search, vocabulary, options.kind);
    task_.sentences = options.sentences, task_.steps = longest;
    Bans bans;
    bans.reset(vocabulary);
    auto const never = bans.edits(false), all = bans.edits(true);
    rules.never = static_cast<std::int32_t>(never.size());
    rules.never_or_end = static_cast<std::int32_t>(all.size());
    std::vector<Edit> edits(never.size() + all.size());
    EditOrder order;
    order.copy(never, edits.data()), order.copy(all, edits.data() + never.size());

    auto const sentences = size(options.sentences), count = sentences * size(rules.width);
    std::vector<Token> probes;
    for (std::size_t row = 0; row < count; ++row)
      probes.insert(probes.end(), vocabulary.eos.begin(), vocabulary.eos.end());
    auto const divisors = divisors_of(search, longest);

    lay_out(sentences, count, edits.size(), probes.size(), divisors.size());
    fill(edits_, edits), fill(probes_, probes), fill(divisors_, divisors);
    fill(queries_, std::vector<LineQuery>(count, idle_query()));
    fill(moves_, std::vector<SlotStep>(count));
  }

  BeamTask const& task() const { return task_; }
  std::int32_t rows() const { return task_.sentences * task_.rules.width; }
  BeamStart* starts() const { return at<BeamStart>(starts_); }

  /// The task for the lines, and where the answers go.
  template <class T>
  void ask(LineTask<T>& task) const {
    task.k = task_.rules.best;
    task.queries = task_.queries, task.edits = at<Edit>(edits_), task.probes = at<Token>(probes_);
    task.ascending = true;
    task.best = at<Candidate>(best_), task.probe_values = at<float>(probe_values_);
    task.results = at<LineResult>(results_);
  }

  MergeLaunch merge() const {
    MergeLaunch merge;
    merge.best = at<Candidate>(best_), merge.results = task_.results, merge.k = task_.rules.best;
    merge.groups = task_.groups, merge.group_count = task_.sentences;
    merge.lines = task_.lines, merge.widest = task_.rules.width, merge.longest = task_.rules.keep;
    merge.ends = task_.end_tokens, merge.end_count = task_.rules.ends;
    merge.kept = at<Kept>(kept_), merge.totals = at<double>(totals_), merge.places = at<std::int32_t>(places_);
    return merge;
  }

  /// The merge after the lines of all rows.
  MergeBehindLaunch behind() const {
    MergeBehindLaunch behind;
    behind.merge = merge(), behind.each = task_.rules.width, behind.tickets = at<unsigned>(tickets_);
    return behind;
  }

  /// The states of `count` sentences, in `to`; valid until `to` is used again.
  std::span<BeamSentence const> states(std::int32_t first, std::int32_t count, Buffer<Where::host>& to,
                                       cudaStream_t stream) const {
    auto* const states = static_cast<BeamSentence*>(to.get(size(count) * sizeof(BeamSentence), stream));
    fetch(states, task_.state + first, size(count), stream);
    check(cudaStreamSynchronize(stream), "DeviceBeam");
    return {states, size(count)};
  }
  /// Everything known of `count` sentences, in `to`; valid until `to` is used again.
  std::vector<BeamSnapshot> read(std::int32_t first, std::int32_t count, Buffer<Where::host>& to,
                                 cudaStream_t stream) const {
    std::vector<BeamSnapshot> snapshots(size(count));
    if (count == 0) return snapshots;
    auto const states = this->states(first, count, to, stream);
    struct Place {
      std::size_t lines, ended, history;
    };
    std::vector<Place> places;
    Parts parts;
    for (std::size_t i = 0; i < snapshots.size(); ++i) {
      snapshots[i].now = states[i];
      auto const& now = snapshots[i].now;
      places.push_back({parts.add<MergeLine>(size(now.live)), parts.add<BeamEnded>(size(now.ended)),
                        parts.add<BeamNode>(size(snapshots[i].depth()) * size(task_.rules.width))});
    }
    auto* const memory = to.get(parts.size(), stream);
    for (std::size_t i = 0; i < snapshots.size(); ++i) {
      auto& one = snapshots[i];
      auto const number = first + static_cast<std::int32_t>(i);
      auto const get = [&]<class T>(std::size_t where, T const* from, std::size_t n) {
        fetch(part<T>(memory, where), from, n, stream);
        return std::span<T const>(part<T>(memory, where), n);
      };
      one.lines = get(places[i].lines, task_.lines + task_.first_row(number), size(one.now.live));
      one.ended = get(places[i].ended, task_.half(number, one.now.half), size(one.now.ended));
      one.history = get(places[i].history, task_.nodes(number, 0), size(one.depth()) * size(task_.rules.width));
    }
    check(cudaStreamSynchronize(stream), "DeviceBeam::collect");
    return snapshots;
  }

 private:
  static std::size_t size(std::int32_t n) { return static_cast<std::size_t>(n); }

  void lay_out(std::size_t sentences, std::size_t rows, std::size_t edits, std::size_t probes, std::size_t divisors) {
    auto const& rules = task_.rules;
    auto const kept = sentences * size(rules.keep);
    Parts parts;
    edits_ = parts.add<Edit>(edits), probes_ = parts.add<Token>(probes), divisors_ = parts.add<double>(divisors);
    starts_ = parts.add<BeamStart>(sentences);
    best_ = parts.add<Candidate>(rows * size(rules.best));
    results_ = parts.add<LineResult>(rows), probe_values_ = parts.add<float>(probes);
    kept_ = parts.add<Kept>(kept), totals_ = parts.add<double>(kept), places_ = parts.add<std::int32_t>(kept);
    auto const state = parts.add<BeamSentence>(sentences), groups = parts.add<MergeGroup>(sentences);
    auto const lines = parts.add<MergeLine>(rows), history = parts.add<BeamNode>(rows * size(task_.steps));
    auto const ended = parts.add<BeamEnded>(2 * sentences * size(rules.most_ended));
    auto const remaining = parts.add<std::int32_t>(1), tokens = parts.add<Token>(rows);
    tickets_ = parts.add<unsigned>(sentences);
    moves_ = parts.add<SlotStep>(rows), queries_ = parts.add<LineQuery>(rows);
    base_ = memory_.get(parts.size(), true);
    task_.divisors = at<double>(divisors_), task_.end_tokens = at<Token>(probes_), task_.starts = starts();
    task_.results = at<LineResult>(results_), task_.probe_values = at<float>(probe_values_);
    task_.kept = at<Kept>(kept_), task_.totals = at<double>(totals_), task_.places = at<std::int32_t>(places_);
    task_.state = at<BeamSentence>(state), task_.groups = at<MergeGroup>(groups), task_.lines = at<MergeLine>(lines);
    task_.history = at<BeamNode>(history), task_.ended = at<BeamEnded>(ended);
    task_.remaining = at<std::int32_t>(remaining), task_.tokens = at<Token>(tokens);
    task_.moves = at<SlotStep>(moves_), task_.queries = at<LineQuery>(queries_);
  }

  template <class T>
  T* at(std::size_t first) const {
    return part<T>(base_, first);
  }
  template <class T>
  void fill(std::size_t first, std::vector<T> const& from) const {
    copy_now(at<T>(first), from.data(), from.size() * sizeof(T));
  }
  template <class T>
  static void fetch(T* to, T const* from, std::size_t count, cudaStream_t stream) {
    if (count == 0) return;
    check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  }

  Buffer<Where::device> memory_;
  void* base_ = nullptr;
  BeamTask task_{};
  std::size_t edits_ = 0, probes_ = 0, divisors_ = 0, starts_ = 0, best_ = 0, results_ = 0, probe_values_ = 0,
              kept_ = 0, totals_ = 0, places_ = 0, tickets_ = 0, moves_ = 0, queries_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
