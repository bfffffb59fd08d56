// SPDX-License-Identifier: Apache-2.0
/// \file
/// A beam search that stays on the device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/detail/device_beam_launch.cuh>
#include <sluice/cuda/beam/detail/device_beam_memory.cuh>
#include <sluice/cuda/beam/detail/device_beam_result.cuh>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/beam/device_beam_options.cuh>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/home_device.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/detail/upload.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/line/line_task.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/history.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda {

/// The rows that the model must run next: always all rows, at a fixed address. Row s * width + i is slot i of sentence
/// s.
struct BeamRows {
  std::int32_t count = 0;         ///< sentences * width
  Token const* tokens = nullptr;  ///< [count], on the device: tokens to feed; 0 for free slots
  /// [count], on the device: feed the token after the first `length` tokens of slot `from` (a fork if that is another
  /// slot), as in Row and CacheIndirection::enqueue(). count = 0: the slot is free, and the row's scores are ignored.
  SlotStep const* moves = nullptr;
};

/// Beam search over any number of sentences, with beams, history and finished hypotheses on the device. A step is three
/// launches in every case, and may be captured in a CUDA graph. The host gets no data until it asks.
///
/// Finds the same as the BeamSearch given to it does with the same lists, hypothesis for hypothesis and to the last bit
/// of their scores. Sentences do not influence each other. Needs FinishedHypotheses::set_aside (presets::fairseq, ctranslate2,
/// huggingface); see check_device_beam() for unsupported options.
///
/// Memory: 12 bytes per sentence, hypothesis and token of the longest output, and a few per row. An object belongs to
/// the device that was current when it was constructed, and to one stream at a time. It allocates no device memory
/// after construction.
class DeviceBeam {
 public:
  /// \param allocator  for the device memory
  /// \throws std::invalid_argument  for invalid options, and for options unsupported on a device, naming them
  /// \throws Error  of CUDA
  DeviceBeam(BeamSearch const& search, Vocabulary const& vocabulary, DeviceBeamOptions const& options,
             Allocator const& allocator = {})
      : search_(search), vocabulary_(vocabulary), kind_(options.kind), step_(options.step), memory_(allocator) {
    detail::check_device_beam(search, vocabulary, options);
    home_.check_current("DeviceBeam");
    longest_ = detail::longest_of(search, options);
    memory_.make(search, vocabulary, options, longest_);
    begun_.assign(static_cast<std::size_t>(options.sentences), 0);
    impossible_ = begun_;
  }

