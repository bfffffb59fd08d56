// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a program may give an output layer on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/allocator.cuh>

#include <cublas_v2.h>

namespace sluice::inline v0::cuda {

/// The resources that a program gives an output layer.
struct Resources {
  Allocator allocator{};
  /// Must outlive the layer, which sets its stream; its workspace remains the caller's. Its math mode decides how precise
  /// products are (CUBLAS_TF32_TENSOR_OP_MATH breaks what is promised for float). Null: the layer makes a handle, with a
  /// workspace of 32 MB.
  cublasHandle_t cublas = nullptr;
};

}  // namespace sluice::inline v0::cuda
