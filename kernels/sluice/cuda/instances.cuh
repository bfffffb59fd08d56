// SPDX-License-Identifier: Apache-2.0
/// \file
/// All kernels. Include it in one file of a program that nvcc compiles, and the other headers of this folder in files that
/// a host compiler compiles.
#pragma once

#include <sluice/cuda/indirection_kernel.cuh>
#include <sluice/cuda/line_kernel.cuh>
#include <sluice/cuda/merge_kernel.cuh>
#include <sluice/cuda/page_kernel.cuh>
#include <sluice/cuda/score_format.cuh>
#include <sluice/cuda/verification_kernel.cuh>

namespace sluice::inline v0::cuda {

template void launch_lines<Float32>(LineLaunch<Float32> const&, cudaStream_t);
template void launch_lines<Float16>(LineLaunch<Float16> const&, cudaStream_t);
template void launch_lines<BFloat16>(LineLaunch<BFloat16> const&, cudaStream_t);

template void launch_merge<SmallMerge>(MergeLaunch const&, cudaStream_t);
template void launch_merge<LargeMerge>(MergeLaunch const&, cudaStream_t);
template void launch_verification<verification_threads>(Verification const&, cudaStream_t);
template void launch_indirection<indirection_threads>(IndirectionLaunch const&, cudaStream_t);
template void launch_page_copies<page_threads>(PageCopies const&, cudaStream_t);

}  // namespace sluice::inline v0::cuda
