// SPDX-License-Identifier: Apache-2.0
/// \file
/// One-time set-up before any stream has work: memory and its initial contents.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/relaxed_capture.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// Its own stream, independent of all other streams; its work is complete when it is destroyed.
class SetupStream {
 public:
  /// \throws Error  of CUDA
  SetupStream() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    stream_.reset(stream);
  }
  cudaStream_t get() const { return stream_.get(); }
  /// \throws Error  of CUDA
  void wait() const { check(cudaStreamSynchronize(get()), "cudaStreamSynchronize"); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  };
  RelaxedCapture const relaxed_{};
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

/// Copies to the device; the data is there when this returns, for any stream. (cudaMemcpy from pageable memory may
/// return as soon as it has read the host's memory, and a non-blocking stream does not wait for the rest.)
/// \throws Error  of CUDA
inline void copy_now(void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) return;
  SetupStream const stream;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync");
  stream.wait();
}

/// Sets all bytes of device memory; complete when it returns.
/// \throws Error  of CUDA
inline void fill_now(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return;
  SetupStream const stream;
  check(cudaMemsetAsync(to, value, bytes, stream.get()), "cudaMemsetAsync");
  stream.wait();
}

}  // namespace sluice::inline v0::cuda::detail
