// SPDX-License-Identifier: Apache-2.0
/// \file
/// Greedy decoding of a transducer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/search.hpp>
#include <sluice/frames/transducer_tokens.hpp>
#include <sluice/search/frames/detail/label_rules.hpp>
#include <sluice/search/frames/detail/text_scores.hpp>
#include <sluice/search/frames/endpoint.hpp>
#include <sluice/search/frames/text_score.hpp>
#include <sluice/search/rule/rule.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Takes the best token of a transducer (Transducer: RNN-T, TDT, multi-blank) at every step, until the alignment has
/// passed the last frame, or an Endpoint is reached (ties: the lower token). One slot (with a TextModel, three), one row
/// of one token a step, a step for each frame and each label.
///
/// `log_prob` is that of the one alignment, with its blanks; Hypothesis::log_probs and `frames` are its labels'. Rule,
/// language model, requests and frames that come while they are decoded: see TransducerBeam. An output that the rule
/// does not let end where the frames end is returned all the same, and not `finished`.
/// \tparam R  a Rule
/// \tparam L  a language model, as for TransducerBeam
template <Rule R = NoRule, TextScore L = NoRule>
struct TransducerGreedy {
  TransducerTokens tokens{};       ///< of the model; nothing: those that it names (model.tokens())
  std::int32_t most_symbols = 10;  ///< labels at one frame, at most; then only blanks may follow. >= 1
  std::int32_t most_labels = 0;    ///< labels of an output, at most; 0: no other bound
  std::int32_t candidates = 8;     ///< labels of a line to which a language model is applied; >= 1
  Endpoint endpoint{};             ///< where an utterance ends, although frames go on
  R rule{};
  L language_model{};

  static constexpr Abilities needs{.ragged = true};

  struct State {
    detail::LabelRules<R> rules;
    std::vector<typename R::State> rule;  // [1]
    detail::TextScores<NoRule, L> texts;
    std::int32_t text = -1;  // of the output
    Hypothesis output;
    SourceGrowth whole;                    // of a source that does not grow
    SourceGrowth const* growth = nullptr;  // of one that does
    Token last = 0;
    std::int32_t held = 0, frame = 0, symbols = 0;
    std::int32_t taken = 0;            // frames that are over
    bool over = false, stuck = false;  // no frame is left; no token is possible
    bool ended = false;
  };

  template <class M>
  void adapt(M const& model) {
    if constexpr (requires {
                    { model.tokens() } -> std::convertible_to<TransducerTokens>;
                  })
      tokens.adapt(model.tokens());
  }
  void check() const {
    tokens.check();
    require(most_symbols >= 1, "most_symbols", most_symbols, "must be at least 1");
    require(most_labels >= 0, "most_labels", most_labels, "must be 0 (no bound) or more");
    require(candidates >= 1, "candidates", candidates, "must be at least 1");
    endpoint.check(), detail::check_rule(rule);
    if constexpr (requires { language_model.check(); }) language_model.check();
  }
  std::int32_t slot_count() const { return in_rows ? 3 : 1; }
  /// The blanks, and each label with every duration.
  void insert_into(TokenSet& set) const { detail::insert_alignments(tokens, set); }

  void begin(State& s, Sentence const& sentence) const {
    detail::require_frames(sentence, tokens);
    s.rule.assign(1, s.rules.begin(rule, tokens, sentence));
    if constexpr (modelled) {
      auto text = sentence;
      text.vocabulary = &s.rules.vocabulary();
      s.text = s.texts.begin({}, language_model, text, slot_count());
    }
    s.output = {};
    s.whole = {sentence.source_length, true}, s.growth = sentence.growth;
    s.last = sentence.last, s.held = sentence.held, s.frame = s.symbols = s.taken = 0;
    s.over = s.stuck = s.ended = false;
  }

  void plan(State& s, Plan& plan) const {
    if (reads(s)) {
      plan.row(0, 0, s.held, {&s.last, 1});
      auto const& labels = s.output.tokens;
      auto const full = s.symbols >= most_symbols || (most_labels > 0 && std::ssize(labels) >= most_labels) ||
                        s.rules.stop(rule, s.rule.front(), labels) >= 0;
      s.rules.begin_lines(1);
      s.rules.ask(plan, rule, s.rule.front(), labels, {.best = full ? 0 : listed()});
    }
    if constexpr (in_rows) s.texts.rows().plan(plan);
  }

  bool advance(State& s, Expansion const& answer) const {
    auto const lines = reads(s) ? std::size_t{1} : 0;
    if constexpr (in_rows) s.texts.take_lines(language_model.weights, answer.window(lines, answer.size() - lines));
    if (lines > 0) take(s, answer[0]);
    else s.over = true;
    if (s.stuck) return s.ended = true;
    if (!s.over || rows_wait(s)) return false;
    end(s);
    return s.ended = true;
  }

