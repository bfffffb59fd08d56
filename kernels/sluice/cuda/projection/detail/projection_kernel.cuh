// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels of ClusteredProjection.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/block.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/error.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>
#include <sluice/cuda/projection/detail/gather.cuh>
#include <sluice/cuda/projection/detail/matrix_product.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>
#include <sluice/cuda/projection/detail/skinny_product.cuh>
#include <sluice/cuda/projection/detail/union_block.cuh>
#include <sluice/cuda/projection/detail/union_terms.cuh>
#include <sluice/cuda/projection/detail/union_words.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr int projection_threads = 256;
inline constexpr int union_threads = 1024;  ///< one block scans V / 32 words

// Templates, as their launch functions are, so that several files can include this header.

template <class Launch>
__global__ void __launch_bounds__(projection_threads) union_words_kernel(__grid_constant__ Launch const launch) {
  using Words = UnionWords<DeviceBlock<projection_threads>>;
  __shared__ typename Words::Memory memory;
  DeviceBlock<projection_threads> block;
  await_earlier();
  Words(block, memory, launch, static_cast<std::int32_t>(blockIdx.x)).run();
}

template <class Launch>
__global__ void __launch_bounds__(union_threads) union_settle_kernel(__grid_constant__ Launch const launch) {
  using Union = UnionBlock<DeviceBlock<union_threads>>;
  __shared__ typename Union::Memory memory;
  DeviceBlock<union_threads> block;
  await_earlier();
  Union(block, memory, launch).settle(static_cast<std::int32_t>(blockIdx.x));
}

template <class Launch>
__global__ void __launch_bounds__(union_threads) union_list_kernel(__grid_constant__ Launch const launch) {
  using Union = UnionBlock<DeviceBlock<union_threads>>;
  __shared__ typename Union::Memory memory;
  DeviceBlock<union_threads> block;
  await_earlier();
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
  await_earlier();
  skinny_product<Format, most>(block, launch, static_cast<std::int32_t>(blockIdx.x),
                               static_cast<std::int32_t>(gridDim.x));
}

template <class Format>
__global__ void __launch_bounds__(projection_threads, 2)
    matrix_kernel(__grid_constant__ SkinnyLaunch<Format> const launch) {
  using Block = DeviceBlock<projection_threads>;
  Block block;
  await_earlier();
  MatrixProduct<Format, Block>(block, launch)
      .run(static_cast<std::int32_t>(blockIdx.x), static_cast<std::int32_t>(gridDim.x));
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) mask_kernel(__grid_constant__ Launch const launch) {
  auto const per_line = (launch.columns + projection_threads - 1) / projection_threads;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const line = number / per_line;
  auto const column = (number - line * per_line) * projection_threads + static_cast<std::int32_t>(threadIdx.x);
  await_earlier();
  if (column < launch.columns) mask_logit(launch, line, column);
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) fill_kernel(__grid_constant__ Launch const launch) {
  auto const per_line = (launch.groups() + projection_threads - 1) / projection_threads;
  auto const number = static_cast<std::int32_t>(blockIdx.x);
  auto const line = number / per_line;
  auto const group = (number - line * per_line) * projection_threads + static_cast<std::int32_t>(threadIdx.x);
  DeviceBlock<projection_threads> block;
  await_earlier();
  if (group < launch.groups()) fill_group(block, launch, line, group);
}

template <class Launch>
__global__ void __launch_bounds__(projection_threads) place_kernel(__grid_constant__ Launch const launch) {
  auto const i = static_cast<std::int32_t>(blockIdx.x * projection_threads + threadIdx.x);
  if (i < launch.all()) place_one(launch, i);
}

/// The number of blocks for so many threads.
inline unsigned blocks_of(std::int64_t threads) {
  return static_cast<unsigned>((threads + projection_threads - 1) / projection_threads);
}

template <class Launch>
void launch_union(Launch const& unions, cudaStream_t stream, Start start) {
  constexpr auto what = "the kernels of a union";
  auto const slices = unions.unions * UnionWords<DeviceBlock<projection_threads>>::slices(unions);
  launch<union_words_kernel<Launch>>(static_cast<unsigned>(slices), projection_threads, stream, start, what, unions);
  auto const blocks = UnionBlock<DeviceBlock<union_threads>>::settling(unions);
  launch<union_settle_kernel<Launch>>(static_cast<unsigned>(blocks), union_threads, stream, start, what, unions);
  launch<union_list_kernel<Launch>>(1, union_threads, stream, start, what, unions);
}

template <class Launch>
void launch_gather(Launch const& launch, cudaStream_t stream) {
  auto const rows = launch.count + Launch::bias_tail;
  gather_kernel<Launch><<<blocks_of(std::int64_t{32} * rows), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel that gathers weights");
}

template <class Format>
void launch_skinny(SkinnyLaunch<Format> const& product, cudaStream_t stream, Start start) {
  constexpr std::int32_t warps = projection_threads / 32;
  auto const add = [&]<auto kernel>(std::int32_t at_once) {
    auto const needed = (product.columns + warps * at_once - 1) / (warps * at_once);
    auto const blocks = static_cast<unsigned>((std::min)(needed, product.blocks));
    launch<kernel>(blocks, projection_threads, stream, start, "the kernel of a product with few lines", product);
  };
  if constexpr (sizeof(typename Format::Bits) == 2) {
    if (product.on_matrix_units())
      return add.template operator()<matrix_kernel<Format>>(
          MatrixProduct<Format, DeviceBlock<projection_threads>>::tokens);
  }
  if (product.lines <= 1) add.template operator()<skinny_kernel<Format, 1>>(4);
  else if (product.lines <= 4) add.template operator()<skinny_kernel<Format, 4>>(4);
  else if (product.lines <= 8) add.template operator()<skinny_kernel<Format, 8>>(2);
  else add.template operator()<skinny_kernel<Format, most_skinny_lines>>(2);
}

template <class Launch>
void launch_mask(Launch const& mask, cudaStream_t stream, Start start) {
  auto const blocks = std::int64_t{blocks_of(mask.columns)} * mask.lines;
  launch<mask_kernel<Launch>>(static_cast<unsigned>(blocks), projection_threads, stream, start,
                              "the kernel that masks logits", mask);
}

template <class Launch>
void launch_fill(Launch const& fill, cudaStream_t stream, Start start) {
  auto const blocks = std::int64_t{blocks_of(fill.groups())} * fill.lines;
  launch<fill_kernel<Launch>>(static_cast<unsigned>(blocks), projection_threads, stream, start,
                              "the kernel that empties lines", fill);
}

template <class Launch>
void launch_places(Launch const& launch, cudaStream_t stream) {
  if (launch.all() == 0) return;
  place_kernel<Launch><<<blocks_of(launch.all()), projection_threads, 0, stream>>>(launch);
  check(cudaGetLastError(), "the kernel of places");
}

}  // namespace sluice::inline v0::cuda::detail
