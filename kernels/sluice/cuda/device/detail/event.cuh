// SPDX-License-Identifier: Apache-2.0
/// \file
/// A point in a stream: a CUDA event.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// Created when first recorded. Throws Error of CUDA.
class Event {
 public:
  /// The event occurs when all work enqueued so far has ended.
  void record(cudaStream_t stream) {
    if (event_ == nullptr) {
      cudaEvent_t event = nullptr;
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      event_.reset(event);
    }
    check(cudaEventRecord(event_.get(), stream), "cudaEventRecord");
  }
  bool recorded() const { return event_ != nullptr; }
  /// The host waits for the event.
  void wait() const { check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize"); }
  /// Work enqueued in the stream from now on waits for the event.
  void wait(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_.get(), 0), "cudaStreamWaitEvent"); }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_;
};

}  // namespace sluice::inline v0::cuda::detail
