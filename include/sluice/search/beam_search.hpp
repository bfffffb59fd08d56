// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search with fixed and variable width.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/detail/beam_state.hpp>
#include <sluice/search/detail/beam_steps.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sluice::inline v0 {

/// Keeps the `width` best hypotheses of every length. There is one algorithm; engines differ in its options
/// (presets.hpp). The default is fairseq's beam search: the width is fixed, finished hypotheses are set aside, and the
/// search ends when `width` hypotheses have finished.
///
/// At every step, the candidates are the best tokens of every live hypothesis, plus the finished hypotheses that are
/// still in the beam. At most `candidates` of them are considered, in order of log-probability. Ties go to the
/// better-ranked parent, then to the parent's own order (higher score, then lower token). Decisions for one sentence
/// never depend on another sentence.
///
/// A step costs O(width^2 log width) on top of the model; a fork costs one node. Nothing is allocated once warm.
struct BeamSearch {
  std::int32_t width = 5;   ///< maximum number of live hypotheses; >= 1
  std::int32_t n_best = 1;  ///< maximum number of hypotheses returned; in [1, width], or up to the number that
                            ///< early_stopping.patience lets finish
  LengthLimits length{};
  LengthPenalty penalty{};
  Pruning pruning{};
  FinishedHypotheses finished = FinishedHypotheses::set_aside;
  EarlyStopping early_stopping{};
  AtMaximum at_maximum = AtMaximum::force_eos;
  bool surplus = false;       ///< set_aside, Rule::count: whether all hypotheses that end in the last step count, or
                              ///< only as many as the rule still needs, best first
  bool prefix_scored = true;  ///< whether the log-probabilities of a forced prefix count
  bool guard_prefix =
      false;  ///< set_aside: right after a forced prefix only the best candidate may end; any other that ends is
              ///< dropped, and its place stays empty for that step (CTranslate2)
  bool one_end =
      false;  ///< of a hypothesis and its several end tokens only the best end is a candidate, so that no two
              ///< hypotheses differ in the end token alone
  std::int32_t candidates = 0;  ///< considered per step; 0 = as many as `finished` needs to keep the beam full
  double sibling_penalty = 0;   ///< the i-th best child of a parent (from 0) is ranked i times this lower, and so are
                                ///< its own children (Li and Jurafsky 2016: diverse beams); >= 0. Scores do not include
                                ///< it
  bool stop_at_once =
      false;  ///< a candidate that completes a stop of a processor (StopSequences) ends in that step, as
              ///< one in eos does, and its place is filled (Hugging Face); else it keeps its place
              ///< until the next. Not beside processors that add to scores (Bias)
  Stage stage = Stage::after_softmax;  ///< when eos (output too short) and tokens never generated are forbidden

  using State = detail::BeamState;

  SLUICE_LAZY void check() const {
    detail::require_slots("width", width);
    early_stopping.check();
    require(n_best >= 1 && n_best <= (std::max)(width, early_stopping.needed(width)), "n_best", n_best,
            "must be between 1 and the width");
    require(candidates == 0 || candidates >= width, "candidates", candidates, "must be 0 or at least the width");
    require(candidates == 0 || finished == FinishedHypotheses::set_aside, "candidates", candidates,
            "only FinishedHypotheses::set_aside refills the beam from further candidates");
    require(early_stopping.rule != EarlyStopping::Rule::top_ended || finished == FinishedHypotheses::set_aside,
            "early_stopping.rule", "top_ended", "needs FinishedHypotheses::set_aside");
    require(finished == FinishedHypotheses::set_aside || early_stopping.rule == EarlyStopping::Rule::count ||
                early_stopping.rule == EarlyStopping::Rule::exact,
            "early_stopping.rule", "heuristic",
            "compares with the set-aside hypotheses: needs FinishedHypotheses::set_aside");
    require(finished != FinishedHypotheses::stay || early_stopping.rule == EarlyStopping::Rule::count,
            "early_stopping.rule", "exact",
            "with FinishedHypotheses::stay the beam itself ranks finished against live hypotheses: use Rule::count");
    require(sibling_penalty >= 0 && std::isfinite(sibling_penalty), "sibling_penalty", sibling_penalty,
            "must be a number >= 0");
    require(!pruning.by_total() || (finished != FinishedHypotheses::stay && sibling_penalty <= 0), "pruning",
            "a threshold",
            "compares log-probabilities, but FinishedHypotheses::stay and sibling_penalty rank by something else");
    length.check(), penalty.check(), pruning.check();
  }

  std::int32_t slot_count() const { return width; }
  /// Of how many candidates of a step it asks Expansion::stop; 0: of none.
  SLUICE_LAZY std::int32_t stops_asked(Sentence const& sentence) const {
    auto const ends = static_cast<std::int32_t>(sentence.vocabulary->eos.size());
    auto const looked_at = finished != FinishedHypotheses::set_aside ? width
                           : candidates != 0                         ? candidates
                                                                     : width * (1 + ends);
    return stop_at_once ? (std::min)(looked_at, pruning.max_per_parent) : 0;
  }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const { detail::beam_loop::begin(*this, s, sentence); }
  SLUICE_LAZY void plan(State& s, Plan& plan) const { detail::beam_loop::plan(*this, s, plan); }
  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    return detail::beam_loop::advance(*this, s, answer);
  }
  Progress progress(State const& s) const { return {s.held, static_cast<std::int32_t>(s.beam.size())}; }
  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const { detail::beam_loop::settle(*this, s, tokens); }
  SLUICE_LAZY void finish(State const& s, Result& result) const {
    detail::beam_loop::tell(*this, s, result);
    s.prefix.complete(result);
  }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(BeamSearch)
