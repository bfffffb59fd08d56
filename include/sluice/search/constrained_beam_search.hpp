// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search with lexical constraints, grid beam search (a full beam for every number of constraints met), and presets for the
/// constrained searches of other engines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/detail/bank_choice.hpp>
#include <sluice/search/detail/constrained_steps.hpp>
#include <sluice/search/presets.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Lexically constrained decoding by dynamic beam allocation (Post and Vilar 2018) over any ConstraintAutomaton. At
/// every step, the places of a fixed-width beam are divided among hypotheses by how much of their constraints they have
/// met (banks). Constraints belong to one sentence: give each request its own search (Request::search); copies are
/// cheap.
///
/// At every step, the candidates are the best of all hypotheses together, the tokens that each hypothesis's automaton
/// wants, and each hypothesis's best token. They are grouped by progress, the banks get their sizes (Banks),
/// and each bank takes its best. Only complete hypotheses may end. With FinishedHypotheses::set_aside, the places of those that
/// end are refilled from the remaining candidates that continue. Everything else follows `beam`: finishing, stopping,
/// lengths, scores. Its pruning thresholds compare within a bank, so no bank loses its best. With a trivial automaton
/// this is `beam`, decision for decision.
///
/// The n-best list holds complete hypotheses. Only if there are none, it has one entry, the best of the last beam: by
/// constraints met, then by score (see Hypothesis::constraints_met).
///
/// A step costs O(k^2 + k W) steps of the automaton on top of the model, with k the width and W the tokens that a
/// hypothesis wants; the model runs `width` rows, as without constraints. Nothing is allocated once warm.
template <class A = Constraints>
struct ConstrainedBeamSearch {
  static_assert(ConstraintAutomaton<A>, "sluice: A is not a ConstraintAutomaton (sluice/search/constraints.hpp)");
  static_assert(detail::automaton_names<A>());

  BeamSearch beam{};
  A constraints{};
  Banks banks = Banks::even;
  double prune_finished = 20;      ///< Pruning::below_finished for sentences with constraints; Pruning::off = none
  bool replace_impossible = true;  ///< whether the best candidates are counted without disallowed ones; false: those
                                   ///< take places and are dropped (Sockeye)
  bool list_incomplete = false;    ///< after the complete hypotheses, also list the rest of the beam

  struct State {
    detail::BeamState inner;
    bool plain = true;
    std::vector<typename A::State> after;  // [node + 1]: state of the automaton
    std::vector<std::vector<Token>> wanted;
    std::vector<std::vector<Edit>> edits;
    detail::BankChoice choice;
    std::vector<std::int32_t> banks;  // of the next beam
    detail::Buffer<detail::BeamState::Ended> stranded;
    std::vector<Token> tokens;
  };

  void check() const {
    beam.check();
    require(prune_finished >= 0, "prune_finished", prune_finished, "must be a number >= 0");
    require(banks != Banks::fairseq || beam.finished == FinishedHypotheses::set_aside, "banks", "fairseq",
            "needs FinishedHypotheses::set_aside");
  }
  std::int32_t slot_count() const { return beam.slot_count(); }
  /// As BeamSearch's, without constraints; with them it does not ask.
  std::int32_t stops_asked(Sentence const& sentence) const {
    return detail::trivial(constraints) ? beam.stops_asked(sentence) : 0;
  }
  void insert_into(TokenSet& set) const { detail::constraints_insert_into(constraints, set); }

  /// \throws std::invalid_argument  what the automaton throws, and constraints that take more tokens than the output
  ///     may have
  void begin(State& s, Sentence const& sentence) const { detail::constrained_loop::begin(*this, s, sentence); }
  void plan(State& s, Plan& plan) const { detail::constrained_loop::plan(*this, s, plan); }
  bool advance(State& s, Expansion const& answer) const { return detail::constrained_loop::advance(*this, s, answer); }
  Progress progress(State const& s) const { return beam.progress(s.inner); }
  void settled(State& s, std::vector<Token>& tokens) const { beam.settled(s.inner, tokens); }
  void finish(State const& s, Result& result) const { detail::constrained_loop::finish(*this, s, result); }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(ConstrainedBeamSearch<Constraints>)

namespace sluice::inline v0::presets {

/// Sockeye's constrained decoding of 2018 (1.18, the code of Post and Vilar 2018; removed in 3.0): its bank sizes; eos
/// of an incomplete hypothesis takes one of the k best places; finished hypotheses stay in the top bank; the search
/// ends when all hypotheses in the beam are finished; live hypotheses at the maximum length join unchanged; beam_prune
/// = 20; score = log_prob / length.
/// Not reproduced: rows that are live copies of each other after pruning; phrases that overlap, share a prefix or
/// follow a false start (4 4 5 for [4 5]) not being credited; unfinished hypotheses competing with finished ones by
/// log_prob.
template <class A = Constraints>
ConstrainedBeamSearch<A> sockeye_constrained(std::int32_t k, A constraints = {}) {
  return {.beam = {.width = k, .finished = FinishedHypotheses::stay, .at_maximum = AtMaximum::truncate},
          .constraints = std::move(constraints),
          .banks = Banks::sockeye,
          .replace_impossible = false};
}

/// fairseq's LexicallyConstrainedBeamSearch (`--constraints`): takes 2k candidates, the best of every bank in rounds;
/// after that, fairseq's beam search; no pruning. Constraints: Phrases for `unordered`, OrderedPhrases for `ordered`.
/// Not reproduced: banks mixed up below log-probabilities of -100; completed phrases forgotten when a later one breaks
/// off (ordered); overlaps and false starts not credited; at the maximum length, impossible candidates taking the
/// places of complete hypotheses; an error where nothing complete was found by then.
template <class A = Constraints>
ConstrainedBeamSearch<A> fairseq_constrained(std::int32_t k, A constraints = {}) {
  return {.beam = fairseq(k),
          .constraints = std::move(constraints),
          .banks = Banks::fairseq,
          .prune_finished = Pruning::off};
}

}  // namespace sluice::inline v0::presets

namespace sluice::inline v0 {

/// Hokamp and Liu (2017): C + 1 beams of `base` hypotheses each, one for every progress from 0 to C, with no places
/// shared between them. It is the baseline that dynamic beam allocation is compared with (Post and Vilar 2018, section
/// 5). Each hypothesis offers its best tokens and those its automaton wants; every bank takes its `base` best
/// candidates. Rows per step, and so time, grow with C: prefer ConstrainedBeamSearch.
///
/// Unlike in the original, a token that the model chose by itself counts towards a constraint, and an unfinished phrase
/// may be abandoned.
/// \param options  all but width and Pruning::max_per_parent
/// \throws std::invalid_argument  if base < 1 or base * (C + 1) is more than 2^20
template <class A>
ConstrainedBeamSearch<A> grid_beam_search(std::int32_t base, A constraints, BeamSearch options = {}) {
  require(base >= 1, "base", base, "must be at least 1");
  auto const width = static_cast<std::int64_t>(base) * (static_cast<std::int64_t>(constraints.total()) + 1);
  require(width <= 1 << 20, "base", base, "times the banks is " + std::to_string(width) + ": more than 2^20");
  options.width = static_cast<std::int32_t>(width);
  options.pruning.max_per_parent = base + 1;  // the best of a hypothesis, one of which may be an end
  return {.beam = options, .constraints = std::move(constraints), .banks = Banks::equal};
}

}  // namespace sluice::inline v0
