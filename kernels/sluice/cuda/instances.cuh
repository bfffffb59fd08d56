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

template void detail::launch_lines<Float32>(LineLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_lines<Float16>(LineLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_lines<BFloat16>(LineLaunch<BFloat16> const&, cudaStream_t, detail::Start);
template int detail::line_ring_blocks<detail::line_threads>();

template void detail::launch_merging_lines<Float32>(LineLaunch<Float32> const&, detail::TailLaunch const&, cudaStream_t,
                                                    detail::Start);
template void detail::launch_merging_lines<Float16>(LineLaunch<Float16> const&, detail::TailLaunch const&, cudaStream_t,
                                                    detail::Start);
template void detail::launch_merging_lines<BFloat16>(LineLaunch<BFloat16> const&, detail::TailLaunch const&,
                                                     cudaStream_t, detail::Start);
template void detail::launch_merge<SmallMerge>(MergeLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_merge<LargeMerge>(MergeLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_verification<verification_threads>(Verification const&, cudaStream_t);
template void detail::launch_beam_begin<detail::beam_warps>(detail::BeamTask const&, std::int32_t, cudaStream_t);
template void detail::launch_beam_advance<detail::beam_warps>(detail::BeamTask const&, cudaStream_t, detail::Start);
template void detail::launch_indirection<indirection_threads>(detail::IndirectionLaunch const&, cudaStream_t);
template void detail::launch_page_copies<page_threads>(detail::PageCopies const&, cudaStream_t);

template void detail::launch_keys<Float32>(detail::OrderLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_keys<Float16>(detail::OrderLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_keys<BFloat16>(detail::OrderLaunch<BFloat16> const&, cudaStream_t, detail::Start);
template void detail::launch_lists<Float32>(detail::OrderLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_lists<Float16>(detail::OrderLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_lists<BFloat16>(detail::OrderLaunch<BFloat16> const&, cudaStream_t, detail::Start);
template void detail::sort_keys<detail::Key>(void*, std::size_t&, detail::Key const*, detail::Key*, std::int64_t,
                                             std::int64_t, std::int32_t const*, cudaStream_t);

template void detail::launch_narrowing<detail::OrderLaunch<Float32>>(detail::OrderLaunch<Float32> const&, cudaStream_t,
                                                                     detail::Start);
template void detail::launch_narrowing<detail::OrderLaunch<Float16>>(detail::OrderLaunch<Float16> const&, cudaStream_t,
                                                                     detail::Start);
template void detail::launch_narrowing<detail::OrderLaunch<BFloat16>>(detail::OrderLaunch<BFloat16> const&,
                                                                      cudaStream_t, detail::Start);
template void detail::launch_narrowing<SelectLaunch<Float32>>(SelectLaunch<Float32> const&, cudaStream_t,
                                                              detail::Start);
template void detail::launch_narrowing<SelectLaunch<Float16>>(SelectLaunch<Float16> const&, cudaStream_t,
                                                              detail::Start);
template void detail::launch_narrowing<SelectLaunch<BFloat16>>(SelectLaunch<BFloat16> const&, cudaStream_t,
                                                               detail::Start);
template void detail::launch_select_keys<Float32>(SelectLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_select_keys<Float16>(SelectLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_select_keys<BFloat16>(SelectLaunch<BFloat16> const&, cudaStream_t, detail::Start);
template void detail::launch_draws<Float32>(SelectLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_draws<Float16>(SelectLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_draws<BFloat16>(SelectLaunch<BFloat16> const&, cudaStream_t, detail::Start);
template void detail::launch_selection<Float32>(SelectLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_selection<Float16>(SelectLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_selection<BFloat16>(SelectLaunch<BFloat16> const&, cudaStream_t, detail::Start);

template void detail::launch_skinny<Float32>(detail::SkinnyLaunch<Float32> const&, cudaStream_t, detail::Start);
template void detail::launch_skinny<Float16>(detail::SkinnyLaunch<Float16> const&, cudaStream_t, detail::Start);
template void detail::launch_skinny<BFloat16>(detail::SkinnyLaunch<BFloat16> const&, cudaStream_t, detail::Start);
template void detail::launch_union<detail::UnionLaunch>(detail::UnionLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_gather<detail::GatherLaunch>(detail::GatherLaunch const&, cudaStream_t);
template void detail::launch_mask<detail::MaskLaunch>(detail::MaskLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_fill<detail::FillLaunch>(detail::FillLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_places<detail::PlaceLaunch>(detail::PlaceLaunch const&, cudaStream_t);

}  // namespace sluice::inline v0::cuda
