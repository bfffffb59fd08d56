// SPDX-License-Identifier: Apache-2.0
/// \file
/// See cuda_runtime.h. Products are summed in double precision.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
struct cublasContext {
  cudaStream_t stream = nullptr;
  int streams_set = 0, workspaces_set = 0, products = 0;
  cublasPointerMode_t scalars = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};
using cublasHandle_t = cublasContext*;

inline char const* cublasGetStatusString(cublasStatus_t) { return "a cuBLAS error"; }
inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return *handle = new cublasContext, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return *stream = handle->stream, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, ++handle->streams_set, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return *mode = handle->scalars, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return handle->scalars = mode, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return *mode = handle->math, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return handle->math = mode, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, std::size_t) {
  return ++handle->workspaces_set, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                   int k, void const* alpha, void const* a, cudaDataType_t type, int lda, void const* b,
                                   cudaDataType_t type_b, int ldb, void const* beta, void* c, cudaDataType_t type_c,
                                   int ldc, cublasComputeType_t, cublasGemmAlgo_t) {
  if (handle->scalars != CUBLAS_POINTER_MODE_HOST || of_a != CUBLAS_OP_T || of_b != CUBLAS_OP_N || type != type_b ||
      (type_c != CUDA_R_32F && type_c != type) ||
      (type_c != CUDA_R_32F) != (handle->math == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) || lda < k ||
      ldb < k || ldc < m || type == CUDA_R_16F || *static_cast<float const*>(alpha) != 1 ||
      *static_cast<float const*>(beta) != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  ++handle->products;
  sluice::test::HostCuda::get().add([=] {
    auto const number = [type](void const* data, std::ptrdiff_t at) {
      if (type == CUDA_R_32F) return static_cast<double>(static_cast<float const*>(data)[at]);
      return static_cast<double>(static_cast<float>(static_cast<__nv_bfloat16 const*>(data)[at]));
    };
    for (std::ptrdiff_t j = 0; j < n; ++j)
      for (std::ptrdiff_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::ptrdiff_t l = 0; l < k; ++l) sum += number(a, i * lda + l) * number(b, j * ldb + l);
        if (type_c == CUDA_R_32F) static_cast<float*>(c)[j * ldc + i] = static_cast<float>(sum);
        else static_cast<__nv_bfloat16*>(c)[j * ldc + i] = __nv_bfloat16(static_cast<float>(sum));
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}
