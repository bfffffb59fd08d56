// SPDX-License-Identifier: Apache-2.0
/// \file
/// Presets for the greedy searches of other engines, where they differ from Greedy.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/greedy/greedy.hpp>

namespace sluice::inline v0::presets {

/// CTranslate2's GreedySearch with its Translator's defaults (beam_size 1; include/ctranslate2/translation.h:
/// length_penalty 1, min_decoding_length 1, max_decoding_length 256): score = log_prob / length^length_penalty; eos is
/// forbidden before the softmax, so the first token's log-probability is normalised without eos. Set length to suit
/// source and output.
/// Not reproduced: a forced prefix scoring 0 (its tokens keep the model's own log-probabilities).
inline Greedy ctranslate2_greedy(double length_penalty = 1) {
  return {.length = {.min = 1, .max = 256},
          .penalty = {.kind = length_penalty == 0 ? LengthPenalty::Kind::none : LengthPenalty::Kind::average,
                      .alpha = length_penalty},
          .stage = Stage::before_softmax};
}

}  // namespace sluice::inline v0::presets
