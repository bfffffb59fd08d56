// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers of a step on their way to the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::example {

/// Collects arrays of numbers and sends all in one asynchronous copy.
class Upload {
 public:
  struct Part {
    std::int64_t begin = 0, size = 0;
  };

  Part add(std::span<std::int64_t const> numbers) {
    Part const part{std::ssize(numbers_), std::ssize(numbers)};
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    return part;
  }
  void send(at::Device device);
  /// [part.size], on the device.
  at::Tensor operator[](Part part) const { return sent_.narrow(0, part.begin, part.size); }

 private:
  std::vector<std::int64_t> numbers_;
  at::Tensor sent_;
};

}  // namespace sluice::example
