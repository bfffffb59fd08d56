// SPDX-License-Identifier: Apache-2.0
/// \file
/// How requests wait: in which order, and whether they are encoded while they wait.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0 {

/// What a decoder does with requests between submission and admission. Changes speed, never results.
struct Intake {
  /// Sorts each window of so many requests by source length, longest first, so that neighbours have similar lengths
  /// ("maxi-batch"); no request is overtaken by one of a later window. 0 = in order of arrival.
  std::size_t window = 0;
  std::size_t encode_ahead = 0;  ///< sentences that may be encoded and wait to be admitted; 0 = encode on admission.
                                 ///< Needs an EncodingModel
  /// Sentences in one call of Model::encode; 0 = half of encode_ahead with a thread, all of it without.
  std::size_t encode_group = 0;
  bool encoder_thread = true;  ///< encode in a thread of its own, beside Model::step; false: between the steps

  /// Whether a step waits for sentences that the schedule admits and the encoder thread has not finished: then every
  /// run has the same steps. false: while sentences run, only encoded ones join them (Server).
  bool wait_for_encoder = true;

  /// Chunked prefill: the most tokens of prompts and prefixes fed in one step beside the steps of running sentences,
  /// which bounds how long these wait; 0 = no bound. For models that take rows of several tokens beside rows of one
  /// (`ragged`, `blocks`).
  std::int32_t prompt_chunk = 0;
  /// > 0: prefix caching. Common prefixes of prompts are fed once: they are forked from the slots of running sentences
  /// and from this many tokens kept of ended ones. 0 = nothing is shared. Needs a Source that is an empty class
  /// (everything is in the prompt) and `roll_back`.
  std::int64_t shared_tokens = 0;

  /// Sentences in one call of Model::encode.
  std::size_t group() const {
    if (encode_group > 0) return encode_group;
    return encoder_thread ? (encode_ahead + 1) / 2 : encode_ahead;
  }

  /// Throws std::invalid_argument naming the option and its value.
  template <class = void>
  void check() const {
    require(encode_group <= encode_ahead, "encode_group", encode_group, "must be at most encode_ahead");
    require(prompt_chunk >= 0, "prompt_chunk", prompt_chunk, "must be 0 (no bound) or more");
    require(shared_tokens >= 0, "shared_tokens", shared_tokens, "must be 0 (nothing is shared) or more");
  }
};

}  // namespace sluice::inline v0
