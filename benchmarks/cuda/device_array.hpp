// SPDX-License-Identifier: Apache-2.0
/// \file
/// An array on a device.
#pragma once

#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace sluice::bench {

/// Initialised with all bits set (NaN as a number), so that unwritten elements are noticed.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size = 0) : size_(size) {
    if (size == 0) return;
    cuda::check(cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)), "cudaMalloc");
    poison();
  }
  DeviceArray(DeviceArray const&) = delete;
  DeviceArray(DeviceArray&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceArray& operator=(DeviceArray other) noexcept {
    std::swap(size_, other.size_), std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceArray() { static_cast<void>(cudaFree(data_)); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  void poison() {
    cuda::check(cudaMemset(data_, 0xff, bytes()), "cudaMemset");
    arrive();
  }
  void set(std::vector<T> const& from) {
    cuda::check(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    arrive();
  }
  /// The elements [first, first + count).
  std::vector<T> get(std::size_t first, std::size_t count) const {
    std::vector<T> to(count);
    cuda::check(cudaMemcpy(to.data(), data_ + first, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return to;
  }

 private:
  /// Waits, since a stream that does not wait for the default stream may be the next to use it.
  static void arrive() { cuda::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"); }

  std::size_t size_ = 0;
  T* data_ = nullptr;
};

}  // namespace sluice::bench
