// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels of ClusteredProjection.
#pragma once

#include <sluice/cuda/device/block.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/projection/active_union.cuh>
#include <sluice/cuda/projection/gather.cuh>
#include <sluice/cuda/projection/matrix_product.cuh>
#include <sluice/cuda/projection/projection_launch.cuh>
#include <sluice/cuda/projection/skinny_product.cuh>
#include <sluice/cuda/projection/union_block.cuh>
#include <sluice/cuda/projection/union_terms.cuh>
#include <sluice/cuda/projection/union_words.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0::cuda {

inline constexpr int projection_threads = 256;
inline constexpr int union_threads = 1024;  ///< one block scans V / 32 words

// Templates, as their launches are: a header that several files include may define them.

template <class Launch>
__global__ void __launch_bounds__(projection_threads) union_words_kernel(__grid_constant__ Launch const launch) {
  using Words = UnionWords<DeviceBlock<projection_threads>>;
  __shared__ typename Words::Memory memory;
  DeviceBlock<projection_threads> block;
  Words(block, memory, launch, static_cast<std::int32_t>(blockIdx.x)).run();
}

template <class Launch>
__global__ void __launch_bounds__(union_threads) union_settle_kernel(__grid_constant__ Launch const launch) {
  using Union = UnionBlock<DeviceBlock<union_threads>>;
  __shared__ typename Union::Memory memory;
  DeviceBlock<union_threads> block;
  Union(block, memory, launch).settle(static_cast<std::int32_t>(blockIdx.x));
}

template <class Launch>
__global__ void __launch_bounds__(union_threads) union_list_kernel(__grid_constant__ Launch const launch) {
  using Union = UnionBlock<DeviceBlock<union_threads>>;
  __shared__ typename Union::Memory memory;
  DeviceBlock<union_threads> block;
  Union(block, memory, launch).list();
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) gather_kernel(__grid_constant__ Launch const launch) {
  DeviceBlock<projection_threads> block;
  gather_rows(block, launch, static_cast<std::int32_t>(blockIdx.x), static_cast<std::int32_t>(gridDim.x));
}

template <class Format, int most>
__global__ void __launch_bounds__(projection_threads, 2)
    skinny_kernel(__grid_constant__ SkinnyLaunch<Format> const launch) {
  DeviceBlock<projection_threads> block;
  skinny_product<Format, most>(block, launch, static_cast<std::int32_t>(blockIdx.x),
                               static_cast<std::int32_t>(gridDim.x));
}

template <class Format>
__global__ void __launch_bounds__(projection_threads, 2)
    matrix_kernel(__grid_constant__ SkinnyLaunch<Format> const launch) {
  using Block = DeviceBlock<projection_threads>;
  Block block;
  MatrixProduct<Format, Block>(block, launch)
      .run(static_cast<std::int32_t>(blockIdx.x), static_cast<std::int32_t>(gridDim.x));
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) mask_kernel(__grid_constant__ Launch const launch) {
  auto const per_line = (launch.columns + projection_threads - 1) / projection_threads;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const line = number / per_line;
  auto const column = (number - line * per_line) * projection_threads + static_cast<std::int32_t>(threadIdx.x);
  if (column < launch.columns) mask_logit(launch, line, column);
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) fill_kernel(__grid_constant__ Launch const launch) {
  auto const per_line = (launch.groups() + projection_threads - 1) / projection_threads;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const line = number / per_line;
  auto const group = (number - line * per_line) * projection_threads + static_cast<std::int32_t>(threadIdx.x);
  DeviceBlock<projection_threads> block;
  if (group < launch.groups()) fill_group(block, launch, line, group);
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) place_kernel(__grid_constant__ Launch const launch) {
  auto const i = static_cast<std::int32_t>(blockIdx.x * projection_threads + threadIdx.x);
  if (i < launch.all()) place_one(launch, i);
}

/// Blocks for so many threads.
inline unsigned blocks_of(std::int64_t threads) {
  return static_cast<unsigned>((threads + projection_threads - 1) / projection_threads);
}

template <class Launch>
void launch_union(Launch const& launch, cudaStream_t stream) {
  auto const slices = launch.unions * UnionWords<DeviceBlock<projection_threads>>::slices(launch);
  union_words_kernel<Launch><<<static_cast<unsigned>(slices), projection_threads, 0, stream>>>(launch);
  auto const blocks = UnionBlock<DeviceBlock<union_threads>>::settling(launch);
  union_settle_kernel<Launch><<<static_cast<unsigned>(blocks), union_threads, 0, stream>>>(launch);
  union_list_kernel<Launch><<<1, union_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernels of a union");
}

template <class Launch>
void launch_gather(Launch const& launch, cudaStream_t stream) {
  auto const rows = launch.count + Launch::bias_tail;
  gather_kernel<Launch><<<blocks_of(std::int64_t{32} * rows), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel that gathers weights");
}

template <class Format>
void launch_skinny(SkinnyLaunch<Format> const& launch, cudaStream_t stream) {
  constexpr std::int32_t warps = projection_threads / 32;
  auto const blocks = [&](std::int32_t at_once) {
    auto const needed = (launch.columns + warps * at_once - 1) / (warps * at_once);
    return static_cast<unsigned>(std::min(needed, launch.blocks));
  };
  if constexpr (sizeof(typename Format::Bits) == 2) {
    if (launch.on_matrix_units()) {
      constexpr auto tokens = MatrixProduct<Format, DeviceBlock<projection_threads>>::tokens;
      matrix_kernel<Format><<<blocks(tokens), projection_threads, 0, stream>>>(launch);
      return check(cudaGetLastError(), "the kernel of a product on matrix units");
    }
  }
  if (launch.lines <= 1) skinny_kernel<Format, 1><<<blocks(4), projection_threads, 0, stream>>>(launch);
  else if (launch.lines <= 4) skinny_kernel<Format, 4><<<blocks(4), projection_threads, 0, stream>>>(launch);
  else if (launch.lines <= 8) skinny_kernel<Format, 8><<<blocks(2), projection_threads, 0, stream>>>(launch);
  else skinny_kernel<Format, most_skinny_lines><<<blocks(2), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of a product with few lines");
}

template <class Launch>
void launch_mask(Launch const& launch, cudaStream_t stream) {
  auto const blocks = std::int64_t{blocks_of(launch.columns)} * launch.lines;
  mask_kernel<Launch><<<static_cast<unsigned>(blocks), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel that masks logits");
}

template <class Launch>
void launch_fill(Launch const& launch, cudaStream_t stream) {
  auto const blocks = std::int64_t{blocks_of(launch.groups())} * launch.lines;
  fill_kernel<Launch><<<static_cast<unsigned>(blocks), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel that empties lines");
}

template <class Launch>
void launch_places(Launch const& launch, cudaStream_t stream) {
  if (launch.all() == 0) return;
  place_kernel<Launch><<<blocks_of(launch.all()), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of places");
}

}  // namespace sluice::inline v0::cuda
