// SPDX-License-Identifier: Apache-2.0
/// \file
/// Greedy decoding.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/common/bans.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/prefix.hpp>

#include <algorithm>
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

  struct State {
    Bans bans;
    Prefix prefix;
    std::vector<Token> tokens;  // generated
    std::vector<float> log_probs;
    Vocabulary const* vocabulary = nullptr;
    LengthLimits::Bounds bounds{};
    Token last = 0;         // to be fed
    std::int32_t held = 0;  // tokens in the slot
    bool finished = false, ended = false;

    /// The length of the output so far.
    std::int32_t size() const { return prefix.size() + static_cast<std::int32_t>(tokens.size()); }
  };

  void check() const { length.check(), penalty.check(); }
  std::int32_t slot_count() const { return 1; }

  template <class = void>
  void begin(State& s, Sentence const& sentence) const {
    s.bounds = length.of(sentence);
    s.bans.reset(*sentence.vocabulary);
    s.prefix = Prefix(sentence);
    s.vocabulary = sentence.vocabulary;
    s.tokens.clear(), s.log_probs.clear();
    s.last = sentence.last, s.held = sentence.held, s.finished = s.ended = false;
  }

  template <class = void>
  void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    plan.row(0, 0, s.held, {&s.last, 1});
    plan.ask({.best = 1, .edits = s.bans.edits(s.size() < s.bounds.min), .stage = stage, .normalise = scores});
  }

  template <class = void>
  bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    ++s.held;
    auto const best = answer.back().best;
    if (best.empty()) return s.ended = true;
    s.last = best[0].token;
    s.tokens.push_back(s.last), s.log_probs.push_back(best[0].log_prob);
    s.finished = s.vocabulary->ends(s.last);
    auto const full = s.size() >= s.bounds.max;
    if (full && s.vocabulary->eos.empty()) s.finished = true;
    return s.ended = s.finished || full;
  }

  Progress progress(State const& s) const { return {s.held, 1, 1}; }

  void settled(State& s, std::vector<Token>& tokens) const { tokens = s.tokens; }

  template <class = void>
  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    if (s.ended && !s.finished && s.size() < s.bounds.max)
      return result.fail(Failure::no_token_left, "every token was impossible");
    auto& h = result.hypotheses.emplace_back();
    h.tokens = s.tokens, h.log_probs = s.log_probs, h.finished = s.finished;
    if (!scores) std::fill(h.log_probs.begin(), h.log_probs.end(), std::numeric_limits<float>::quiet_NaN());
    h.log_prob = s.prefix.log_prob();
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = penalty.score(h.log_prob, s.size());
  }
};

}  // namespace sluice::inline v0