  /// Whether the frames that have come do not suffice to go on.
  bool waits(State const& s) const {
    return limit(s) == unlimited && !s.over && s.growth->length - s.frame <= tokens.most_frames();
  }
  Progress progress(State const& s) const {
    auto rows = reads(s) ? 1 : 0;
    if constexpr (in_rows) rows += s.texts.rows().size();
    return {s.held, 1, rows};
  }
  void settled(State& s, std::vector<Token>& labels) const { labels = s.output.tokens; }

  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    result.frames = s.taken;
    if (s.stuck)
      result.fail(Failure::no_token_left,
                  "no token can follow at frame " + std::to_string(s.frame) +
                      ": every blank is impossible (most_symbols = " + std::to_string(most_symbols) + ")");
    auto& h = result.hypotheses.emplace_back(s.output);
    h.score = s.output.log_prob;
    h.stop = s.rules.stop(rule, s.rule.front(), s.output.tokens);
    if (s.ended && !s.stuck)
      for (auto& range : h.frames) range.end = (std::min)(range.end, s.taken);
  }

 private:
  static constexpr bool modelled = detail::TextScores<NoRule, L>::modelled;
  static constexpr bool in_rows = detail::TextScores<NoRule, L>::in_rows;
  static constexpr auto unlimited = (std::numeric_limits<std::int32_t>::max)();
  static constexpr double never = -std::numeric_limits<double>::infinity();

  /// What there is to a text here.
  struct Length {
    std::int32_t depth(std::int32_t length) const { return length; }
  };

  /// Labels listed: only a language model may prefer another than the first.
  std::int32_t listed() const { return modelled ? candidates : 1; }
  /// The number of frames, if it is known.
  static std::int32_t limit(State const& s) {
    auto const& grown = s.growth != nullptr ? *s.growth : s.whole;
    return grown.over ? grown.length : unlimited;
  }
  static bool reads(State const& s) { return !s.over && limit(s) > 0; }
  static bool rows_wait(State const& s) {
    if constexpr (in_rows) return s.texts.rows().waits();
    else return false;
  }

  /// Chooses a token.
  void take(State& s, Line const& line) const {
    ++s.held;
    Candidate best{-1, -std::numeric_limits<float>::infinity()};
    auto most = never;
    auto const offer = [&](Candidate one, double log_prob) {
      if (log_prob > most || (log_prob == most && one.token < best.token)) best = one, most = log_prob;
    };
    auto const blanks = s.rules.blanks();
    for (std::size_t b = 0; b < blanks.size(); ++b)
      offer({blanks[b], line.probes[b]}, static_cast<double>(line.probes[b]));
    for (auto const& one : line.best) {
      auto const label = tokens.label(one.token);
      if (tokens.is_blank(label)) continue;
      auto const log_prob = one.log_prob + s.rules.all(0);
      auto added = 0.0;
      if constexpr (modelled) added = static_cast<double>(s.texts.add(language_model, s.text, label));
      offer({one.token, log_prob}, static_cast<double>(log_prob) + added);
    }
    if (most > never) move(s, best, most);
    else s.stuck = true, s.taken = s.frame;
  }
  void move(State& s, Candidate const& taken, double log_prob) const {
    auto const frames = tokens.frames(taken.token);
    auto const label = tokens.label(taken.token);
    s.output.log_prob += log_prob, s.last = taken.token;
    if (!tokens.is_blank(label)) {
      s.output.tokens.push_back(label), s.output.log_probs.push_back(taken.log_prob);
      s.output.frames.push_back({s.frame, (std::min)(s.frame + (std::max)(1, frames), limit(s))});
      s.rule.front() = rule.next(s.rule.front(), label);
      if constexpr (modelled) {
        auto const before = s.text;
        s.text = s.texts.make({}, language_model, before, label, Length(),
                              static_cast<std::int32_t>(s.output.tokens.size()));
        s.texts.drop(before);
      }
    }
    s.frame += frames, s.symbols = frames > 0 ? 0 : s.symbols + 1;
    count_frames(s);
  }
  /// Counts the frames that are over, up to an endpoint.
  void count_frames(State& s) const {
    auto const last = s.output.frames.empty() ? 0 : s.output.frames.back().end;
    while (s.taken < (std::min)(s.frame, limit(s)) && !s.over)
      s.over = ++s.taken == limit(s) || (endpoint.on() && endpoint.reached(s.taken, last));
  }
  void end(State& s) const {
    auto added = s.rules.end(rule, s.rule.front(), s.output.tokens);
    if constexpr (modelled) added += static_cast<double>(s.texts.end(language_model, s.text, tokens.blank));
    s.output.finished = added > never;
    if (s.output.finished) s.output.log_prob += added;
  }
};

}  // namespace sluice::inline v0
