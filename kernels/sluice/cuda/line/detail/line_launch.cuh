// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts the kernel of LogSoftmaxTopK.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda {

inline constexpr int line_threads = 256;       ///< of a block; sums, and so the last bits of answers, depend on it
inline constexpr int line_blocks_at_once = 4;  ///< on a multiprocessor, by the registers that a block may take

inline constexpr int line_ring_blocks_at_once = 3;  ///< the same of blocks that read through rings

/// One launch; nothing is allocated and nothing waited for. `start` as everywhere (see Start). Defined in line_kernel.cuh,
/// which needs nvcc: files that a host compiler compiles leave it to a file with instances.cuh.
/// \throws Error  of CUDA
template <class Format>
void launch_lines(LineLaunch<Format> const& launch, cudaStream_t stream, Start start = Start::after);

/// How many blocks of launches with LineLaunch::ring run on a multiprocessor of the current device at once; 0: the program has no
/// such kernel for it (sm_90 or newer). Before the first such launch on a device: it grants the kernels their shared memory.
/// Defined as launch_lines().
/// \tparam threads  line_threads
/// \throws Error  of CUDA
template <int threads>
int line_ring_blocks();

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/line/detail/line_kernel.cuh>
#endif
