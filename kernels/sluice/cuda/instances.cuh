// SPDX-License-Identifier: Apache-2.0
/// \file
/// All kernels. Include it in one file of a program that nvcc compiles, and the other headers of this folder in files that
/// a host compiler compiles.
#pragma once

#include <sluice/cuda/device_beam_kernel.cuh>
#include <sluice/cuda/indirection_kernel.cuh>
#include <sluice/cuda/key.cuh>
#include <sluice/cuda/key_sort.cuh>
#include <sluice/cuda/line_kernel.cuh>
#include <sluice/cuda/line_order_kernel.cuh>
#include <sluice/cuda/merge_kernel.cuh>
#include <sluice/cuda/page_kernel.cuh>
#include <sluice/cuda/projection_kernel.cuh>
#include <sluice/cuda/score_format.cuh>
#include <sluice/cuda/verification_kernel.cuh>

namespace sluice::inline v0::cuda {

template void launch_lines<Float32>(LineLaunch<Float32> const&, cudaStream_t);
template void launch_lines<Float16>(LineLaunch<Float16> const&, cudaStream_t);
template void launch_lines<BFloat16>(LineLaunch<BFloat16> const&, cudaStream_t);

template void launch_merge<SmallMerge>(MergeLaunch const&, cudaStream_t);
template void launch_merge<LargeMerge>(MergeLaunch const&, cudaStream_t);
template void launch_verification<verification_threads>(Verification const&, cudaStream_t);
template void launch_beam_begin<beam_warps>(BeamTask const&, std::int32_t, cudaStream_t);
template void launch_beam_advance<beam_warps>(BeamTask const&, cudaStream_t);
template void launch_indirection<indirection_threads>(IndirectionLaunch const&, cudaStream_t);
template void launch_page_copies<page_threads>(PageCopies const&, cudaStream_t);

template void launch_keys<Float32>(OrderLaunch<Float32> const&, cudaStream_t);
template void launch_keys<Float16>(OrderLaunch<Float16> const&, cudaStream_t);
template void launch_keys<BFloat16>(OrderLaunch<BFloat16> const&, cudaStream_t);
template void launch_lists<Float32>(OrderLaunch<Float32> const&, cudaStream_t);
template void launch_lists<Float16>(OrderLaunch<Float16> const&, cudaStream_t);
template void launch_lists<BFloat16>(OrderLaunch<BFloat16> const&, cudaStream_t);
template void sort_keys<Key>(void*, std::size_t&, Key const*, Key*, std::int64_t, std::int64_t, cudaStream_t);

template void launch_skinny<Float32>(SkinnyLaunch<Float32> const&, cudaStream_t);
template void launch_skinny<Float16>(SkinnyLaunch<Float16> const&, cudaStream_t);
template void launch_skinny<BFloat16>(SkinnyLaunch<BFloat16> const&, cudaStream_t);
template void launch_union<UnionLaunch>(UnionLaunch const&, cudaStream_t);
template void launch_gather<GatherLaunch>(GatherLaunch const&, cudaStream_t);
template void launch_mask<MaskLaunch>(MaskLaunch const&, cudaStream_t);
template void launch_places<PlaceLaunch>(PlaceLaunch const&, cudaStream_t);

}  // namespace sluice::inline v0::cuda
