// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels of LogSoftmaxTopK, and of its merge behind lines, for scores of one type. A part of instances.cuh, to compile beside
/// the others.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/detail/line_kernel.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines_kernel.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda {

template void detail::launch_lines<detail::BFloat16>(detail::LineLaunch<detail::BFloat16> const&, cudaStream_t,
                                                     detail::Start);
template void detail::launch_merging_lines<detail::BFloat16>(detail::LineLaunch<detail::BFloat16> const&,
                                                             detail::MergeBehindLaunch const&, cudaStream_t,
                                                             detail::Start);
template int detail::line_ring_blocks<detail::BFloat16>();
template std::int32_t detail::line_clusters<detail::BFloat16>();

}  // namespace sluice::inline v0::cuda
