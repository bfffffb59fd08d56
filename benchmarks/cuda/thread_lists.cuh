// SPDX-License-Identifier: Apache-2.0
/// \file
/// Softmax and selection with a sorted list in every thread, as in other kernels: one block per line (Milakov and
/// Gimelshein 2018), and lines in parts with lists of twice the beam (the scheme of FasterTransformer). Reimplemented
/// from descriptions.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace sluice::bench {

/// Scores and tokens, best first.
template <int size>
struct ThreadList {
  float score[size];
  std::int32_t token[size];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < size; ++i) score[i] = -INFINITY, token[i] = -1;
  }
  /// Indices are compile-time constants, so that the list can stay in registers.
  __device__ void add(float x, std::int32_t v) {
    if (!(x > score[size - 1])) return;
    score[size - 1] = x, token[size - 1] = v;
#pragma unroll
    for (int i = size - 1; i > 0; --i) {
      if (score[i] > score[i - 1]) {
        auto const higher = score[i];
        auto const its = token[i];
        score[i] = score[i - 1], token[i] = token[i - 1];
        score[i - 1] = higher, token[i - 1] = its;
      }
    }
  }
  __device__ void drop_first() {
#pragma unroll
    for (int i = 0; i + 1 < size; ++i) score[i] = score[i + 1], token[i] = token[i + 1];
    score[size - 1] = -INFINITY, token[size - 1] = -1;
  }
};

/// A maximum and the sum of exponentials relative to it.
struct OnlineSum {
  float maximum = -INFINITY, sum = 0;
  __device__ void add(OnlineSum other) {
    auto const higher = fmaxf(maximum, other.maximum);
    if (higher == -INFINITY) return;
    sum = sum * __expf(maximum - higher) + other.sum * __expf(other.maximum - higher);
    maximum = higher;
  }
  __device__ float log_sum_exp() const { return maximum + logf(sum); }
};

namespace detail {

/// Merges the lists of the lanes below 2 * distance into those below distance, until lane 0 has everything; the other
/// lists become undefined.
template <int size>
__device__ void merge_lanes(ThreadList<size>& list, OnlineSum& sum, int distance) {
  auto const lane = static_cast<int>(threadIdx.x % 32);
  for (; distance > 0; distance /= 2) {
    OnlineSum const other{__shfl_down_sync(0xffffffffu, sum.maximum, distance),
                          __shfl_down_sync(0xffffffffu, sum.sum, distance)};
    if (lane < distance) sum.add(other);
#pragma unroll 1
    for (int i = 0; i < size; ++i) {
      auto const x = __shfl_down_sync(0xffffffffu, list.score[0], distance);
      auto const v = __shfl_down_sync(0xffffffffu, list.token[0], distance);
      if (lane < distance) list.add(x, v);
      else list.drop_first();
    }
  }
}

/// Thread 0 gets the block's list.
template <int size, int threads>
__device__ void merge_block(ThreadList<size>& list, OnlineSum& sum) {
  constexpr int warps = threads / 32;
  __shared__ ThreadList<size> lists[warps];
  __shared__ float2 sums[warps];
  merge_lanes(list, sum, 16);
  if constexpr (warps > 1) {
    auto const lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    if (lane == 0) lists[warp] = list, sums[warp] = make_float2(sum.maximum, sum.sum);
    __syncthreads();
    if (warp != 0) return;
    if (lane < warps) list = lists[lane], sum = {sums[lane].x, sums[lane].y};
    merge_lanes(list, sum, warps / 2);
  }
}

template <class Format, int size>
__device__ void read_line(typename Format::Bits const* line, float const* bias, std::int32_t first, std::int32_t last,
                          int threads, ThreadList<size>& list, OnlineSum& sum) {
#pragma unroll 1
  for (auto v = first + static_cast<std::int32_t>(threadIdx.x); v < last; v += threads) {
    auto x = Format::value(__ldg(line + v));
    if (bias != nullptr) x += __ldg(bias + v);
    sum.add({x, 1});
    list.add(x, v);
  }
}

template <int size>
__device__ void write_best(ThreadList<size> const& list, float from, std::int32_t k, Candidate* best) {
#pragma unroll
  for (int i = 0; i < size; ++i)
    if (i < k) best[i] = {list.token[i], list.score[i] - from};
}

/// One block per line.
template <class Format, int size, int threads>
__global__ void __launch_bounds__(threads) whole_line(typename Format::Bits const* scores, float const* bias,
                                                      std::int32_t columns, std::int32_t k, Candidate* best) {
  ThreadList<size> list;
  OnlineSum sum;
  list.clear();
  auto const row = static_cast<std::int64_t>(blockIdx.x);
  read_line<Format>(scores + row * columns, bias, 0, columns, threads, list, sum);
  merge_block<size, threads>(list, sum);
  if (threadIdx.x == 0) write_best(list, sum.log_sum_exp(), k, best + row * k);
}

template <int size>
struct LinePart {
  OnlineSum sum;
  ThreadList<size> list;
};

/// Launch 1: one block per part of every line.
template <class Format, int size, int threads>
__global__ void __launch_bounds__(threads)
    part_of_line(typename Format::Bits const* scores, float const* bias, std::int32_t columns, LinePart<size>* parts) {
  ThreadList<size> list;
  OnlineSum sum;
  list.clear();
  auto const row = static_cast<std::int64_t>(blockIdx.y);
  auto const part = static_cast<std::int32_t>(blockIdx.x), count = static_cast<std::int32_t>(gridDim.x);
  auto const length = (columns + count - 1) / count;
  read_line<Format>(scores + row * columns, bias, part * length, min(columns, (part + 1) * length), threads, list, sum);
  merge_block<size, threads>(list, sum);
  if (threadIdx.x == 0) parts[row * count + part] = {sum, list};
}

/// Launch 2: one block per line.
template <int size, int threads>
__global__ void __launch_bounds__(threads)
    merge_parts(LinePart<size> const* parts, std::int32_t count, std::int32_t listed, Candidate* best) {
  ThreadList<size> list;
  OnlineSum sum;
  list.clear();
  auto const row = static_cast<std::int64_t>(blockIdx.x);
  auto const* const mine = parts + row * count;
#pragma unroll 1
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count * size; i += threads) {
    auto const& part = mine[i / size];
    if (i % size == 0) sum.add(part.sum);
    list.add(part.list.score[i % size], part.list.token[i % size]);
  }
  merge_block<size, threads>(list, sum);
  if (threadIdx.x == 0) write_best(list, sum.log_sum_exp(), listed, best + row * listed);
}

