// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches lines followed by a merge.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

/// Whether one launch can do both: whole lines without masks, with lists, in groups that fit a SmallMerge.
template <class Format>
bool merges_behind(LineLaunch<Format> const& launch, MergeLaunch const& merge) {
  return launch.k > 1 && launch.ring == 0 && launch.masks == nullptr && launch.tile_splits == 0 &&
         launch.totals == nullptr && merge.widest <= SmallMerge::lines && merge.longest <= SmallMerge::kept;
}

/// launch_lines() and merge_beams() as one launch; allocates nothing and does not wait. Defined in
/// merge_behind_lines_kernel.cuh, see launch_lines().
/// \throws Error  of CUDA
template <class Format>
void launch_merging_lines(LineLaunch<Format> const& launch, MergeBehindLaunch const& behind, cudaStream_t stream,
                          Start start);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/merge/detail/merge_behind_lines_kernel.cuh>
#endif
