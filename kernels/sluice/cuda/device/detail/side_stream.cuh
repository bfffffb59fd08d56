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

namespace sluice::inline v0::cuda {

/// For work that may run at the same time as what the caller's stream does next. It is part of a capture of that stream from
/// fork() to join(). Stream and events are made when they are first needed. Throws Error of CUDA.
class SideStream {
 public:
  /// What is added to the stream that this gives comes behind all that was added to the caller's so far.
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
  /// Remembers what was added here so far, as one of two things.
  void mark(std::size_t which) { marked_[which].record(stream_.get()); }
  /// What is added to the caller's stream from now on comes behind what was marked so last.
  void join(cudaStream_t stream, std::size_t which) const { marked_[which].wait(stream); }
  /// The same of all that was added here, as far as CUDA allows.
  void abandon(cudaStream_t stream) noexcept {
    try {
      if (stream_ == nullptr) return;
      mark(0);
      join(stream, 0);
    } catch (...) {  // there is an error to be told already
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

}  // namespace sluice::inline v0::cuda
