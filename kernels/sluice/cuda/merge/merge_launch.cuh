// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host starts the merge of beams.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/detail/merge_block.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda {

namespace detail {

using SmallMerge = MergeMemory<16, 64>;    ///< one warp per group
using LargeMerge = MergeMemory<128, 256>;  ///< one block per group

/// One launch; allocates nothing and does not wait. Defined in merge_kernel.cuh, which needs nvcc, and instantiated for
/// both in instances.cuh.
/// \throws Error  of CUDA
template <class Memory>
void launch_merge(MergeLaunch const& launch, cudaStream_t stream, Start start);

}  // namespace detail

/// Enqueues the merge after the kernels that make the lists: one launch, which may be captured in a graph. Needs no
/// workspace; does not change `best` and `results`.
/// \param start  early: only if the lists were enqueued last
/// \throws std::invalid_argument  for more than 128 lines in a group that is merged, or more than 256 to keep
/// \throws Error  of CUDA
inline void merge_beams(MergeLaunch const& launch, cudaStream_t stream, detail::Start start = detail::Start::after) {
  require(launch.group_count >= 0, "merge_beams: group_count", launch.group_count, "must not be negative");
  require(launch.k >= 1 && launch.k <= most_listed, "merge_beams: k", launch.k, "must be in [1, 64]");
  require(launch.widest >= 0 && launch.widest <= detail::LargeMerge::lines, "merge_beams: widest", launch.widest,
          "must be in [0, 128]");
  require(launch.longest >= 0 && launch.longest <= detail::LargeMerge::kept, "merge_beams: longest", launch.longest,
          "must be in [0, 256]");
  require(launch.end_count >= 0, "merge_beams: end_count", launch.end_count, "must not be negative");
  if (launch.group_count == 0) return;
  if (launch.widest <= detail::SmallMerge::lines && launch.longest <= detail::SmallMerge::kept)
    detail::launch_merge<detail::SmallMerge>(launch, stream, start);
  else detail::launch_merge<detail::LargeMerge>(launch, stream, start);
}

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/merge/detail/merge_kernel.cuh>
#endif
