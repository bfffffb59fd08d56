// SPDX-License-Identifier: Apache-2.0
/// \file
/// Small data sent to the device in every step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/event.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <array>
#include <cstddef>

namespace sluice::inline v0::cuda::detail {

/// Page-locked memory to copy from. Buffers are used in turn, so that the host need not wait for a step's copies before
/// it writes the next step's; it waits only if the device is `turns` steps behind.
class Upload {
 public:
  /// \throws Error  of CUDA, and if the stream is being captured: a graph would copy what the memory holds later
  static void refuse_capture(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    if (status != cudaStreamCaptureStatusNone)
      throw Error(cudaErrorStreamCaptureUnsupported, "a cache is told of a step before a graph runs, not in it");
  }

  /// Memory for `bytes` that no pending copy reads. Copies from it are enqueued between this call and sent().
  /// \throws Error  of CUDA
  void* begin(std::size_t bytes, cudaStream_t stream) {
    auto& turn = turns_[next_];
    if (turn.copied.recorded()) turn.copied.wait();
    return turn.memory.get(bytes, stream);
  }
  /// Call it when the copies are enqueued.
  void sent(cudaStream_t stream) {
    turns_[next_].copied.record(stream);
    next_ = (next_ + 1) % turns_.size();
  }

 private:
  struct Turn {
    Buffer<Where::host> memory;
    Event copied;
  };
  std::array<Turn, 4> turns_;
  std::size_t next_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