/// Launch 3: one warp per sentence, over the lists of its beams.
template <int size>
__global__ void __launch_bounds__(32)
    merge_beams(Candidate const* lists, std::int32_t beams, std::int32_t listed, Candidate* best) {
  ThreadList<size> list;
  OnlineSum sum;
  list.clear();
  auto const sentence = static_cast<std::int64_t>(blockIdx.x);
  auto const count = beams * listed;
#pragma unroll 1
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count; i += 32)
    list.add(lists[sentence * count + i].log_prob, i);
  merge_lanes(list, sum, 16);
  if (threadIdx.x == 0) write_best(list, 0, listed, best + sentence * listed);
}

}  // namespace detail

/// One block per line, lists of k; `size` is at least k.
template <class Format, int size>
void launch_online_softmax(typename Format::Bits const* scores, float const* bias, std::int64_t rows,
                           std::int32_t columns, std::int32_t k, Candidate* best, cudaStream_t stream) {
  detail::whole_line<Format, size, 256>
      <<<static_cast<unsigned>(rows), 256, 0, stream>>>(scores, bias, columns, k, best);
  cuda::check(cudaGetLastError(), "whole_line");
}

/// Three launches, lists of twice the beam. As many parts as give each multiprocessor three blocks.
template <class Format, int size>
struct ThreadLists {
  // Fewer threads for longer lists, as in FasterTransformer.
  static constexpr int threads = size < 16 ? 256 : size < 32 ? 128 : 64;
  using Part = detail::LinePart<size>;

  static std::int32_t parts(std::int64_t rows, int processors) {
    if (rows >= 256) return 4;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>((3 * processors + rows - 1) / rows, 1, 128));
  }

  /// \param lists  [rows, listed], log-probabilities
  /// \param beams  rows of a sentence; 0: skip the third launch
  /// \param best   [rows / beams, listed]
  static void launch(typename Format::Bits const* scores, float const* bias, std::int64_t rows, std::int32_t columns,
                     std::int32_t listed, std::int32_t beams, int processors, Part* workspace, Candidate* lists,
                     Candidate* best, cudaStream_t stream) {
    auto const count = parts(rows, processors);
    dim3 const grid(static_cast<unsigned>(count), static_cast<unsigned>(rows));
    detail::part_of_line<Format, size, threads><<<grid, threads, 0, stream>>>(scores, bias, columns, workspace);
    cuda::check(cudaGetLastError(), "part_of_line");
    detail::merge_parts<size, 64><<<static_cast<unsigned>(rows), 64, 0, stream>>>(workspace, count, listed, lists);
    cuda::check(cudaGetLastError(), "merge_parts");
    if (beams == 0) return;
    detail::merge_beams<size><<<static_cast<unsigned>(rows / beams), 32, 0, stream>>>(lists, beams, listed, best);
    cuda::check(cudaGetLastError(), "merge_beams");
  }
};

}  // namespace sluice::bench
