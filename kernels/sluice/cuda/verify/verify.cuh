// SPDX-License-Identifier: Apache-2.0
/// \file
/// Launches the verification of guessed blocks on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/cuda/verify/verification.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda {

inline constexpr int verification_threads = 128;  ///< of a block

namespace detail {

/// One launch. Defined in verification_kernel.cuh, which needs nvcc (see instances.cuh).
/// \throws Error  of CUDA
template <int threads>
void launch_verification(Verification const& task, cudaStream_t stream);

}  // namespace detail

/// Enqueues the verification of every sentence's block: predict, verify, accept (Stern, Shazeer and Uszkoreit 2018),
/// equal to Blockwise token for token. One launch, one warp per sentence, O(block * k). Uses no memory of its own, does
/// not wait, and may be captured in a graph.
/// \throws std::invalid_argument  for an invalid task
/// \throws Error                  of CUDA
inline void verify(Verification const& task, cudaStream_t stream) {
  require(task.sentences >= 0, "verify: sentences", task.sentences, "must not be negative");
  require(task.block >= 1, "verify: block", task.block, "must be at least 1");
  require(task.k >= 1 && task.k <= most_listed, "verify: k", task.k, "must be in [1, 64]");
  require(task.sentences <= 1 || task.guess_stride >= task.block - 1, "verify: guess_stride", task.guess_stride,
          "must be at least block - 1");
  require(task.accept != Accept::top_k || (task.n >= 1 && task.n <= task.k), "verify: n", task.n, "must be in [1, k]");
  require(task.accept != Accept::distance || task.n >= 0, "verify: n", task.n, "must not be negative");
  require(task.minimum >= 1 && task.minimum <= task.block, "verify: minimum", task.minimum,
          "must be between 1 and the block");
  require(task.minimum == 1 || task.accept != Accept::exact, "verify: minimum", task.minimum,
          "keeps tokens that the model would not have given: choose top_k or distance to say so");
  auto const unlisted = task.accept == Accept::distance || task.minimum > 1;
  require(!unlisted || task.guess_log_probs != nullptr, "verify: guess_log_probs", "none",
          "must be there where a guess may be kept that is not listed");
  require(task.vocabulary_size >= 1, "verify: vocabulary_size", task.vocabulary_size, "must be at least 1");
  require(task.eos_count >= 0, "verify: eos_count", task.eos_count, "must not be negative");
  if (task.sentences == 0) return;
  require(task.best != nullptr, "verify: best", "none", "must be there");
  require(task.results != nullptr, "verify: results", "none", "must be there");
  require(task.guesses != nullptr || task.block == 1, "verify: guesses", "none", "must be there");
  require(task.eos != nullptr || task.eos_count == 0, "verify: eos", "none", "must be there");
  require(task.tokens != nullptr, "verify: tokens", "none", "must be there");
  require(task.verdicts != nullptr, "verify: verdicts", "none", "must be there");
  detail::launch_verification<verification_threads>(task, stream);
}

}  // namespace sluice::inline v0::cuda

#if defined(__CUDACC__)
#include <sluice/cuda/verify/detail/verification_kernel.cuh>
#endif
