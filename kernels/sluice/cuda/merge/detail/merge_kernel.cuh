// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel of the merge of beams.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/detail/warp.cuh>
#include <sluice/cuda/merge/detail/merge_block.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

inline constexpr int merge_threads = 256;  ///< per block, for one group
inline constexpr int merge_warps = 4;      ///< groups per block of warps

template <class Memory>
__global__ void __launch_bounds__(merge_threads) merge_kernel(__grid_constant__ MergeLaunch const launch) {
  using Block = DeviceBlock<merge_threads>;
  __shared__ alignas(16) unsigned char memory[sizeof(Memory)];
  Block block;
  await_earlier();
  MergeBlock<Memory, Block>(block, *reinterpret_cast<Memory*>(memory), launch, static_cast<std::int32_t>(blockIdx.x))
      .run();
}

template <class Memory>
__global__ void __launch_bounds__(32 * merge_warps) merge_warps_kernel(__grid_constant__ MergeLaunch const launch) {
  __shared__ alignas(16) unsigned char memory[merge_warps][(sizeof(Memory) + 15) / 16 * 16];
  DeviceWarp warp;
  auto const of_block = static_cast<std::int32_t>(threadIdx.x / 32);
  auto const group = static_cast<std::int32_t>(blockIdx.x) * merge_warps + of_block;
  await_earlier();
  if (group >= launch.group_count) return;
  MergeBlock<Memory, DeviceWarp>(warp, *reinterpret_cast<Memory*>(memory[of_block]), launch, group).run();
}

template <class Memory>
void launch_merge(MergeLaunch const& merge, cudaStream_t stream, Start start) {
  constexpr auto what = "the kernel that merges beams";
  auto const groups = static_cast<unsigned>(merge.group_count);
  if constexpr (std::is_same_v<Memory, SmallMerge>) {
    auto const blocks = (groups + merge_warps - 1) / merge_warps;
    launch<merge_warps_kernel<Memory>>(blocks, 32 * merge_warps, stream, start, what, merge);
  } else {
    launch<merge_kernel<Memory>>(groups, merge_threads, stream, start, what, merge);
  }
}

}  // namespace sluice::inline v0::cuda::detail
