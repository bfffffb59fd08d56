// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model's answer on the device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace sluice::inline v0::cuda {

/// Like sluice::Scores, in device memory; valid once `stream` has reached this point.
/// \tparam T  float, __half or __nv_bfloat16
template <class T>
struct Scores : MatrixView<T const> {
  using Value = T;
  Kind kind = Kind::logits;
  cudaStream_t stream = nullptr;
};

/// Scores from a dense buffer [lines, columns].
template <class T>
Scores<T> scores(T const* data, std::ptrdiff_t lines, std::ptrdiff_t columns, cudaStream_t stream = nullptr,
                 Kind kind = Kind::logits) {
  return {{data, lines, columns, columns}, kind, stream};
}

namespace detail {
template <class T>
struct StoredFormat;
template <>
struct StoredFormat<float> {
  using Type = Float32;
};
template <>
struct StoredFormat<__half> {
  using Type = Float16;
};
template <>
struct StoredFormat<__nv_bfloat16> {
  using Type = BFloat16;
};

/// The stored format of a T.
template <class T>
using FormatOf = typename StoredFormat<T>::Type;

}  // namespace detail

}  // namespace sluice::inline v0::cuda
