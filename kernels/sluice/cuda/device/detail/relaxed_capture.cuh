// SPDX-License-Identifier: Apache-2.0
/// \file
/// Allows allocation during other threads' captures.
#pragma once

#include <sluice/language.hpp>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

/// During its life, this thread may allocate although another thread's stream is being captured in a graph. Otherwise,
/// allocating would break that capture (cudaStreamCaptureModeGlobal, the default). The allocation is not part of that
/// graph.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(RelaxedCapture const&) = delete;
  RelaxedCapture& operator=(RelaxedCapture const&) = delete;

 private:
  void exchange() {
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
  }  // a failure will be reported again later
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace sluice::inline v0::cuda::detail
