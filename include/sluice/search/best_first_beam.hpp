// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search results with fewer rows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/detail/best_first_queue.hpp>
#include <sluice/search/detail/best_first_state.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Finds what a BeamSearch with FinishedHypotheses::set_aside and EarlyStopping::Rule::exact finds, best first (Meister, Vieira and
/// Cotterell 2020, "Best-First Beam Search", TACL 8, algorithm 2). Hypotheses of all lengths wait in one queue; the
/// most probable is taken first, and at most `width` of each length continue. Log-probabilities only fall, so
/// candidates of one length leave the queue in the order in which a beam ranks them, and the same ones are kept.
/// Hypotheses that a beam must expand before it knows that a better one is about to end are never run. Nor are
/// hypotheses that cannot score more than the `n_best` that have ended, at any length up to the maximum
/// (LengthPenalty::bound). Without a length penalty the first hypothesis to end is the best. With one, the bound
/// assumes the longest possible output: the tighter `length.max`, the more the search saves.
///
/// Runs one row per sentence and step: fewer rows in total, but more sequential steps. Worthwhile where many sentences
/// share a step and rows are expensive (a CPU, a large model), and where a proof is wanted. For a single sentence on a
/// device, BeamSearch is faster.
///
/// Returns the same hypotheses, token for token and in the same order, as BeamSearch{.early_stopping = {.rule =
/// EarlyStopping::Rule::exact}} with the options of the same names. It also matches other rules where these prove the same
/// result; as_beam() checks that. Ties are broken in the same way.
///
/// Holds the decoder states of `states` hypotheses. To continue a hypothesis whose state has been evicted, its tokens
/// are fed again from the nearest state that is held; with more states, fewer tokens are fed twice. Where the model
/// rolls back, any state that starts with the same tokens can be used. Feeding again takes one row where the model
/// takes blocks, and otherwise one row and one step per token.
///
/// A step costs O(width log queue + states * length) on top of the model, and the queue holds at most width * (width +
/// #eos) candidates per length.
struct BestFirstBeam {
  std::int32_t width = 5;   ///< maximum number of hypotheses of one length that continue; >= 1
  std::int32_t n_best = 1;  ///< maximum number of hypotheses returned; in [1, width]
  LengthLimits length{};
  LengthPenalty penalty{};
  Pruning pruning{};  ///< absolute_threshold, relative_threshold and max_per_parent
  AtMaximum at_maximum = AtMaximum::force_eos;
  bool prefix_scored = true;           ///< whether the log-probabilities of a forced prefix count
  bool guard_prefix = false;           ///< see BeamSearch
  std::int32_t candidates = 0;         ///< considered per length; 0 = as many as are needed for `width` to continue
  Stage stage = Stage::after_softmax;  ///< when eos (output too short) and tokens never generated are forbidden
  std::int32_t states = 0;             ///< slots; 0 = twice the width plus one; >= 2

  using State = detail::BestFirstState;
  static constexpr bool goes_back = true;        ///< to slots whose hypotheses have ended
  static constexpr bool assumes_falling = true;  ///< log-probabilities: rules that add to them are refused

  /// The search that finds what `beam` finds. Its stop rule must guarantee that no live hypothesis can still be
  /// returned:
  ///
  /// - exact;
  /// - top_ended, for n_best = 1 and without length penalty and word penalty (CTranslate2, length penalty 0);
  /// - heuristic, without either (Hugging Face's early_stopping = False with length_penalty 0);
  /// - never_early, without word penalty (Hugging Face's early_stopping = "never").
  ///
  /// \throws std::invalid_argument  naming the option that has no equivalent: `finished` (other than set_aside),
  ///     `early_stopping.rule`, `pruning.relative_local_threshold`, `pruning.below_finished`, `sibling_penalty`; these look at a
  ///     beam as a whole
  SLUICE_LAZY static BestFirstBeam as_beam(BeamSearch const& beam) {
    beam.check();
    require(beam.finished == FinishedHypotheses::set_aside, "finished", name(beam.finished),
            "the room for one length would depend on what has ended before: must be set_aside");
    require(!beam.one_end, "one_end", "true", "is not there: must be false");
    require(!beam.early_stopping.ended_first, "early_stopping.ended_first", "true", "is not there: must be false");
    require(beam.sibling_penalty <= 0, "sibling_penalty", beam.sibling_penalty,
            "ranks by something else than log-probability: must be 0");
    auto const& penalty = beam.penalty;
    auto const unworded = penalty.word_penalty == 0;
    auto const plain = unworded && (penalty.kind == LengthPenalty::Kind::none || penalty.alpha == 0);
    using Rule = EarlyStopping::Rule;
    auto const rule = beam.early_stopping.rule;
    require(rule != Rule::count, "early_stopping.rule", "count",
            "ends after a number of steps, and hypotheses are looked at in another order: use exact");
    require(rule != Rule::top_ended || (plain && beam.n_best == 1), "early_stopping.rule", "top_ended",
            "is a proof only for n_best = 1, without length penalty and word penalty: use exact");
    require(rule != Rule::heuristic || plain, "early_stopping.rule", "heuristic",
            "is a proof only without length penalty and word penalty: use exact");
    require(rule != Rule::never_early || unworded, "early_stopping.rule", "never_early",
            "is a proof only without word penalty: use exact");
    BestFirstBeam search{.width = beam.width,
                         .n_best = beam.n_best,
                         .length = beam.length,
                         .penalty = beam.penalty,
                         .pruning = beam.pruning,
                         .at_maximum = beam.at_maximum,
                         .prefix_scored = beam.prefix_scored,
                         .guard_prefix = beam.guard_prefix,
                         .candidates = beam.candidates,
                         .stage = beam.stage};
    search.check();
    return search;
  }

