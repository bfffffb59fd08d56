// SPDX-License-Identifier: Apache-2.0
/// \file
/// The device that an object belongs to.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

namespace sluice::inline v0::cuda::detail {

/// The device that was current when check_current() was first called; the object's memory is there.
class HomeDevice {
 public:
  /// \param who  the name in the error message
  /// \throws std::invalid_argument  if another device is current
  /// \throws Error  of CUDA
  void check_current(char const* who) {
    int current = 0;
    check(cudaGetDevice(&current), "cudaGetDevice");
    if (device_ < 0) {
      check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, current), "cudaDeviceGetAttribute");
      device_ = current;
    }
    if (current == device_) return;  // builds no string in the usual case
    require(false, std::string(who) + ": the current device", current,
            "must be " + std::to_string(device_) + ", which was current at its first use");
  }
  /// The number of multiprocessors; known after check_current().
  std::int64_t processors() const { return processors_; }

 private:
  int device_ = -1, processors_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
