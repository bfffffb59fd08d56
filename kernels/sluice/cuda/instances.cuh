// SPDX-License-Identifier: Apache-2.0
/// \file
/// All kernels. Include it in one file of a program, compiled by nvcc; a host compiler can compile files that include
/// the other headers of this folder.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/beam/detail/device_beam_kernel.cuh>
#include <sluice/cuda/cache/detail/indirection_kernel.cuh>
#include <sluice/cuda/cache/detail/page_kernel.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/score_format.cuh>
#include <sluice/cuda/line/detail/key_sort.cuh>
#include <sluice/cuda/line/detail/line_kernel.cuh>
#include <sluice/cuda/line/detail/line_order_kernel.cuh>
#include <sluice/cuda/merge/detail/merge_kernel.cuh>
#include <sluice/cuda/merge/detail/merge_tail_kernel.cuh>
#include <sluice/cuda/projection/detail/projection_kernel.cuh>
#include <sluice/cuda/select/detail/narrow_kernel.cuh>
#include <sluice/cuda/select/detail/select_kernel.cuh>
#include <sluice/cuda/verify/detail/verification_kernel.cuh>

namespace sluice::inline v0::cuda {

template void launch_lines<Float32>(LineLaunch<Float32> const&, cudaStream_t, Start);
template void launch_lines<Float16>(LineLaunch<Float16> const&, cudaStream_t, Start);
template void launch_lines<BFloat16>(LineLaunch<BFloat16> const&, cudaStream_t, Start);
template int line_ring_blocks<line_threads>();

template void launch_merging_lines<Float32>(LineLaunch<Float32> const&, TailLaunch const&, cudaStream_t, Start);
template void launch_merging_lines<Float16>(LineLaunch<Float16> const&, TailLaunch const&, cudaStream_t, Start);
template void launch_merging_lines<BFloat16>(LineLaunch<BFloat16> const&, TailLaunch const&, cudaStream_t, Start);
template void launch_merge<SmallMerge>(MergeLaunch const&, cudaStream_t, Start);
template void launch_merge<LargeMerge>(MergeLaunch const&, cudaStream_t, Start);
template void launch_verification<verification_threads>(Verification const&, cudaStream_t);
template void launch_beam_begin<beam_warps>(BeamTask const&, std::int32_t, cudaStream_t);
template void launch_beam_advance<beam_warps>(BeamTask const&, cudaStream_t, Start);
template void launch_indirection<indirection_threads>(IndirectionLaunch const&, cudaStream_t);
template void launch_page_copies<page_threads>(PageCopies const&, cudaStream_t);

template void launch_keys<Float32>(OrderLaunch<Float32> const&, cudaStream_t, Start);
template void launch_keys<Float16>(OrderLaunch<Float16> const&, cudaStream_t, Start);
template void launch_keys<BFloat16>(OrderLaunch<BFloat16> const&, cudaStream_t, Start);
template void launch_lists<Float32>(OrderLaunch<Float32> const&, cudaStream_t, Start);
template void launch_lists<Float16>(OrderLaunch<Float16> const&, cudaStream_t, Start);
template void launch_lists<BFloat16>(OrderLaunch<BFloat16> const&, cudaStream_t, Start);
template void sort_keys<Key>(void*, std::size_t&, Key const*, Key*, std::int64_t, std::int64_t, std::int32_t const*,
                             cudaStream_t);

template void launch_narrowing<OrderLaunch<Float32>>(OrderLaunch<Float32> const&, cudaStream_t, Start);
template void launch_narrowing<OrderLaunch<Float16>>(OrderLaunch<Float16> const&, cudaStream_t, Start);
template void launch_narrowing<OrderLaunch<BFloat16>>(OrderLaunch<BFloat16> const&, cudaStream_t, Start);
template void launch_narrowing<SelectLaunch<Float32>>(SelectLaunch<Float32> const&, cudaStream_t, Start);
template void launch_narrowing<SelectLaunch<Float16>>(SelectLaunch<Float16> const&, cudaStream_t, Start);
template void launch_narrowing<SelectLaunch<BFloat16>>(SelectLaunch<BFloat16> const&, cudaStream_t, Start);
template void launch_select_keys<Float32>(SelectLaunch<Float32> const&, cudaStream_t, Start);
template void launch_select_keys<Float16>(SelectLaunch<Float16> const&, cudaStream_t, Start);
template void launch_select_keys<BFloat16>(SelectLaunch<BFloat16> const&, cudaStream_t, Start);
template void launch_draws<Float32>(SelectLaunch<Float32> const&, cudaStream_t, Start);
template void launch_draws<Float16>(SelectLaunch<Float16> const&, cudaStream_t, Start);
template void launch_draws<BFloat16>(SelectLaunch<BFloat16> const&, cudaStream_t, Start);
template void launch_selection<Float32>(SelectLaunch<Float32> const&, cudaStream_t, Start);
template void launch_selection<Float16>(SelectLaunch<Float16> const&, cudaStream_t, Start);
template void launch_selection<BFloat16>(SelectLaunch<BFloat16> const&, cudaStream_t, Start);

template void launch_skinny<Float32>(SkinnyLaunch<Float32> const&, cudaStream_t, Start);
template void launch_skinny<Float16>(SkinnyLaunch<Float16> const&, cudaStream_t, Start);
template void launch_skinny<BFloat16>(SkinnyLaunch<BFloat16> const&, cudaStream_t, Start);
template void launch_union<UnionLaunch>(UnionLaunch const&, cudaStream_t, Start);
template void launch_gather<GatherLaunch>(GatherLaunch const&, cudaStream_t);
template void launch_mask<MaskLaunch>(MaskLaunch const&, cudaStream_t, Start);
template void launch_fill<FillLaunch>(FillLaunch const&, cudaStream_t, Start);
template void launch_places<PlaceLaunch>(PlaceLaunch const&, cudaStream_t);

}  // namespace sluice::inline v0::cuda
