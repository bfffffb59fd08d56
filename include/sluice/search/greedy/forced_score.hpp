// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scoring of given outputs.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/opening.hpp>

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0 {

/// The log-probability of a given output: the request's `prefix`, eos at its end where it is meant to end there. The
/// result's one hypothesis is that output with its log_probs; `finished` says whether it ends in eos. One model call
/// where the model takes blocks. An empty prefix scores 0 without a call.
struct ForcedScore {
  LengthPenalty penalty{};  ///< of the score

  struct State {
    Opening opening;
    Vocabulary const* vocabulary = nullptr;
    std::vector<Token> target;
    float last = 0;
    bool ended = false;
  };

  void check() const { penalty.check(); }
  std::int32_t slots() const { return 1; }

  void start(State& s, Sentence const& sentence) const {
    s.vocabulary = sentence.vocabulary, s.ended = false;
    s.target.assign(sentence.prefix.begin(), sentence.prefix.end());
    auto const& eos = sentence.vocabulary->eos;
    for (std::size_t i = 0; i + 1 < s.target.size(); ++i)
      require(std::ranges::find(eos, s.target[i]) == eos.end(), "prefix", s.target[i],
              "is an end of sentence before the end of the target");
    auto const length = sentence.prompt.size() + s.target.size();
    require(length <= 1 || length - 1 <= static_cast<std::size_t>(sentence.limits.length), "prefix",
            std::to_string(s.target.size()) + " tokens", "longer than the model's limit");
    auto all_but_last = sentence;  // the last token is asked for, never fed
    all_but_last.prefix = std::span<Token const>(s.target).first(s.target.empty() ? 0 : s.target.size() - 1);
    s.opening.restart(all_but_last);
  }
  void plan(State& s, Plan& plan) const {
    if (s.target.empty()) return;
    s.opening.plan(plan, {.best = 0, .probes = std::span<Token const>(s.target).last(1)});
  }
  bool advance(State& s, Expansion const& answer) const {
    if (s.target.empty()) return s.ended = true;
    if (!s.opening.advance(answer)) return false;
    s.last = answer.back().probes[0];
    return s.ended = true;
  }
  Progress progress(State const& s) const { return {s.opening.length(), 1, s.opening.rows()}; }
  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    if (!s.ended) return;
    auto& h = result.hypotheses.emplace_back();
    h.tokens = s.target;
    if (s.target.empty()) return;
    h.log_probs.assign(s.opening.log_probs().begin(), s.opening.log_probs().end());
    h.log_probs.push_back(s.last);
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = penalty.score(h.log_prob, static_cast<std::int32_t>(h.tokens.size()));
    auto const& eos = s.vocabulary->eos;
    h.finished = eos.empty() || std::ranges::find(eos, h.tokens.back()) != eos.end();
  }
};

}  // namespace sluice::inline v0
