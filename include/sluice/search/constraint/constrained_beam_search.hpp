// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search with lexical constraints.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/constraint/automaton.hpp>
#include <sluice/search/constraint/bank_sizes.hpp>
#include <sluice/search/constraint/constraints.hpp>
#include <sluice/search/constraint/detail/bank_choice.hpp>
#include <sluice/search/constraint/detail/constrained_steps.hpp>

#include <cstdint>
#include <vector>

namespace sluice::inline v0 {

/// Lexically constrained decoding by dynamic beam allocation (Post and Vilar 2018) over any ConstraintAutomaton. At
/// every step, the places of a fixed-width beam are divided among hypotheses by how much of their constraints they have
/// met (banks). Constraints belong to one sentence: give each request its own search (Request::search); copies are
/// cheap.
///
/// At every step, the candidates are the best of all hypotheses together, the tokens that each hypothesis's automaton
/// wants, and each hypothesis's best token. They are grouped by progress, the banks get their sizes (bank_sizes.hpp),
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
  static_assert(ConstraintAutomaton<A>,
                "sluice: A is not a ConstraintAutomaton (sluice/search/constraint/automaton.hpp)");
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
    std::vector<detail::BeamState::Ended> stranded;
    std::vector<Token> tokens;
  };

  void check() const {
    beam.check();
    require(prune_finished >= 0, "prune_finished", prune_finished, "must be a number >= 0");
    require(banks != Banks::fairseq || beam.finished == FinishedHypotheses::set_aside, "banks", "fairseq",
            "needs FinishedHypotheses::set_aside");
  }
  std::int32_t slot_count() const { return beam.slot_count(); }
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