  SLUICE_LAZY void check() const {
    detail::require_slots("width", width, 3);
    require(n_best >= 1 && n_best <= width, "n_best", n_best, "must be between 1 and the width");
    require(candidates == 0 || candidates >= width, "candidates", candidates, "must be 0 or at least the width");
    require(states == 0 || states >= 2, "states", states, "must be 0 (twice the width, and one) or at least 2");
    if (states != 0) detail::require_slots("states", states);
    require(pruning.relative_local_threshold <= 0, "pruning.relative_local_threshold", pruning.relative_local_threshold,
            "compares with all candidates of a step: must be 0");
    require(!(pruning.below_finished < Pruning::off), "pruning.below_finished", pruning.below_finished,
            "depends on what has ended in earlier steps: must be off");
    length.check(), penalty.check(), pruning.check();
  }

  std::int32_t slot_count() const { return states == 0 ? 2 * width + 1 : states; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    s.begin(sentence, length);
    s.history.clear(s.prefix.size());
    s.queue.clear(), s.out.clear();
    s.expanded.assign(1, {.length = s.prefix.size()});
    s.levels.clear(), s.width = width;
    s.kept.reset(slot_count(), sentence.abilities.roll_back, sentence.abilities.blocks, sentence.held, sentence.last);
    s.first = true, s.over = false;
  }

  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    if (s.first && !prefix_scored) plan.ignore_prefix_scores();
    for (auto const slot : s.kept.released()) plan.release(slot);
    s.kept.forget();
    auto const next = s.kept.next();
    plan.row(next.from, next.to, next.length, next.tokens);
    if (s.kept.last()) plan.ask(queue().query(s, s.expanded.back()));
    else plan.ask({.best = 0, .normalise = false});  // fed again; every row needs a query
  }

  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.over = true;
    if (s.first && prefix_scored) s.expanded[0].log_prob = s.prefix.ranked();
    s.first = false;
    if (!s.kept.last()) {
      s.kept.go_on();
      return false;
    }
    queue().add_children(s, answer.back());
    return s.over = !queue().go_on(s);
  }

  SLUICE_LAZY Progress progress(State const& s) const {
    auto const next = s.kept.next();
    auto const block = static_cast<std::int32_t>(next.tokens.size());
    return {next.length, 1, block, block};
  }

  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const { queue().settle(s, tokens); }

  SLUICE_LAZY void finish(State const& s, Result& result) const {
    queue().tell(s, result);
    s.prefix.complete(result);
  }

 private:
  SLUICE_LAZY static constexpr char const* name(FinishedHypotheses finished) {
    switch (finished) {
      case FinishedHypotheses::set_aside: return "set_aside";
      case FinishedHypotheses::shrink: return "shrink";
      case FinishedHypotheses::stay: return "stay";
      case FinishedHypotheses::leave_first: return "leave_first";
    }
    return "unknown";
  }
  detail::BestFirstQueue queue() const {
    return {width,        n_best, candidates == 0 ? Pruning::unlimited : candidates, penalty, pruning, at_maximum,
            guard_prefix, stage};
  }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(BestFirstBeam)
