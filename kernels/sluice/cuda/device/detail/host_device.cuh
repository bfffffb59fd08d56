// SPDX-License-Identifier: Apache-2.0
/// \file
/// Functions that kernels call, and that a plain C++ compiler sees as host functions: device code is tested on an
/// emulated device.
#pragma once

#include <sluice/language.hpp>

#if defined(__CUDACC__)
#define SLUICE_DEVICE __device__ __forceinline__
#define SLUICE_HOST_DEVICE __host__ __device__
#define SLUICE_UNROLL _Pragma("unroll")
#define SLUICE_UNROLL_4 _Pragma("unroll 4")
#define SLUICE_ROLLED _Pragma("unroll 1")
#else
#define SLUICE_DEVICE inline
#define SLUICE_HOST_DEVICE
#define SLUICE_UNROLL
#define SLUICE_UNROLL_4
#define SLUICE_ROLLED
#endif
