// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of LogSoftmaxTopK whose blocks of a line are a cluster, for sm_90 and newer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/relaxed_capture.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/line/detail/line_block.cuh>
#include <sluice/cuda/line/detail/line_cluster.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_loads.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// As line_kernel, with the blocks of a line in one cluster. Compiled for less than sm_90, it has no body;
/// line_clusters() says whether it has one.
template <class Format, bool many>
__global__ void __launch_bounds__(line_threads, line_cluster_blocks_at_once)
    line_cluster_kernel(__grid_constant__ LineLaunch<Format> const launch) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  __trap();
#else
  using Block = DeviceBlock<line_threads>;
  using Memory = ClusterMemory<line_threads>;
  __shared__ alignas(16) unsigned char memory[sizeof(Memory)];
  Block block;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const row = number / launch.splits;
  await_earlier();
  LineBlock<Format, many, false, Block, DirectLoads, false, true>(block, *reinterpret_cast<Memory*>(memory), launch,
                                                                  row, number - row * launch.splits)
      .run();
#endif
}

template <class Format>
std::int32_t line_clusters() {
  RelaxedCapture const relaxed;  // the kernels may have to be loaded
  auto const largest = [](auto* kernel) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    if (attributes.ptxVersion < 90) return std::int32_t{0};
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "cudaFuncSetAttribute");
    for (auto size = std::int32_t{most_of_cluster}; size > 1; size /= 2) {
      cudaLaunchConfig_t config{};
      cudaLaunchAttribute cluster{};
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim.x = static_cast<unsigned>(size), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
      config.gridDim = dim3(static_cast<unsigned>(size)), config.blockDim = dim3(line_threads);
      config.attrs = &cluster, config.numAttrs = 1;
      int clusters = 0;
      check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "cudaOccupancyMaxActiveClusters");
      if (clusters > 0) return size;
    }
    return std::int32_t{0};
  };
  return (std::min)(largest(&line_cluster_kernel<Format, false>), largest(&line_cluster_kernel<Format, true>));
}

/// For a launch with `clusters`.
/// \throws Error  of CUDA
template <class Format>
void launch_clusters(LineLaunch<Format> const& lines, cudaStream_t stream, Start start) {
  auto const go = [&]<bool many>() {
    auto const blocks = static_cast<unsigned>(lines.rows) * static_cast<unsigned>(lines.splits);
    launch<line_cluster_kernel<Format, many>>(Blocks{blocks, static_cast<unsigned>(lines.splits)}, line_threads, stream,
                                              start, "the kernel of LogSoftmaxTopK", lines);
  };
  if (lines.k > 1) go.template operator()<true>();
  else go.template operator()<false>();
}

}  // namespace sluice::inline v0::cuda::detail
