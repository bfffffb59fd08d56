// SPDX-License-Identifier: Apache-2.0
/// \file
/// Times of work on a device: medians of replays of a graph that holds many copies of the work.
#pragma once

#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice::bench {

/// Microseconds of one run of the work.
struct Time {
  double median = 0, low = 0, high = 0;  ///< of the replays
  int pieces = 0;                        ///< in a graph
  int replays = 0;
};

/// Runs follow each other in a graph as the steps of a decoder do, so the time per run includes the gaps between
/// launches that a graph leaves.
class GraphTimer {
 public:
  GraphTimer() {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    for (auto& event : events_) cuda::check(cudaEventCreate(&event), "cudaEventCreate");
  }
  GraphTimer(GraphTimer const&) = delete;
  GraphTimer& operator=(GraphTimer const&) = delete;
  ~GraphTimer() {
    for (auto const event : events_) static_cast<void>(cudaEventDestroy(event));
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  cudaStream_t stream() const { return stream_; }

  /// \param sets   alternating inputs; work(i, stream) enqueues the work on input i < sets. Inputs that together are
  ///              far larger than the cache are cold each time; one that fits into it is warm.
  /// \param graph  false for work that waits for the device, which a graph cannot hold: then with the host's launches
  template <class Work>
  Time operator()(int sets, Work const& work, bool graph = true) {
    for (int i = 0; i < 3; ++i) work(i % sets, stream_);  // allocates; loads the code
    auto const once = elapsed([&] { work(0, stream_); });
    auto const pieces = std::max(sets, std::min(static_cast<int>(1500 / std::max(once, 1.0)), graph ? 512 : 16));
    auto const all = [&] {
      for (int i = 0; i < pieces; ++i) work(i % sets, stream_);
    };
    if (!graph) return measure(pieces, all);

    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t runnable = nullptr;
    cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    all();
    cuda::check(cudaStreamEndCapture(stream_, &recorded), "cudaStreamEndCapture");
    cuda::check(cudaGraphInstantiate(&runnable, recorded, 0), "cudaGraphInstantiate");
    auto const time = measure(pieces, [&] { cuda::check(cudaGraphLaunch(runnable, stream_), "cudaGraphLaunch"); });
    cuda::check(cudaGraphExecDestroy(runnable), "cudaGraphExecDestroy");
    cuda::check(cudaGraphDestroy(recorded), "cudaGraphDestroy");
    return time;
  }

 private:
  /// Microseconds.
  template <class Work>
  double elapsed(Work const& work) {
    cuda::check(cudaEventRecord(events_[0], stream_), "cudaEventRecord");
    work();
    cuda::check(cudaEventRecord(events_[1], stream_), "cudaEventRecord");
    cuda::check(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cudaEventElapsedTime");
    return 1000.0 * static_cast<double>(milliseconds);
  }

  template <class Work>
  Time measure(int pieces, Work const& work) {
    for (int i = 0; i < 2; ++i) elapsed(work);
    std::vector<double> times;
    double sum = 0;
    while (times.size() < 5 || (times.size() < 21 && sum < 60'000)) {
      times.push_back(elapsed(work) / pieces);
      sum += times.back() * pieces;
    }
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times.front(), times.back(), pieces, static_cast<int>(times.size())};
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[2] = {};
};

}  // namespace sluice::bench
