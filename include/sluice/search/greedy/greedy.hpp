// SPDX-License-Identifier: Apache-2.0
/// \file
/// Greedy decoding.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/opening.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::inline v0 {

/// Takes the best token at every step (ties: the lower token) until eos or the maximum length; an output cut there is
/// not `finished`. One slot, one row a step.
struct Greedy {
  LengthLimits length{};
  bool scores = true;  ///< false: no softmax; log-probabilities and score are then NaN, and a rule's penalties (not its
                       ///< bans) act on the model's scores instead of on log-probabilities

  struct State {
    Opening opening;
    Bans bans;
    std::vector<Token> tokens;  // generated, prefix included
    std::vector<float> log_probs;
    Vocabulary const* vocabulary = nullptr;
    LengthLimits::Bounds bounds{};
    std::int32_t held = 0;  // tokens in the slot
    bool finished = false, ended = false;
  };

  void check() const { length.check(); }
  std::int32_t slots() const { return 1; }

  void start(State& s, Sentence const& sentence) const {
    s.bounds = length.of(sentence);
    s.opening.start(sentence);
    s.bans.start(*sentence.vocabulary);
    s.vocabulary = sentence.vocabulary;
    s.tokens.assign(sentence.prefix.begin(), sentence.prefix.end());
    s.log_probs.clear();
    s.held = 0, s.finished = s.ended = false;
  }

  void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    Query const query{.best = 1,
                      .edits = s.bans.edits(static_cast<std::int32_t>(s.tokens.size()) < s.bounds.min),
                      .stage = Stage::after_softmax,
                      .normalise = scores};
    if (!s.opening.done()) return s.opening.plan(plan, query);
    plan.row(0, 0, s.held, std::span<Token const>(s.tokens).last(1));
    plan.ask(query);
  }

  bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    if (!s.opening.done()) {
      auto const free = s.opening.advance(answer);
      s.held = s.opening.length();
      if (!free) return false;
      s.log_probs.assign(s.opening.log_probs().begin(), s.opening.log_probs().end());
    } else {
      ++s.held;
    }
    auto const best = answer.back().best;
    if (best.empty()) return s.ended = true;
    s.tokens.push_back(best[0].token), s.log_probs.push_back(best[0].log_prob);
    auto const& eos = s.vocabulary->eos;
    s.finished = std::ranges::find(eos, best[0].token) != eos.end();
    auto const full = static_cast<std::int32_t>(s.tokens.size()) >= s.bounds.max;
    if (full && eos.empty()) s.finished = true;
    return s.ended = s.finished || full;
  }

  Progress progress(State const& s) const { return {s.held, 1, s.opening.done() ? 1 : s.opening.rows()}; }

  void settled(State& s, std::vector<Token>& tokens) const {
    if (s.tokens.size() == s.log_probs.size()) tokens = s.tokens;
    else tokens.clear();
  }

  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    auto const full = static_cast<std::int32_t>(s.tokens.size()) >= s.bounds.max;
    if (s.ended && !s.finished && !full) return result.fail(Failure::no_token_left, "every token was impossible");
    auto& h = result.hypotheses.emplace_back();
    if (s.tokens.size() != s.log_probs.size()) return;  // stopped inside the forced prefix
    h.tokens = s.tokens, h.log_probs = s.log_probs, h.finished = s.finished;
    if (!scores) std::ranges::fill(h.log_probs, std::numeric_limits<float>::quiet_NaN());
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = h.log_prob;
  }
};

}  // namespace sluice::inline v0
