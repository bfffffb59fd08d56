// SPDX-License-Identifier: Apache-2.0
/// \file
/// CUDA's runtime without CUDA: the device's memory is the host's, streams have always done what was added to them, and
/// kernels run on an emulated device. Include it in the one file of a program that is linked with neither.
#pragma once

#include <sluice/cuda/line_block.cuh>
#include <sluice/cuda/line_launch.cuh>
#include <sluice/cuda/merge_block.cuh>
#include <sluice/cuda/merge_launch.cuh>

#include <support/catch.hpp>
#include <support/emulated_device.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace sluice::test {

/// What the program has done with the device so far.
struct DeviceUse {
  std::size_t allocations = 0, copies_there = 0, copies_back = 0, bytes_back = 0, line_launches = 0, merge_launches = 0;
};
inline DeviceUse device_use;

namespace detail {

inline cudaError_t allocate(void** memory, std::size_t size) {
  ++device_use.allocations;
  *memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0x7f, size);  // garbage
  return cudaSuccess;
}

/// Program(Block&, Memory&, block number) for every block.
template <int threads, class Memory, class Program>
void run(int blocks, Program const& program) {
  static EmulatedDevice<threads> device;
  static std::uint64_t seed = 0;
  device.template run<Memory>(blocks, 2, ++seed, {}, program);
  REQUIRE(device.failure() == "");
}

}  // namespace detail
}  // namespace sluice::test

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t size) { return sluice::test::detail::allocate(memory, size); }
cudaError_t cudaMallocHost(void** memory, std::size_t size) { return sluice::test::detail::allocate(memory, size); }
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t) {
  auto& use = sluice::test::device_use;
  if (kind == cudaMemcpyHostToDevice) ++use.copies_there;
  if (kind == cudaMemcpyDeviceToHost) ++use.copies_back, use.bytes_back += size;
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, void const* from, std::size_t size, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, size, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t size, cudaStream_t) {
  std::memset(memory, value, size);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
char const* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}

}  // extern "C"

namespace sluice::inline v0::cuda {

template <class Format>
void launch_lines(LineLaunch<Format> const& launch, cudaStream_t) {
  ++test::device_use.line_launches;
  using Block = typename test::EmulatedDevice<line_threads>::Block;
  using Memory = LineMemory<line_threads>;
  test::detail::run<line_threads, Memory>(launch.rows * launch.splits, [&](Block& block, Memory& memory, int number) {
    auto const row = number / launch.splits, split = number % launch.splits;
    if (launch.k == 1) LineBlock<Format, false, Block>(block, memory, launch, row, split).run();
    else LineBlock<Format, true, Block>(block, memory, launch, row, split).run();
  });
}

template <class Memory>
void launch_merge(MergeLaunch const& launch, cudaStream_t) {
  ++test::device_use.merge_launches;
  constexpr auto threads = std::is_same_v<Memory, SmallMerge> ? 32 : 256;
  using Block = typename test::EmulatedDevice<threads>::Block;
  test::detail::run<threads, Memory>(launch.group_count, [&](Block& block, Memory& memory, int number) {
    MergeBlock<Memory, Block>(block, memory, launch, number).run();
  });
}

}  // namespace sluice::inline v0::cuda
