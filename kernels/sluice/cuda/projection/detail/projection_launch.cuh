// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the host launches the kernels of ClusteredProjection.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>
#include <sluice/cuda/projection/detail/gather.cuh>
#include <sluice/cuda/projection/detail/skinny_product.cuh>
#include <sluice/cuda/projection/detail/union_terms.cuh>

#include <cuda_runtime.h>

namespace sluice::inline v0::cuda::detail {

// Each function enqueues work, allocates nothing and does not wait. Defined in projection_kernel.cuh, see
// launch_lines(); all are templates, so that one file of a program can instantiate them. They throw Error.

/// Masks, the results of each union, and the joint union as a list: three kernels; the second and third start as the
/// first does. There must be a union.
template <class Launch>
void launch_union(Launch const& launch, cudaStream_t stream, Start start);
template <class Launch>
void launch_gather(Launch const& launch, cudaStream_t stream);
/// At most most_skinny_lines lines; on matrix units if SkinnyLaunch::on_matrix_units() says so.
template <class Format>
void launch_skinny(SkinnyLaunch<Format> const& launch, cudaStream_t stream, Start start);
template <class Launch>
void launch_mask(Launch const& launch, cudaStream_t stream, Start start);
template <class Launch>
void launch_fill(Launch const& launch, cudaStream_t stream, Start start);
template <class Launch>
void launch_places(Launch const& launch, cudaStream_t stream);

}  // namespace sluice::inline v0::cuda::detail

#if defined(__CUDACC__)
#include <sluice/cuda/projection/detail/projection_kernel.cuh>
#endif
