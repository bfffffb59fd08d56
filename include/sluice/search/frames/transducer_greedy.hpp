// SPDX-License-Identifier: Apache-2.0
/// \file
/// Greedy decoding of a transducer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/frames/transducer_tokens.hpp>
#include <sluice/search/frames/detail/label_rules.hpp>
#include <sluice/search/frames/label_scorer.hpp>
#include <sluice/search/rule/rule.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Takes the best token of a transducer (Transducer: RNN-T, TDT, multi-blank) at every step, until the alignment has
/// passed the last frame (ties: the lower token). One slot, one row of one token a step, a step for each frame and each
/// label.
///
/// `log_prob` is that of the one alignment, with its blanks; Hypothesis::log_probs and `frames` are its labels'. Rule,
/// language model and requests: see TransducerBeam. An output that the rule does not let end where the frames end is
/// returned all the same, and not `finished`.
/// \tparam R  a Rule
/// \tparam L  a LabelScorer
template <Rule R = Rules<>, LabelScorer L = NoLabelScorer>
struct TransducerGreedy {
  TransducerTokens tokens{};       ///< of the model: model.tokens()
  std::int32_t most_symbols = 10;  ///< labels at one frame, at most; then only what moves on may follow. >= 1
  std::int32_t most_labels = 0;    ///< labels of an output, at most; 0: no other bound
  R rule{};
  L language{};
  double language_weight = 0.3;  ///< of the language model's log-probabilities
  double label_bonus = 0;        ///< added for each label
  std::int32_t candidates = 8;   ///< labels of a line to which a language model is applied; >= 1

  static constexpr Abilities needs{.ragged = true};

  struct State {
    detail::LabelRules<R> rules;
    std::vector<typename R::State> rule;  // [1]
    typename L::State language{};
    Hypothesis output;
    Token last = 0;
    std::int32_t held = 0, frames = 0, frame = 0, symbols = 0;
    bool ended = false;
  };

  void check() const {
    tokens.check();
    require(most_symbols >= 1, "most_symbols", most_symbols, "must be at least 1");
    require(most_labels >= 0, "most_labels", most_labels, "must be 0 (no bound) or more");
    require(candidates >= 1, "candidates", candidates, "must be at least 1");
    require(std::isfinite(language_weight), "language_weight", language_weight, "must be a number");
    require(std::isfinite(label_bonus), "label_bonus", label_bonus, "must be a number");
    detail::check_rule(rule);
  }
  std::int32_t slot_count() const { return 1; }

  void begin(State& s, Sentence const& sentence) const {
    detail::require_frames(sentence, tokens);
    s.rule.assign(1, s.rules.begin(rule, tokens, sentence));
    s.language = language.start(), s.output = {};
    s.last = sentence.last, s.held = sentence.held, s.frames = sentence.source_length;
    s.frame = s.symbols = 0, s.ended = false;
    if (s.frames == 0) end(s);
  }

  void plan(State& s, Plan& plan) const {
    if (s.frames == 0) return;
    plan.row(0, 0, s.held, {&s.last, 1});
    auto const& labels = s.output.tokens;
    auto const full =
        (most_labels > 0 && std::ssize(labels) >= most_labels) || s.rules.stop(rule, s.rule.front(), labels) >= 0;
    s.rules.begin_lines(1);
    s.rules.ask(plan, rule, s.rule.front(), labels, {.best = full ? 0 : listed(), .moving = s.symbols >= most_symbols});
  }

  bool advance(State& s, Expansion const& answer) const {
    if (s.frames == 0) return s.ended = true;
    ++s.held;
    auto const line = answer[0];
    Candidate best{-1, -std::numeric_limits<float>::infinity()};
    double most = -std::numeric_limits<double>::infinity();
    auto const take = [&](Candidate one, double log_prob) {
      if (log_prob > most || (log_prob == most && one.token < best.token)) best = one, most = log_prob;
    };
    auto const blanks = s.rules.blanks();
    for (std::size_t b = 0; b < blanks.size(); ++b)
      take({blanks[b], line.probes[b]}, static_cast<double>(line.probes[b]));
    for (auto const& one : line.best) {
      auto const label = tokens.label(one.token);
      if (tokens.is_blank(label)) continue;
      auto language_state = s.language;
      auto const added = language_weight * static_cast<double>(language.advance(language_state, label)) + label_bonus;
      auto const log_prob = one.log_prob + s.rules.all(0);
      take({one.token, log_prob}, static_cast<double>(log_prob) + added);
    }
    if (!(most > -std::numeric_limits<double>::infinity())) return s.ended = true;
    move(s, best, most);
    if (s.frame >= s.frames) end(s);
    return s.ended = s.frame >= s.frames;
  }

  Progress progress(State const& s) const { return {s.held, 1, 1}; }
  void settled(State& s, std::vector<Token>& labels) const { labels = s.output.tokens; }

  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    if (s.ended && s.frame < s.frames)
      result.fail(Failure::no_token_left,
                  "no token can follow at frame " + std::to_string(s.frame) + " of " + std::to_string(s.frames) +
                      ": every blank is impossible (most_symbols = " + std::to_string(most_symbols) + ")");
    result.hypotheses.push_back(s.output);
    result.hypotheses.back().score = s.output.log_prob;
    result.hypotheses.back().stop = s.rules.stop(rule, s.rule.front(), s.output.tokens);
  }

 private:
  /// Labels listed: only a language model may prefer another than the first.
  std::int32_t listed() const {
    if constexpr (std::same_as<L, NoLabelScorer>) return 1;
    else return candidates;
  }
  void move(State& s, Candidate const& taken, double log_prob) const {
    auto const frames = tokens.frames(taken.token);
    auto const label = tokens.label(taken.token);
    s.output.log_prob += log_prob, s.last = taken.token;
    if (!tokens.is_blank(label)) {
      s.output.tokens.push_back(label), s.output.log_probs.push_back(taken.log_prob);
      s.output.frames.push_back({s.frame, (std::min)(s.frame + (std::max)(1, frames), s.frames)});
      s.rule.front() = rule.next(std::as_const(s.rule.front()), label);
      language.advance(s.language, label);
    }
    s.frame += frames, s.symbols = frames > 0 ? 0 : s.symbols + 1;
  }
  void end(State& s) const {
    auto const added = s.rules.end(rule, s.rule.front(), s.output.tokens.empty());
    s.output.finished = added > -std::numeric_limits<double>::infinity();
    if (s.output.finished) s.output.log_prob += added;
    s.output.log_prob += language_weight * static_cast<double>(language.end(s.language));
  }
};

}  // namespace sluice::inline v0
