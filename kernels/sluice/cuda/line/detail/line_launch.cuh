// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts the kernel of LogSoftmaxTopK.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

inline constexpr int line_threads = 256;       ///< per block; sums, and so the last bits of answers, depend on it
inline constexpr int line_blocks_at_once = 4;  ///< per multiprocessor, by the registers that a block may use

inline constexpr int line_ring_blocks_at_once = 3;     ///< the same for blocks that read through rings
inline constexpr int line_cluster_blocks_at_once = 3;  ///< and for clusters
inline constexpr int line_ring_producers = 32;         ///< threads of these beyond line_threads, which fill the ring

/// One launch; allocates nothing and does not wait. For `start`, see Start. Defined in line_kernel.cuh, which needs
/// nvcc: files compiled by a host compiler rely on a file with instances.cuh.
/// \throws Error  of CUDA
template <class Format>
void launch_lines(LineLaunch<Format> const& launch, cudaStream_t stream, Start start = Start::after);

/// The number of blocks with LineLaunch::ring that run on a multiprocessor of the current device at once; 0: the
/// program has no such kernel for it (sm_90 or newer). Call it before the first such launch on a device: it grants the
/// kernels their shared memory. Defined as launch_lines().
/// \throws Error  of CUDA
template <class Format>
int line_ring_blocks();

/// The most blocks of a line (2, 4, 8 or 16) that the current device runs as a cluster; 0: none, or the program has no such
/// kernel for it (sm_90 or newer). Defined as launch_lines().
/// \throws Error  of CUDA
template <class Format>
std::int32_t line_clusters();

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/line/detail/line_kernel.cuh>
#endif
