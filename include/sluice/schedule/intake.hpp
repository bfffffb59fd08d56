// SPDX-License-Identifier: Apache-2.0
/// \file
/// How requests wait: in which order, and whether they are encoded meanwhile.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0 {

/// What a decoder does with requests between submit and admission. Changes speed, never results.
struct Intake {
  std::size_t window = 0;  ///< sorts every so many requests by source length, longest first, so that neighbours are
      ///< alike ("maxi-batch"); nobody is overtaken by a request of a later window. 0 = as they come
  std::size_t encode_ahead = 0;  ///< sentences that may be encoded and wait to be admitted; 0 = encode on admission.
                                 ///< Needs an EncodingModel
  std::size_t encode_group =
      0;                       ///< sentences in one call of Model::encode; 0 = half of encode_ahead with a thread, all
                               ///< of it without
  bool encoder_thread = true;  ///< encode in a thread of its own, beside Model::step; false: between the steps

  bool wait_for_encoder =
      true;  ///< whether a step waits for those whom the schedule lets in and the encoder thread has not
             ///< finished: the same steps in every run; false: while sentences run, only who is
             ///< ready joins them (Server)

  std::int32_t prompt_chunk =
      0;  ///< tokens of prompts and prefixes that are fed in one step at most, beside the steps of
          ///< others: nobody who runs waits longer than that; 0 = no bound. Where the model takes
          ///< rows of several tokens beside rows of one (`ragged`, `blocks`)
  std::int64_t shared_tokens =
      0;  ///< > 0: prompts that begin alike are fed once. What slots hold, of sentences that run
          ///< and of so many tokens of those that have ended, is forked. 0 = nothing is shared.
          ///< Needs a Source that is an empty class (all is in the prompt) and `roll_back`

  /// Sentences in one call of Model::encode.
  std::size_t group() const {
    if (encode_group > 0) return encode_group;
    return encoder_thread ? (encode_ahead + 1) / 2 : encode_ahead;
  }

  /// Throws std::invalid_argument naming the option and its value.
  void check() const {
    require(encode_group <= encode_ahead, "encode_group", encode_group, "must be at most encode_ahead");
    require(prompt_chunk >= 0, "prompt_chunk", prompt_chunk, "must be 0 (no bound) or more");
    require(shared_tokens >= 0, "shared_tokens", shared_tokens, "must be 0 (nothing is shared) or more");
  }
};

}  // namespace sluice::inline v0
