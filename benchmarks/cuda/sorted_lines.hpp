// SPDX-License-Identifier: Apache-2.0
/// \file
/// Selection by sorting whole lines with CUB, and a softmax kernel.
#pragma once

#include <sluice/core/query.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <device_array.hpp>

namespace sluice::bench {

enum class Sort { segmented_sort, segmented_radix_sort };

/// Lines of float, sorted with their tokens; then the first k with log-probabilities.
class SortedLines {
 public:
  SortedLines(Sort sort, std::int64_t rows, std::int32_t columns);

  /// Four launches or more; the host may wait for the device.
  void enqueue(float const* scores, std::int32_t k, Candidate* best, cudaStream_t stream);

  std::size_t workspace() const {
    return sorted_.bytes() + tokens_.bytes() + sorted_tokens_.bytes() + temporary_.bytes() + sums_.bytes();
  }
  static std::size_t workspace(std::int64_t rows, std::int32_t columns) {
    return static_cast<std::size_t>(rows * columns) * 20;
  }

 private:
  void sort(float const* scores, void* temporary, std::size_t& bytes, cudaStream_t stream);

  Sort sort_;
  std::int64_t rows_;
  std::int32_t columns_;
  DeviceArray<float> sorted_, sums_;
  DeviceArray<std::int32_t> tokens_, sorted_tokens_;
  DeviceArray<std::int64_t> offsets_;
  DeviceArray<unsigned char> temporary_;
};

}  // namespace sluice::bench
