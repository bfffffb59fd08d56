// SPDX-License-Identifier: Apache-2.0
#include <sluice/cuda/device/error.cuh>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <device_work.hpp>
#include <stdexcept>
#include <string>
#include <thread_lists.cuh>
#include <type_traits>

namespace sluice::bench {

// ---- scores

namespace detail {

__device__ inline std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

template <class Format>
__global__ void fill_scores(typename Format::Bits* to, std::int64_t size, std::int64_t columns, std::uint64_t seed,
                            Data data, float scale) {
  auto const step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) {
    auto const random = mix(seed * 0x100000001b3u + static_cast<std::uint64_t>(i));
    auto const u = (static_cast<float>(random >> 40) + 0.5f) * 0x1p-24f;
    auto const angle = static_cast<float>(random & 0xffffffu) * 0x1p-24f;
    auto x = 3.0f * sqrtf(-2.0f * logf(u)) * cospif(2.0f * angle);
    if (data == Data::ascending) x = static_cast<float>(i % columns) * (8.0f / static_cast<float>(columns));
    if (data == Data::equal) x = 1;
    if (data == Data::masked && (random >> 24 & 0xffffu) % 10 != 0) x = -INFINITY;
    x *= scale;
    if constexpr (std::is_same_v<Format, cuda::detail::Float32>) to[i] = __float_as_uint(x);
    else if constexpr (std::is_same_v<Format, cuda::detail::Float16>) to[i] = __half_as_ushort(__float2half(x));
    else to[i] = __bfloat16_as_ushort(__float2bfloat16(x));
  }
}

}  // namespace detail

template <class Format>
void fill_scores(typename Format::Bits* to, std::int64_t size, std::int64_t columns, std::uint64_t seed, Data data,
                 float scale) {
  detail::fill_scores<Format><<<2048, 256>>>(to, size, columns, seed, data, scale);
  cuda::check(cudaGetLastError(), "fill_scores");
  cuda::check(cudaDeviceSynchronize(), "fill_scores");
}

template void fill_scores<cuda::detail::Float32>(std::uint32_t*, std::int64_t, std::int64_t, std::uint64_t, Data,
                                                 float);
template void fill_scores<cuda::detail::Float16>(std::uint16_t*, std::int64_t, std::int64_t, std::uint64_t, Data,
                                                 float);
template void fill_scores<cuda::detail::BFloat16>(std::uint16_t*, std::int64_t, std::int64_t, std::uint64_t, Data,
                                                  float);

// ---- limits

namespace detail {

__global__ void nothing() {}

/// The maximum of 16-byte words, as integers, by blocks that alternate.
__global__ void __launch_bounds__(256) read_only(uint4 const* from, std::int64_t words, std::uint32_t* to) {
  auto const step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::uint32_t best = 0;
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  auto const take = [&best](uint4 v) { best = max(best, max(max(v.x, v.y), max(v.z, v.w))); };
  for (; i + 3 * step < words; i += 4 * step) {
    uint4 v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] = __ldg(from + i + j * step);
#pragma unroll
    for (int j = 0; j < 4; ++j) take(v[j]);
  }
  for (; i < words; i += step) take(__ldg(from + i));
  best = __reduce_max_sync(0xffffffffu, best);
  if (threadIdx.x % 32 == 0) atomicMax(to, best);
}

}  // namespace detail

void launch_nothing(cudaStream_t stream) {
  detail::nothing<<<1, 32, 0, stream>>>();
  cuda::check(cudaGetLastError(), "an empty kernel");
}

void launch_read_only(void const* from, std::size_t bytes, std::uint32_t* to, int processors, cudaStream_t stream) {
  auto const words = static_cast<std::int64_t>(bytes / 16);
  auto const blocks = std::min<std::int64_t>(8 * processors, (words + 1023) / 1024);
  detail::read_only<<<static_cast<unsigned>(std::max<std::int64_t>(blocks, 1)), 256, 0, stream>>>(
      static_cast<uint4 const*>(from), words, to);
  cuda::check(cudaGetLastError(), "read_only");
}

// ---- separate passes

namespace detail {

__global__ void __launch_bounds__(256)
    bias_pass(float const* from, float const* bias, std::int32_t columns, float* to) {
  auto const row = static_cast<std::int64_t>(blockIdx.y) * columns;
  for (auto v = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x); v < columns;
       v += static_cast<std::int32_t>(gridDim.x * blockDim.x))
    to[row + v] = from[row + v] + bias[v];
}

template <class Combine>
__device__ float combine_block(float x, Combine combine) {
  __shared__ float warps[8];
  for (int distance = 16; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  x = warps[0];
  for (int i = 1; i < 8; ++i) x = combine(x, warps[i]);
  return x;
}

/// Maximum, sum, then log-probabilities in place.
__global__ void __launch_bounds__(256) softmax_pass(float* scores, std::int32_t columns) {
  auto* const line = scores + static_cast<std::int64_t>(blockIdx.x) * columns;
  auto const first = static_cast<std::int32_t>(threadIdx.x);
  auto maximum = -INFINITY;
  for (auto v = first; v < columns; v += 256) maximum = fmaxf(maximum, line[v]);
  maximum = combine_block(maximum, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (auto v = first; v < columns; v += 256) sum += __expf(line[v] - maximum);
  sum = combine_block(sum, [](float a, float b) { return a + b; });
  auto const log_sum_exp = maximum + logf(sum);
  for (auto v = first; v < columns; v += 256) line[v] -= log_sum_exp;
}

/// The k best of a line that is already normalised.
template <int size>
__global__ void __launch_bounds__(256)
    search_pass(float const* scores, std::int32_t columns, std::int32_t k, Candidate* best) {
  ThreadList<size> list;
  OnlineSum none;
  list.clear();
  auto const row = static_cast<std::int64_t>(blockIdx.x);
  for (auto v = static_cast<std::int32_t>(threadIdx.x); v < columns; v += 256) list.add(scores[row * columns + v], v);
  merge_block<size, 256>(list, none);
  if (threadIdx.x == 0) write_best(list, 0, k, best + row * k);
}

}  // namespace detail

void launch_bias_pass(float const* from, float const* bias, std::int64_t rows, std::int32_t columns, float* to,
                      cudaStream_t stream) {
  auto const blocks = std::clamp((columns + 2047) / 2048, 1, 64);
  detail::bias_pass<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(rows)), 256, 0, stream>>>(from, bias,
                                                                                                          columns, to);
  cuda::check(cudaGetLastError(), "bias_pass");
}

void launch_softmax_pass(float* scores, std::int64_t rows, std::int32_t columns, cudaStream_t stream) {
  detail::softmax_pass<<<static_cast<unsigned>(rows), 256, 0, stream>>>(scores, columns);
  cuda::check(cudaGetLastError(), "softmax_pass");
}

void launch_search_pass(float const* scores, std::int64_t rows, std::int32_t columns, std::int32_t k, Candidate* best,
                        cudaStream_t stream) {
  auto const blocks = static_cast<unsigned>(rows);
  if (k == 1) detail::search_pass<1><<<blocks, 256, 0, stream>>>(scores, columns, k, best);
  else if (k <= 8) detail::search_pass<8><<<blocks, 256, 0, stream>>>(scores, columns, k, best);
  else throw std::invalid_argument("the search pass has no list of " + std::to_string(k));
  cuda::check(cudaGetLastError(), "search_pass");
}

}  // namespace sluice::bench