  /// Starts a sentence under `number`, replacing the old one. Its slot 0 must hold prompt and prefix without the last
  /// token (Sentence::held tokens), which the next step feeds. A small copy to the device and a launch, not to be
  /// captured in a graph; waits only if the device is four of them behind. Ignores the sentence's vocabulary, abilities
  /// and seed.
  /// \throws std::invalid_argument  for a request that BeamSearch refuses, or that may outgrow the memory
  /// \throws Error  of CUDA
  void begin(std::int32_t number, Sentence const& sentence, cudaStream_t stream) {
    begin(number, std::span(&sentence, 1), stream);
  }
  /// The same for several sentences, numbered first, first + 1, ...
  void begin(std::int32_t first, std::span<Sentence const> sentences, cudaStream_t stream) {
    home_.check_current("DeviceBeam");
    auto const& task = memory_.task();
    auto const count = static_cast<std::int32_t>(sentences.size());
    require(first >= 0 && count <= task.sentences - first, "DeviceBeam: number", first,
            "must be that of a sentence, as those behind it");
    if (count == 0) return;
    std::vector<detail::BeamStart> starts;
    std::vector<std::uint8_t> impossible;
    for (auto const& sentence : sentences) {
      auto const bounds = search_.length.of(sentence);
      require(vocabulary_.contains(sentence.last), "DeviceBeam: sentence.last", sentence.last, "is no token");
      require(sentence.held >= 0, "DeviceBeam: sentence.held", sentence.held, "must not be negative");
      require(bounds.max <= longest_, "DeviceBeam: length", longest_,
              "is less than the output may have: " + std::to_string(bounds.max));
      auto const prefix = static_cast<std::int32_t>(sentence.prefix.size());
      auto const scored = search_.prefix_scored && sentence.prefix_log_prob != nullptr;
      auto const begins = scored ? Prefix(sentence) : Prefix();
      auto const number = first + static_cast<std::int32_t>(starts.size());
      impossible.push_back(begins.impossible() ? 1 : 0);
      starts.push_back({begins.ranked(), number, sentence.last, sentence.held, prefix, bounds.min, bounds.max});
    }
    detail::Upload::refuse_capture(stream);
    auto const bytes = starts.size() * sizeof(detail::BeamStart);
    auto* const from = static_cast<detail::BeamStart*>(upload_.begin(bytes, stream));
    std::ranges::copy(starts, from);
    check(cudaMemcpyAsync(memory_.starts(), from, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    upload_.sent(stream);
    detail::launch_beam_begin<detail::beam_warps>(task, count, stream);
    std::fill_n(begun_.begin() + first, count, std::uint8_t{1});
    std::ranges::copy(impossible, impossible_.begin() + first);
  }

  BeamRows rows() const { return {memory_.rows(), memory_.task().tokens, memory_.task().moves}; }

  /// A step, given the model's scores of all rows: lists, merge, advance. `expander` is a LogSoftmaxTopK for the same
  /// stream.
  /// \throws std::invalid_argument  for scores of the wrong shape or kind
  /// \throws Error  of CUDA
  template <class Lists, class T>
  void enqueue_step(Lists& expander, Scores<T> const& scores) {
    require(scores.kind == kind_, "DeviceBeam: scores.kind", static_cast<int>(scores.kind),
            "must be that of DeviceBeamOptions");
    auto asked = task<T>(scores);
    detail::MergeBehindTask behind{memory_.behind()};
    if (step_.merge_behind_lines) asked.merge_behind = &behind;
    expander.enqueue(asked, scores.stream);
    if (behind.merged)
      detail::launch_beam_advance<detail::beam_warps>(memory_.task(), scores.stream, step_.behind_ours());
    else advance(scores.stream, step_.behind_ours());
  }

  /// The task for the lines, for callers that make the lists in another way (DenseProjection::enqueue(), which ignores
  /// the scores). Call advance() afterwards.
  /// \throws std::invalid_argument  for scores of the wrong shape
  template <class T>
  LineTask<T> task(MatrixView<T const> scores) const {
    require(scores.rows == memory_.rows(), "DeviceBeam: scores.rows", scores.rows, "must be sentences * width");
    require(scores.columns == vocabulary_.size, "DeviceBeam: scores.columns", scores.columns,
            "must be the vocabulary's size");
    LineTask<T> task;
    task.scores = scores;
    memory_.ask(task);
    return task;
  }
  /// From the lists to the next step's rows: two launches.
  /// \param start  early: only if the lists were enqueued last
  /// \throws Error  of CUDA
  void advance(cudaStream_t stream, detail::Start start = detail::Start::after) {
    home_.check_current("DeviceBeam");
    merge_beams(memory_.merge(), stream, start);
    detail::launch_beam_advance<detail::beam_warps>(memory_.task(), stream, step_.behind_ours());
  }

  /// The number of unfinished sentences, on the device.
  std::int32_t const* remaining() const { return memory_.task().remaining; }
  /// The same on the host: copies 4 bytes, and waits.
  /// \throws Error  of CUDA
  std::int32_t remaining(cudaStream_t stream) {
    auto* const count = static_cast<std::int32_t*>(host_.get(sizeof(std::int32_t), stream));
    check(cudaMemcpyAsync(count, remaining(), sizeof(std::int32_t), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "DeviceBeam::remaining");
    return *count;
  }

  /// The unfinished sentences, in order. Copies 44 bytes per sentence, and waits.
  /// \throws Error  of CUDA
  std::vector<std::int32_t> running(cudaStream_t stream) {
    auto const states = memory_.states(0, memory_.task().sentences, host_, stream);
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].running != 0) numbers.push_back(static_cast<std::int32_t>(i));
    return numbers;
  }

  /// The hypotheses of a sentence, as BeamSearch::finish writes them: best first, without the forced prefix. Before the
  /// sentence is over, live hypotheses come last. Copies, and waits twice.
  /// \throws std::invalid_argument  for a sentence that was never begun
  /// \throws Error  of CUDA
  Result collect(std::int32_t number, cudaStream_t stream) { return std::move(collect(number, 1, stream).front()); }
  /// The same for `count` sentences from number `first` on, with two waits in total.
  std::vector<Result> collect(std::int32_t first, std::int32_t count, cudaStream_t stream) {
    home_.check_current("DeviceBeam");
    for (auto number = first; number < first + count; ++number)
      require(number >= 0 && number < memory_.task().sentences && begun_[static_cast<std::size_t>(number)] != 0,
              "DeviceBeam: number", number, "must be that of a sentence which was begun");
    auto const snapshots = memory_.read(first, count, host_, stream);
    std::vector<Result> results(snapshots.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      detail::write_beam_result(search_, vocabulary_, snapshots[i], results[i]);
      if (impossible_[static_cast<std::size_t>(first) + i] == 0) continue;
      for (auto& h : results[i].hypotheses) h.log_prob = h.score = -std::numeric_limits<double>::infinity();
    }
    return results;
  }

 private:
  BeamSearch search_;
  Vocabulary vocabulary_;
  Kind kind_;
  StepOptions step_;
  std::int32_t longest_ = 0;
  detail::HomeDevice home_;
  detail::DeviceBeamMemory memory_;
  detail::Upload upload_;
  detail::Buffer<detail::Where::host> host_;
  std::vector<std::uint8_t> begun_, impossible_;  // [sentences]; impossible_: the forced prefix is impossible
};

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/beam/detail/device_beam_kernel.cuh>
#endif
