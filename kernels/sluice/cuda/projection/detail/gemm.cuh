// SPDX-License-Identifier: Apache-2.0
/// \file
/// cuBLAS; programs that use this must link CUDA::cublas.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/cuda/device/allocator.cuh>
#include <sluice/cuda/device/detail/buffer.cuh>
#include <sluice/cuda/device/detail/relaxed_capture.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/projection/resources.cuh>

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

using cuda::check;  // the same for the CUDA runtime

/// \throws Error  "sluice: WHAT: <message of cuBLAS>: ..." unless status is success
inline void check(cublasStatus_t status, char const* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(cudaErrorUnknown, std::string(what) + ": " + cublasGetStatusString(status));
}

/// Products of hidden vectors and weights, summed in float.
class Gemm {
 public:
  Gemm() = default;
  explicit Gemm(Resources const& resources) : workspace_(resources.allocator), given_(resources.cublas) {}

  /// product [n, m] = a [n, d] b [m, d]^T. Enqueues the work; allocates only in the first call, which must not be
  /// captured. cuBLAS's order of summation depends on the shapes, so last bits may differ with n and m; equal shapes
  /// give equal bits.
  /// \tparam T        float, __half or __nv_bfloat16
  /// \tparam Product  float or T: sums are rounded to it as they are stored
  template <class T, class Product>
  void enqueue(MatrixView<T const> a, MatrixView<T const> b, MatrixView<Product> product, cudaStream_t stream) {
    static_assert(std::is_same_v<Product, float> || std::is_same_v<Product, T>, "cuBLAS has no other products");
    require(a.columns == b.columns && product.rows == a.rows && product.columns == b.rows, "Gemm: product.columns",
            product.columns, "must fit the factors");
    std::ptrdiff_t const sizes[] = {a.rows, a.columns, a.stride, b.rows, b.stride, product.stride};
    for (auto const size : sizes) require(size <= 0x7fffffff, "Gemm: size", size, "must be 31 bits");
    if (a.rows == 0 || b.rows == 0) return;
    auto const handle = begin(stream);
    HostScalars const scalars(handle);
    WholeSums const sums(handle, !std::is_same_v<Product, float>);
    float const one = 1, zero = 0;
    // cuBLAS is column-major, so this is the transposed product.
    check(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(b.rows), static_cast<int>(a.rows),
                       static_cast<int>(a.columns), &one, b.data, type<T>(), static_cast<int>(b.stride), a.data,
                       type<T>(), static_cast<int>(a.stride), &zero, product.data, type<Product>(),
                       static_cast<int>(product.stride), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }

  std::size_t workspace() const { return workspace_.size(); }

 private:
  template <class T>
  static constexpr cudaDataType_t type() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
    if constexpr (std::is_same_v<T, float>) return CUDA_R_32F;
    else if constexpr (std::is_same_v<T, __half>) return CUDA_R_16F;
    else return CUDA_R_16BF;
  }

  cublasHandle_t begin(cudaStream_t stream) {
    if (given_ != nullptr) {
      cudaStream_t now = nullptr;
      check(cublasGetStream(given_, &now), "cublasGetStream");
      if (now != stream) check(cublasSetStream(given_, stream), "cublasSetStream");  // drops the workspace
      return given_;
    }
    constexpr std::size_t bytes = std::size_t{32} << 20;  // what cuBLAS recommends for compute capability 9.0
    auto* const memory = workspace_.get(bytes, stream);
    if (handle_ == nullptr) {
      cublasHandle_t handle = nullptr;
      RelaxedCapture const relaxed;  // it allocates
      check(cublasCreate(&handle), "cublasCreate");
      handle_.reset(handle);
    } else if (stream == stream_) {
      return handle_.get();
    }
    check(cublasSetStream(handle_.get(), stream), "cublasSetStream");  // drops the workspace
    check(cublasSetWorkspace(handle_.get(), memory, bytes), "cublasSetWorkspace");
    stream_ = stream;
    return handle_.get();
  }

  /// Scalars are in host memory; restores the pointer mode of a handle that was given.
  class HostScalars {
   public:
    explicit HostScalars(cublasHandle_t handle) : handle_(handle) {
      check(cublasGetPointerMode(handle, &before_), "cublasGetPointerMode");
      if (before_ != CUBLAS_POINTER_MODE_HOST)
        check(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
    }
    HostScalars(HostScalars const&) = delete;
    HostScalars& operator=(HostScalars const&) = delete;
    ~HostScalars() {
      if (before_ != CUBLAS_POINTER_MODE_HOST) static_cast<void>(cublasSetPointerMode(handle_, before_));
    }

   private:
    cublasHandle_t handle_;
    cublasPointerMode_t before_ = CUBLAS_POINTER_MODE_HOST;
  };

  /// Sums stored in 16 bits are rounded once: parts of one are not added in 16 bits. Restores the math mode.
  class WholeSums {
   public:
    WholeSums(cublasHandle_t handle, bool narrow) : handle_(handle) {
      if (!narrow) return;
      check(cublasGetMathMode(handle, &before_), "cublasGetMathMode");
      auto const strict = static_cast<cublasMath_t>(before_ | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
      changed_ = strict != before_;
      if (changed_) check(cublasSetMathMode(handle, strict), "cublasSetMathMode");
    }
    WholeSums(WholeSums const&) = delete;
    WholeSums& operator=(WholeSums const&) = delete;
    ~WholeSums() {
      if (changed_) static_cast<void>(cublasSetMathMode(handle_, before_));
    }

   private:
    cublasHandle_t handle_;
    cublasMath_t before_ = CUBLAS_DEFAULT_MATH;
    bool changed_ = false;
  };

  struct Destroy {
    void operator()(cublasHandle_t handle) const { static_cast<void>(cublasDestroy(handle)); }
  };
  Buffer<Where::device> workspace_;
  std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, Destroy> handle_;
  cublasHandle_t given_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace sluice::inline v0::cuda::detail
