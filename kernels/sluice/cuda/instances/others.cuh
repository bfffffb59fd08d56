// SPDX-License-Identifier: Apache-2.0
/// \file
/// All kernels but those of the lines_*.cuh. A part of instances.cuh, to compile beside the others.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/beam/detail/device_beam_kernel.cuh>
#include <sluice/cuda/cache/detail/indirection_kernel.cuh>
#include <sluice/cuda/cache/detail/page_kernel.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/merge/detail/merge_kernel.cuh>
#include <sluice/cuda/projection/detail/projection_kernel.cuh>
#include <sluice/cuda/select/detail/line_order.cuh>
#include <sluice/cuda/select/detail/line_order_kernel.cuh>
#include <sluice/cuda/select/detail/select_kernel.cuh>
#include <sluice/cuda/verify/detail/verification_kernel.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda {

template void detail::launch_keys<detail::Float32>(detail::OrderLaunch<detail::Float32> const&, cudaStream_t,
                                                   detail::Start);
template void detail::launch_keys<detail::Float16>(detail::OrderLaunch<detail::Float16> const&, cudaStream_t,
                                                   detail::Start);
template void detail::launch_keys<detail::BFloat16>(detail::OrderLaunch<detail::BFloat16> const&, cudaStream_t,
                                                    detail::Start);
template void detail::launch_lists<detail::Float32>(detail::OrderLaunch<detail::Float32> const&, cudaStream_t,
                                                    detail::Start);
template void detail::launch_lists<detail::Float16>(detail::OrderLaunch<detail::Float16> const&, cudaStream_t,
                                                    detail::Start);
template void detail::launch_lists<detail::BFloat16>(detail::OrderLaunch<detail::BFloat16> const&, cudaStream_t,
                                                     detail::Start);
template void detail::launch_select_keys<detail::Float32>(detail::SelectLaunch<detail::Float32> const&, cudaStream_t,
                                                          detail::Start);
template void detail::launch_select_keys<detail::Float16>(detail::SelectLaunch<detail::Float16> const&, cudaStream_t,
                                                          detail::Start);
template void detail::launch_select_keys<detail::BFloat16>(detail::SelectLaunch<detail::BFloat16> const&, cudaStream_t,
                                                           detail::Start);
template void detail::launch_selection<detail::Float32>(detail::SelectLaunch<detail::Float32> const&, cudaStream_t,
                                                        detail::Start);
template void detail::launch_selection<detail::Float16>(detail::SelectLaunch<detail::Float16> const&, cudaStream_t,
                                                        detail::Start);
template void detail::launch_selection<detail::BFloat16>(detail::SelectLaunch<detail::BFloat16> const&, cudaStream_t,
                                                         detail::Start);

template void detail::launch_merge<detail::SmallMerge>(MergeLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_merge<detail::LargeMerge>(MergeLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_verification<verification_threads>(Verification const&, cudaStream_t);
template void detail::launch_beam_begin<detail::beam_warps>(detail::BeamTask const&, std::int32_t, cudaStream_t);
template void detail::launch_beam_advance<detail::beam_warps>(detail::BeamTask const&, cudaStream_t, detail::Start);
template void detail::launch_indirection<indirection_threads>(detail::IndirectionLaunch const&, cudaStream_t);
template void detail::launch_page_copies<page_threads>(detail::PageCopies const&, cudaStream_t);
template void detail::launch_skinny<detail::Float32>(detail::SkinnyLaunch<detail::Float32> const&, cudaStream_t,
                                                     detail::Start);
template void detail::launch_skinny<detail::Float16>(detail::SkinnyLaunch<detail::Float16> const&, cudaStream_t,
                                                     detail::Start);
template void detail::launch_skinny<detail::BFloat16>(detail::SkinnyLaunch<detail::BFloat16> const&, cudaStream_t,
                                                      detail::Start);
template void detail::launch_union<detail::UnionLaunch>(detail::UnionLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_gather<detail::GatherLaunch>(detail::GatherLaunch const&, cudaStream_t);
template void detail::launch_mask<detail::MaskLaunch>(detail::MaskLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_fill<detail::FillLaunch>(detail::FillLaunch const&, cudaStream_t, detail::Start);
template void detail::launch_places<detail::PlaceLaunch>(detail::PlaceLaunch const&, cudaStream_t);

}  // namespace sluice::inline v0::cuda
