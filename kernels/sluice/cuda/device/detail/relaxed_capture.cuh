// SPDX-License-Identifier: Apache-2.0
/// \file
/// Allocating while others capture.
#pragma once

#include <sluice/language.hpp>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda {

/// While it lives, this thread may allocate though another thread's stream is captured in a graph: otherwise that would
/// break the capture (cudaStreamCaptureModeGlobal, the usual one). What is allocated is no part of that graph.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(RelaxedCapture const&) = delete;
  RelaxedCapture& operator=(RelaxedCapture const&) = delete;

 private:
  void exchange() {
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  }  // whatever fails will say so again
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace sluice::inline v0::cuda
