// SPDX-License-Identifier: Apache-2.0
/// \file
/// The test device, if there is one, and memory on it.
#pragma once

#include <sluice/cuda/device/detail/setup.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace sluice::test {

#if !defined(SLUICE_EMULATED_DEVICE)
/// Reports that a test is skipped because there is no device.
inline bool no_device() {
  int count = 0;
  auto const status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return false;
  static_cast<void>(cudaGetLastError());
  std::cout << "SKIPPED: there is no device (" << cudaGetErrorString(status) << "); nothing was run on one\n";
  return true;
}
#endif

/// The number of rounds of a test: `n`, or fewer ($SLUICE_FEWER) under tools that slow kernels down.
inline std::uint64_t rounds(std::uint64_t n) {
  auto const* const text = std::getenv("SLUICE_FEWER");
  auto const fewer = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  return fewer <= 1 ? n : (n + fewer - 1) / fewer;
}

/// Numbers on the device. Loads of 16 bytes may extend beyond the last of them: compute-sanitizer checks single bytes,
/// while the hardware protects larger units.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t size) : size_(size) {
    auto const bytes = (size * sizeof(T) + 16) / 16 * 16;
    cuda::check(cudaMalloc(&data_, bytes), "cudaMalloc");
    cuda::detail::fill_now(data_, 0xff, bytes);
  }
  explicit OnDevice(std::vector<T> const& from) : OnDevice(from.size()) { set(from); }
  OnDevice(OnDevice const&) = delete;
  OnDevice& operator=(OnDevice const&) = delete;
  ~OnDevice() { static_cast<void>(cudaFree(data_)); }

  T* data() const { return data_; }
  void set(std::vector<T> const& from) const { cuda::detail::copy_now(data_, from.data(), from.size() * sizeof(T)); }
  std::vector<T> get() const {
    std::vector<T> to(size_);
    if (to.empty()) return to;
    cuda::check(cudaMemcpy(to.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return to;
  }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

}  // namespace sluice::test
