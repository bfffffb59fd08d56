// SPDX-License-Identifier: Apache-2.0
/// \file
/// Greedy decoding.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/detail/single_output.hpp>
#include <sluice/search/length.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::inline v0 {

/// Takes the best token at every step (ties: the lower token) until eos or the maximum length; an output cut at the
/// maximum length is not `finished`. One slot, one row per step.
///
/// The score is log_prob, the plain sum, since nothing is ranked by it. Engines whose greedy search is a beam of one
/// divide it by the length (CTranslate2: presets::ctranslate2_greedy; fairseq): set `penalty` to make scores comparable
/// with a beam's.
struct Greedy {
  LengthLimits length{};
  bool scores = true;  ///< false: no softmax; log-probabilities and score are then NaN, and a rule's penalties (not its
                       ///< bans) act on the model's scores instead of on log-probabilities
  LengthPenalty penalty{.kind = LengthPenalty::Kind::none};  ///< for the score
  Stage stage = Stage::after_softmax;  ///< when eos (output too short) and tokens never generated are forbidden

  struct State : detail::SingleOutput {
    Token last = 0;         // to be fed
    std::int32_t held = 0;  // tokens in the slot
  };

  void check() const { length.check(), penalty.check(); }
  std::int32_t slot_count() const { return 1; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    s.begin(sentence, length);
    s.last = sentence.last, s.held = sentence.held;
  }

  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    plan.row(0, 0, s.held, {&s.last, 1});
    plan.ask({.best = 1, .edits = s.edits(s.size()), .stage = stage, .normalise = scores});
  }

  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    ++s.held;
    auto const best = answer.back().best;
    if (best.empty()) return s.ended = true;
    s.last = best[0].token;
    return s.keep({s.last, scores ? best[0].log_prob : std::numeric_limits<float>::quiet_NaN()});
  }

  Progress progress(State const& s) const { return {s.held, 1, 1}; }

  void settled(State& s, std::vector<Token>& tokens) const { tokens = s.tokens; }

  SLUICE_LAZY void finish(State const& s, Result& result) const {
    if (auto* const h = s.write(result)) h->score = penalty.score(h->log_prob, s.size());
  }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(Greedy)
