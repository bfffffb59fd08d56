// SPDX-License-Identifier: Apache-2.0
/// \file
/// Passes errors across the C interface of device code.
#pragma once

#include <sluice/cuda/device/error.cuh>

#include <cstdint>
#include <exception>
#include <sluice_cuda.h>
#include <stdexcept>
#include <string>

namespace sluice::c::device {

/// The last error of a thread.
struct LastError {
  std::string text;
  std::int32_t code = 0;  ///< of CUDA
};
inline LastError& last_error() {
  thread_local LastError error;
  return error;
}

inline sluice_cuda_status failed(sluice_cuda_status status, char const* what, std::int32_t code = 0) noexcept {
  auto& error = last_error();
  error.code = code;
  try {
    error.text = what;
  } catch (...) {
    error.text.clear();
  }
  return status;
}

/// Catches everything, so that no exception crosses the interface.
template <class F>
sluice_cuda_status guarded(F&& f) noexcept {
  try {
    f();
    return SLUICE_CUDA_OK;
  } catch (cuda::Error const& error) {
    return failed(SLUICE_CUDA_DEVICE, error.what(), static_cast<std::int32_t>(error.code()));
  } catch (std::invalid_argument const& error) {
    return failed(SLUICE_CUDA_BAD_ARGUMENT, error.what());
  } catch (std::exception const& error) {
    return failed(SLUICE_CUDA_FAILED, error.what());
  } catch (...) {
    return failed(SLUICE_CUDA_FAILED, "an exception that is not a std::exception");
  }
}

}  // namespace sluice::c::device
