// SPDX-License-Identifier: Apache-2.0
/// \file
/// As much of the CUDA runtime as our host code calls, in the host's memory: what is added to a stream is done when somebody
/// waits for it, and not before. For tests on machines without CUDA; found in place of the real one.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorStreamCaptureUnsupported, cudaErrorUnknown };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount, cudaDevAttrL2CacheSize };
using cudaStream_t = struct CUstream_st*;

namespace sluice::test {

/// What the program has done with the device so far.
struct DeviceUse {
  std::size_t allocations = 0, copies_there = 0, copies_back = 0, bytes_back = 0, line_launches = 0, merge_launches = 0;
};

/// The one stream, and what a test wants to know.
struct HostCuda {
  std::vector<std::function<void()>> stream;
  DeviceUse use;
  int processors = 4, second_level_cache = 3 << 20;

  static HostCuda& get() {
    static HostCuda machine;
    return machine;
  }
  void add(std::function<void()> work) { stream.push_back(std::move(work)); }
  void wait() {
    for (auto const& work : std::exchange(stream, {})) work();
  }
  cudaError_t allocate(void** to, std::size_t bytes) {
    ++use.allocations;
    *to = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(*to, 0xff, bytes);  // NaN, places outside of everything
    return cudaSuccess;
  }
  cudaError_t free(void* piece) {
    wait();  // as the real one does
    std::free(piece);
    return cudaSuccess;
  }
};

}  // namespace sluice::test

inline char const* cudaGetErrorString(cudaError_t) { return "an error"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  return sluice::test::HostCuda::get().allocate(to, bytes);
}
template <class T>
cudaError_t cudaMalloc(T** to, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(to), bytes);
}
inline cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return cudaMalloc(to, bytes); }
inline cudaError_t cudaFree(void* piece) { return sluice::test::HostCuda::get().free(piece); }
inline cudaError_t cudaFreeHost(void* piece) { return cudaFree(piece); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  sluice::test::HostCuda::get().wait();
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  auto& use = sluice::test::HostCuda::get().use;
  if (kind == cudaMemcpyHostToDevice) ++use.copies_there;
  if (kind == cudaMemcpyDeviceToHost) ++use.copies_back, use.bytes_back += bytes;
  sluice::test::HostCuda::get().stream.push_back([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  sluice::test::HostCuda::get().stream.push_back([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind) {
  sluice::test::HostCuda::get().wait();
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  sluice::test::HostCuda::get().wait();
  std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  auto const& machine = sluice::test::HostCuda::get();
  *value = attribute == cudaDevAttrMultiProcessorCount ? machine.processors : machine.second_level_cache;
  return cudaSuccess;
}
