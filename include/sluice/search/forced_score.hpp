// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scores given outputs.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/length.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Computes the log-probability of a given output: the request's `prefix`, which ends in eos if the output does. The
/// result's one hypothesis is that output with its log_probs; `finished` says whether it ends in eos. One model call
/// where the model takes blocks. An empty prefix scores 0 without a call.
struct ForcedScore {
  LengthPenalty penalty{};  ///< for the score

  static constexpr bool takes_prefix = true;

  struct State {
    Vocabulary const* vocabulary = nullptr;
    std::vector<Token> target;
    std::vector<Token> fed;        // the prompt's last token, and the target without its last token
    std::vector<float> log_probs;  // of the target's tokens, as far as they are known
    std::int32_t held = 0;         // tokens in the slot
    bool blocks = false, ended = false;
  };

  void check() const { penalty.check(); }
  std::int32_t slot_count() const { return 1; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    s.vocabulary = sentence.vocabulary, s.ended = false;
    s.target.assign(sentence.prefix.begin(), sentence.prefix.end());
    for (std::size_t i = 0; i + 1 < s.target.size(); ++i)
      require(!s.vocabulary->ends(s.target[i]), "prefix", s.target[i],
              "is an end of sentence before the end of the target");
    auto const length = sentence.prompt.size() + s.target.size();
    require(length <= 1 || length - 1 <= static_cast<std::size_t>(sentence.limits.length), "prefix",
            std::to_string(s.target.size()) + " tokens", "longer than the model's limit");
    s.fed.assign(1, sentence.last);
    if (!s.target.empty()) s.fed.insert(s.fed.end(), s.target.begin(), s.target.end() - 1);
    s.log_probs.clear();
    s.held = sentence.held;
    s.blocks = sentence.abilities.blocks && sentence.abilities.ragged;  // rows of several tokens next to rows of one
  }
  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    if (s.target.empty()) return;
    auto const first = s.log_probs.size();
    auto const count = next(s);
    plan.row(0, 0, s.held, std::span<Token const>(s.fed).subspan(first, count), static_cast<std::int32_t>(count));
    for (std::size_t i = first; i < first + count; ++i)
      plan.ask({.best = 0, .probes = std::span<Token const>(s.target).subspan(i, 1)});
  }
  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    if (s.target.empty()) return s.ended = true;
    for (std::size_t i = 0; i < answer.size(); ++i) s.log_probs.push_back(answer[i].probes[0]);
    s.held += static_cast<std::int32_t>(answer.size());
    return s.ended = s.log_probs.size() == s.target.size();
  }
  Progress progress(State const& s) const {
    auto const rows = static_cast<std::int32_t>(next(s));
    return {s.held, 1, rows};
  }
  SLUICE_LAZY void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    if (!s.ended) return;
    auto& h = result.hypotheses.emplace_back();
    h.tokens = s.target;
    if (s.target.empty()) return;
    h.log_probs = s.log_probs;
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = penalty.score(h.log_prob, static_cast<std::int32_t>(h.tokens.size()));
    h.finished = s.vocabulary->eos.empty() || s.vocabulary->ends(h.tokens.back());
  }

 private:
  /// The number of tokens that plan() would feed next.
  static std::size_t next(State const& s) { return s.blocks ? s.target.size() - s.log_probs.size() : 1; }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(ForcedScore)
