// SPDX-License-Identifier: Apache-2.0
/// \file
/// Steps of many beams over the same scores, repeated: by a DeviceBeam, and by BeamSearch on the host with lists that
/// are merged on the device.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/device_beam.cuh>
#include <sluice/cuda/device/scores.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::bench {

/// What both do. No sentence ends before the last of `steps` steps.
struct BeamWork {
  std::int32_t sentences = 1, width = 1, steps = 1;
  cuda::Scores<float> scores{};  ///< [sentences * width, V], on the device
  Vocabulary vocabulary{};
  Token start = 1;

  BeamSearch search() const {
    auto search = presets::fairseq(width);
    search.n_best = width, search.length = {.min = steps, .max = steps};
    return search;
  }
  Sentence sentence() const { return {.vocabulary = &vocabulary, .prompt = {&start, 1}, .last = start}; }
};

/// With the host's loop: copies queries to the device, makes lists, merges, copies the kept candidates back, waits,
/// then runs every sentence's search.
class HostBeams {
 public:
  explicit HostBeams(BeamWork const& work) : work_(work), search_(work.search()) {
    states_.resize(static_cast<std::size_t>(work.sentences));
    for (auto& state : states_) search_.begin(state, work_.sentence());
    plan();
  }
  void step(cudaStream_t stream) {
    auto scores = work_.scores;
    scores.stream = stream, scores.rows = static_cast<std::ptrdiff_t>(step_.queries.size());
    if (first_) scores.stride *= work_.width;  // one row each, the first
    first_ = false;
    auto const answer = lists_.expand(scores, step_.queries, step_.groups);
    std::size_t line = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      auto const lines = static_cast<std::size_t>(step_.groups[i].lines);
      search_.advance(states_[i], answer.window(line, lines));
      line += lines;
    }
    plan();
  }
  std::vector<Result> results() const {
    std::vector<Result> results(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) search_.finish(states_[i], results[i]);
    return results;
  }

 private:
  void plan() {
    step_.clear();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      Plan plan(step_, static_cast<Slot>(i) * work_.width);
      search_.plan(states_[i], plan);
    }
  }
  BeamWork const& work_;
  BeamSearch search_;
  cuda::LogSoftmaxTopK lists_;
  std::vector<BeamSearch::State> states_;
  StepPlan step_;
  bool first_ = true;
};

/// With a DeviceBeam.
class DeviceBeams {
 public:
  DeviceBeams(BeamWork const& work, cudaStream_t stream, cuda::StepOptions const& options = {})
      : work_(work), beam_(work.search(), work.vocabulary, {.sentences = work.sentences, .step = options}) {
    std::vector<Sentence> const sentences(static_cast<std::size_t>(work.sentences), work.sentence());
    beam_.begin(0, sentences, stream);
  }
  void step(cudaStream_t stream) {
    auto scores = work_.scores;
    scores.stream = stream;
    beam_.enqueue_step(lists_, scores);
  }
  /// The same without the lists: uses those of the last step.
  void advance(cudaStream_t stream) { beam_.advance(stream); }
  std::vector<Result> results(cudaStream_t stream) { return beam_.collect(0, work_.sentences, stream); }

 private:
  BeamWork const& work_;
  cuda::DeviceBeam beam_;
  cuda::LogSoftmaxTopK lists_;
};

inline bool same_hypotheses(std::vector<Result> const& a, std::vector<Result> const& b) {
  return std::ranges::equal(a, b, [](Result const& x, Result const& y) {
    return std::ranges::equal(x.hypotheses, y.hypotheses, [](Hypothesis const& g, Hypothesis const& h) {
      return g.tokens == h.tokens && g.score == h.score;
    });
  });
}

}  // namespace sluice::bench
