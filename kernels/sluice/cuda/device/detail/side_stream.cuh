// SPDX-License-Identifier: Apache-2.0
/// \file
/// A stream beside the caller's.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/event.cuh>
#include <sluice/cuda/device/detail/relaxed_capture.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// For work that may overlap with later work of the caller's stream. It is part of a capture of that stream from fork()
/// to join(). Stream and events are created on first use. Throws Error of CUDA.
class SideStream {
 public:
  /// Returns a stream whose later work waits for everything enqueued in the caller's stream so far.
  cudaStream_t fork(cudaStream_t stream) {
    if (stream_ == nullptr) {
      RelaxedCapture const relaxed;
      cudaStream_t made = nullptr;
      check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      stream_.reset(made);
    }
    forked_.record(stream);
    forked_.wait(stream_.get());
    return stream_.get();
  }
  /// Records an event after everything enqueued here so far, under one of two numbers.
  void mark(std::size_t which) { marked_[which].record(stream_.get()); }
  /// Makes later work of the caller's stream wait for the last event marked with this number.
  void join(cudaStream_t stream, std::size_t which) const { marked_[which].wait(stream); }
  /// Makes it wait for everything enqueued here, as far as CUDA allows.
  void abandon(cudaStream_t stream) noexcept {
    try {
      if (stream_ == nullptr) return;
      mark(0);
      join(stream, 0);
    } catch (...) {  // an error is already being reported
    }
  }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
  Event forked_;
  std::array<Event, 2> marked_;
};

}  // namespace sluice::inline v0::cuda::detail
