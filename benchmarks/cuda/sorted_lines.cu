// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <cstdint>
#include <sorted_lines.hpp>
#include <thread_lists.cuh>
#include <vector>

namespace sluice::bench {

namespace {

__global__ void __launch_bounds__(256) log_sum_exp(float const* scores, std::int32_t columns, float* sums) {
  __shared__ float2 warps[8];
  auto const* const line = scores + static_cast<std::int64_t>(blockIdx.x) * columns;
  OnlineSum sum;
  for (auto v = static_cast<std::int32_t>(threadIdx.x); v < columns; v += 256) sum.add({line[v], 1});
  for (int distance = 16; distance > 0; distance /= 2)
    sum.add({__shfl_down_sync(0xffffffffu, sum.maximum, distance), __shfl_down_sync(0xffffffffu, sum.sum, distance)});
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = make_float2(sum.maximum, sum.sum);
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 8; ++i) sum.add({warps[i].x, warps[i].y});
  sums[blockIdx.x] = sum.log_sum_exp();
}

__global__ void first_of_lines(float const* sorted, std::int32_t const* tokens, float const* sums, std::int32_t columns,
                               std::int32_t k, Candidate* best) {
  auto const row = static_cast<std::int64_t>(blockIdx.x);
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < k; i += static_cast<std::int32_t>(blockDim.x))
    best[row * k + i] = {tokens[row * columns + i], sorted[row * columns + i] - sums[row]};
}

}  // namespace

SortedLines::SortedLines(Sort sort, std::int64_t rows, std::int32_t columns)
    : sort_(sort),
      rows_(rows),
      columns_(columns),
      sorted_(static_cast<std::size_t>(rows * columns)),
      sums_(static_cast<std::size_t>(rows)),
      tokens_(static_cast<std::size_t>(rows * columns)),
      sorted_tokens_(static_cast<std::size_t>(rows * columns)),
      offsets_(static_cast<std::size_t>(rows + 1)) {
  std::vector<std::int32_t> tokens(tokens_.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(columns));
  tokens_.set(tokens);
  std::vector<std::int64_t> offsets(offsets_.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<std::int64_t>(i) * columns;
  offsets_.set(offsets);
  std::size_t bytes = 0;
  this->sort(nullptr, nullptr, bytes, nullptr);
  temporary_ = DeviceArray<unsigned char>(bytes);
}

void SortedLines::sort(float const* scores, void* temporary, std::size_t& bytes, cudaStream_t stream) {
  auto const count = rows_ * columns_;
  auto const* const begins = offsets_.data();
  if (sort_ == Sort::segmented_sort)
    cuda::check(cub::DeviceSegmentedSort::SortPairsDescending(temporary, bytes, scores, sorted_.data(), tokens_.data(),
                                                              sorted_tokens_.data(), count, rows_, begins, begins + 1,
                                                              stream),
                "DeviceSegmentedSort");
  else
    cuda::check(cub::DeviceSegmentedRadixSort::SortPairsDescending(temporary, bytes, scores, sorted_.data(),
                                                                   tokens_.data(), sorted_tokens_.data(), count, rows_,
                                                                   begins, begins + 1, 0, 32, stream),
                "DeviceSegmentedRadixSort");
}

void SortedLines::enqueue(float const* scores, std::int32_t k, Candidate* best, cudaStream_t stream) {
  auto const rows = static_cast<unsigned>(rows_);
  auto bytes = temporary_.bytes();
  sort(scores, temporary_.data(), bytes, stream);
  log_sum_exp<<<rows, 256, 0, stream>>>(scores, columns_, sums_.data());
  cuda::check(cudaGetLastError(), "log_sum_exp");
  first_of_lines<<<rows, 64, 0, stream>>>(sorted_.data(), sorted_tokens_.data(), sums_.data(), columns_, k, best);
  cuda::check(cudaGetLastError(), "first_of_lines");
}

}  // namespace sluice::bench
