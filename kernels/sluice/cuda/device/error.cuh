// SPDX-License-Identifier: Apache-2.0
/// \file
/// Errors of the CUDA runtime as exceptions.
#pragma once

#include <sluice/language.hpp>

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace sluice::inline v0::cuda {

/// An error of the CUDA runtime, with its message.
class Error : public std::runtime_error {
 public:
  Error(cudaError_t code, std::string const& what)
      : std::runtime_error("sluice: " + what + ": " + cudaGetErrorString(code)), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// \throws Error  "sluice: WHAT: <message of CUDA>" unless code is cudaSuccess
inline void check(cudaError_t code, char const* what) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // clears the error, or the next call would report it again
  throw Error(code, what);
}

}  // namespace sluice::inline v0::cuda
