// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernels independent of sluice: they make scores to measure with, give a lower bound for any kernel, and run bias,
/// softmax and search as separate passes over all scores, as before they were fused.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace sluice::bench {

enum class Data {
  normal,     ///< mean 0, deviation 3
  ascending,  ///< along each line: the worst for running thresholds
  equal,
  masked  ///< as normal, but nine of ten are -infinity
};

constexpr char const* name(Data data) {
  switch (data) {
    case Data::normal: return "normal";
    case Data::ascending: return "ascending";
    case Data::equal: return "equal";
    case Data::masked: return "masked";
  }
  return "";
}

/// Fills `size` scores of lines of `columns`, and waits. For the three formats.
/// \param scale  a factor of every score
template <class Format>
void fill_scores(typename Format::Bits* to, std::int64_t size, std::int64_t columns, std::uint64_t seed,
                 Data data = Data::normal, float scale = 1);

void launch_nothing(cudaStream_t stream);
/// Reads `bytes`, up to the last multiple of 16.
/// \param to  a word
void launch_read_only(void const* from, std::size_t bytes, std::uint32_t* to, int processors, cudaStream_t stream);

void launch_bias_pass(float const* from, float const* bias, std::int64_t rows, std::int32_t columns, float* to,
                      cudaStream_t stream);
/// Log-probabilities, in place.
void launch_softmax_pass(float* scores, std::int64_t rows, std::int32_t columns, cudaStream_t stream);
/// The k best of lines that are already normalised, k at most 8.
void launch_search_pass(float const* scores, std::int64_t rows, std::int32_t columns, std::int32_t k, Candidate* best,
                        cudaStream_t stream);

}  // namespace sluice::bench
