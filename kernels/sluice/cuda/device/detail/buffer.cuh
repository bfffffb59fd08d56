// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory that grows and is kept.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/relaxed_capture.cuh>
#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// host: page-locked, so that copies need not wait; mapped: the same, and kernels can write it, at another address.
enum class Where { device, host, mapped };

/// Memory for the largest request so far. Memory returned before it grew stays valid to the end, since graphs and
/// running kernels may use it; so at most twice the largest size is held.
template <Where where>
class Buffer {
 public:
  Buffer() = default;
  /// \param allocator  for device memory
  explicit Buffer(Allocator const& allocator) : allocator_(allocator) {}

  /// At least so many bytes, aligned to 256. The contents are lost if it has to grow. Other streams may be capturing
  /// meanwhile.
  /// \param stream  the stream that uses the memory: it must not be capturing if the memory grows
  /// \param zero    start with zeros
  /// \throws Error  if out of memory, or if `stream` is being captured
  void* get(std::size_t bytes, cudaStream_t stream, bool zero = false) {
    if (bytes <= size_ && !pieces_.empty()) return pieces_.back().get();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    if (status != cudaStreamCaptureStatusNone)
      throw Error(cudaErrorStreamCaptureUnsupported,
                  "a workspace has to grow while a graph is captured: run once before");
    auto* const memory = grow(bytes);
    if (zero) {  // after this stream's work on memory that the caller's allocator may reuse
      RelaxedCapture const relaxed;
      check(cudaMemsetAsync(memory, 0, size_, stream), "cudaMemsetAsync");
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
    return memory;
  }
  /// The same for memory allocated before there is a stream.
  void* get(std::size_t bytes, bool zero = false) {
    if (bytes <= size_ && !pieces_.empty()) return pieces_.back().get();
    auto* const memory = grow(bytes);
    if (zero) fill_now(memory, 0, size_);
    return memory;
  }
  std::size_t size() const { return size_; }
  /// The device's address of what get() returned last. Kernels write there, over the bus, and the host reads once the
  /// stream has passed them. Not for data that kernels read again or that blocks exchange.
  void* on_device() const requires(where == Where::mapped) { return on_device_; }

 private:
  struct Free {
    Allocator allocator{};
    std::size_t bytes = 0;
    void operator()(void* memory) const {
      RelaxedCapture const relaxed;
      if (allocator.release != nullptr) return allocator.release(allocator.context, memory, bytes);
      static_cast<void>(where == Where::device ? cudaFree(memory) : cudaFreeHost(memory));
    }
  };

  void* grow(std::size_t bytes) {
    bytes = (std::max)({bytes, 2 * size_, std::size_t{4096}});
    void* memory = nullptr;
    {
      RelaxedCapture const relaxed;
      if constexpr (where == Where::host) {
        check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
      } else if constexpr (where == Where::mapped) {
        check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped), "cudaHostAlloc");
      } else if (allocator_.allocate != nullptr) {
        memory = allocator_.allocate(allocator_.context, bytes);
        if (memory == nullptr) throw Error(cudaErrorMemoryAllocation, "the caller's allocator");
      } else {
        check(cudaMalloc(&memory, bytes), "cudaMalloc");
      }
    }
    std::unique_ptr<void, Free> piece(memory, Free{allocator_, bytes});
    if constexpr (where == Where::mapped)
      check(cudaHostGetDevicePointer(&on_device_, memory, 0), "cudaHostGetDevicePointer");
    pieces_.push_back(std::move(piece));
    size_ = bytes;
    return memory;
  }

  Allocator allocator_{};
  std::vector<std::unique_ptr<void, Free>> pieces_;
  std::size_t size_ = 0;
  void* on_device_ = nullptr;
};

/// Parts of one piece of memory, one after the other, each aligned to 16.
class Parts {
 public:
  /// Where `count` T begin.
  template <class T>
  std::size_t add(std::size_t count) {
    return std::exchange(size_, (size_ + count * sizeof(T) + 15) / 16 * 16);
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

/// The part that begins at `first`.
template <class T>
T* part(void* memory, std::size_t first) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(memory) + first);
}

}  // namespace sluice::inline v0::cuda::detail
