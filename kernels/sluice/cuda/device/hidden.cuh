// SPDX-License-Identifier: Apache-2.0
/// \file
/// Hidden vectors on the device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>

#include <cuda_runtime.h>

#include <cstddef>

namespace sluice::inline v0::cuda {

/// Like sluice::Hidden, in device memory; valid once `stream` has reached this point.
/// \tparam T  float, __half or __nv_bfloat16
template <class T>
struct Hidden : MatrixView<T const> {
  using Value = T;
  cudaStream_t stream = nullptr;
};

/// Hidden vectors from a dense buffer [lines, columns].
template <class T>
Hidden<T> hidden(T const* data, std::ptrdiff_t lines, std::ptrdiff_t columns, cudaStream_t stream = nullptr) {
  return {{data, lines, columns, columns}, stream};
}

}  // namespace sluice::inline v0::cuda
