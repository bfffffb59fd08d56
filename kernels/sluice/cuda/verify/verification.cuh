// SPDX-License-Identifier: Apache-2.0
/// \file
/// Verification of guessed blocks (blockwise parallel and speculative decoding): one round of Blockwise, on a device.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>
#include <limits>

namespace sluice::inline v0::cuda {

/// Which guesses are accepted: sluice's rules of the same names (speculative/acceptance.hpp).
enum class Accept : std::int32_t {
  exact,     ///< the line's best token
  top_k,     ///< the n best
  distance,  ///< at most n away from the best, as numbers
};

/// The result for a sentence's block.
struct Verdict {
  std::int32_t kept = 0;  ///< accepted guesses: as many more tokens stay in the slot
  /// Tokens that the round adds to the output: the accepted guesses and the model's own next token, unless the last
  /// guess ends the sentence or no token is left.
  std::int32_t count = 0;
  std::int32_t tried = 0;     ///< guesses looked at,
  std::int32_t right = 0;     ///< the number of those that the rule accepted, for callers that adapt the block
  std::int32_t finished = 0;  ///< the last token is an end of sentence
  std::int32_t valid = 1;     ///< 0: a line held a NaN or +infinity; all else is 0
};

/// A round for any number of sentences; all pointers are device pointers. Line i of a sentence is the model's
/// prediction for guess i; the line after the last guess predicts the model's own token.
struct Verification {
  std::int32_t sentences = 0;
  std::int32_t block = 1;  ///< the most lines of a sentence; one more than guesses

  // The output of LogSoftmaxTopK.
  Candidate const* best = nullptr;      ///< [lines, k], LineTask::best
  LineResult const* results = nullptr;  ///< [lines]
  std::int32_t k = 1;                   ///< LineTask::k
  /// [lines]: probes of the guesses, read unless `accept` is exact. Needed if an accepted guess may be unlisted: with
  /// Accept::distance, or a minimum above 1. Do not probe a guess that is not a token.
  float const* guess_log_probs = nullptr;
  std::int32_t const* first_lines = nullptr;  ///< [sentences]: the first line of each; none: sentence * block

  /// Guess i of sentence s is at s * guess_stride + i; one outside the vocabulary ends them. If the tokens fed are
  /// [sentences, block], then guesses = fed + 1 and guess_stride = block.
  Token const* guesses = nullptr;
  std::int32_t guess_stride = 0;
  std::int32_t const* guess_counts = nullptr;  ///< [sentences], at most block - 1; none: block - 1 each

  Accept accept = Accept::exact;
  std::int32_t n = 1;        ///< of top_k (in [1, k]), or distance (>= 0)
  std::int32_t minimum = 1;  ///< Blockwise::minimum; 1 where `accept` is exact
  std::int32_t vocabulary_size = (std::numeric_limits<std::int32_t>::max)();
  Token const* eos = nullptr;  ///< [eos_count]
  std::int32_t eos_count = 0;

  Candidate* tokens = nullptr;  ///< [sentences, block]: what the round adds to the output, with log-probabilities
  Verdict* verdicts = nullptr;  ///< [sentences]
};

}  // namespace sluice::inline v0::cuda
