// SPDX-License-Identifier: Apache-2.0
/// \file
/// Any model as a language model inside a search over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/frames/text_score.hpp>

namespace sluice::inline v0 {

/// The language model of a search whose model is a WithTextModel: each new prefix of the beam is one row of it, those of all utterances
/// of a step in one call. What it adds is weight * its log-probability of the token, and the bonus; at the end, weight * that of its eos.
struct TextModel {
  FusionWeights weights{};  ///< `unknown` is not used

  static constexpr bool in_rows = true;  ///< its scores come with the model's lines

  struct State {};
  void check() const { weights.check(); }
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  float score(State, Token) const { return 0; }
  float end(State) const { return 0; }
  float most(State) const { return 0; }
};

}  // namespace sluice::inline v0
