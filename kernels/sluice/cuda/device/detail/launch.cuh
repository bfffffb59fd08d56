// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernels that may be started early (programmatic dependent launch, sm_90 and newer).
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

/// Must be called by all threads of a kernel that launch() starts, before they read or write memory. Waits until
/// earlier kernels have ended and their writes are visible, then lets the next kernel start. Every such kernel waits,
/// so when one has ended, all earlier ones have. Costs one instruction each if there is nothing to wait for; does
/// nothing before sm_90.
SLUICE_DEVICE void await_earlier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

/// Whether this kernel's code for the current device can wait by itself. A device may be newer than the code that it
/// runs.
/// \throws Error  of CUDA
template <auto kernel>
bool awaits_earlier() {
#if CUDART_VERSION >= 12030
  struct Known {
    int device = -1;
    bool awaits = false;
  };
  thread_local Known known;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  if (known.device != device) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    known = {device, attributes.ptxVersion >= 90};
  }
  return known.awaits;
#else
  return false;
#endif
}

/// How many blocks a kernel has.
struct Blocks {
  dim3 all;
  unsigned of_cluster = 1;  ///< blocks of a cluster along x; more than 1: sm_90 and newer

  Blocks(unsigned count, unsigned together = 1) : all(count), of_cluster(together) {}
  Blocks(dim3 count) : all(count) {}
};

/// Enqueues a kernel that calls await_earlier().
/// \param start  early: only right after one of our kernels; the same as `after` if device or code are too old
/// \param what   the name in the error message
/// \throws Error  of CUDA
template <auto kernel, class... Launch>
void launch(Blocks const& blocks, int threads, cudaStream_t stream, Start start, char const* what,
            Launch const&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks.all, config.blockDim = dim3(static_cast<unsigned>(threads)), config.stream = stream;
  cudaLaunchAttribute attributes[2]{};
  config.attrs = attributes;
  if (start == Start::early && awaits_earlier<kernel>()) {
    auto& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  if (blocks.of_cluster > 1) {
    auto& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks.of_cluster, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

}  // namespace sluice::inline v0::cuda::detail
