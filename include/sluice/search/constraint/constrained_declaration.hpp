// SPDX-License-Identifier: Apache-2.0
/// \file
/// ConstrainedBeamSearch: what it can be told, and what it remembers. What it does: constrained_beam_search.hpp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/constraint/automaton.hpp>
#include <sluice/search/constraint/bank_sizes.hpp>
#include <sluice/search/constraint/constraints.hpp>
#include <sluice/search/constraint/detail/bank_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0 {

/// Lexically constrained decoding by dynamic beam allocation (Post and Vilar 2018) over any ConstraintAutomaton: a beam of
/// fixed width whose places are divided, at every step, among hypotheses that have met more and less of their constraints
/// (banks). The constraints are one sentence's: give each request its own search (Request::search); copies are cheap.
///
/// Every step, the candidates are the best of all hypotheses together, the tokens that each one's automaton wants, and each
/// one's best token; they are grouped by progress, the banks get their sizes (bank_sizes.hpp), and each takes its best.
/// Only what is complete may end. Under Finished::set_aside, the places of those that end are filled up again from what
/// goes on. Everything else is `beam`'s: finishing, stopping, lengths, scores; its pruning by thresholds compares within a
/// bank, so that no bank loses its best. Under an automaton that is trivial this is `beam`, decision for decision.
///
/// The n-best list holds complete hypotheses. Only when there is none, its one entry is the best of the last beam, by
/// constraints met, then by score: see Hypothesis::constraints_met.
///
/// A step costs O(k^2 + k W) steps of the automaton beside the model, k the width, W the tokens that a hypothesis wants; the
/// model runs `width` rows, as without constraints. Nothing is allocated once warm.
template <class A = Constraints>
struct ConstrainedBeamSearch {
  static_assert(ConstraintAutomaton<A>,
                "sluice: A is not a ConstraintAutomaton (sluice/search/constraint/automaton.hpp)");
  static_assert(detail::automaton_names<A>());

  BeamSearch beam{};
  A constraints{};
  Banks banks = Banks::even;
  double prune_finished =
      20;  ///< Pruning::below_finished of sentences that have something to meet; Pruning::off = none
  bool replace_impossible = true;  ///< whether the best candidates are counted without those that may not come; false:
                                   ///< those take places, and are dropped (Sockeye)
  bool list_incomplete = false;    ///< behind the complete hypotheses, also list what is left of the beam

  struct State {
    detail::BeamState inner;
    bool plain = true;
    std::vector<typename A::State> after;  // [node + 1]: of the automaton
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
    require(banks != Banks::fairseq || beam.finished == Finished::set_aside, "banks", "fairseq",
            "needs Finished::set_aside");
  }
  std::int32_t slot_count() const { return beam.slot_count(); }
  void insert_into(TokenSet& set) const { detail::constraints_insert_into(constraints, set); }

  /// \throws std::invalid_argument  what the automaton refuses, and demands that take more tokens than the output may have
  void begin(State& s, Sentence const& sentence) const;
  void plan(State& s, Plan& plan) const;
  bool advance(State& s, Expansion const& answer) const;
  Progress progress(State const& s) const { return beam.progress(s.inner); }
  void settled(State& s, std::vector<Token>& tokens) const { beam.settled(s.inner, tokens); }
  void finish(State const& s, Result& result) const;

 private:
  using Entry = detail::BeamState::Entry;
  using Pick = detail::BeamState::Pick;
  using Ended = detail::BeamState::Ended;

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static typename A::State const& after(State const& s, History::Node node) { return s.after[at(node + 1)]; }
  /// Whatever a stranger's automaton says.
  std::int32_t bank(State const& s, typename A::State const& state) const {
    return std::clamp(static_cast<std::int32_t>(constraints.progress(state)), 0, s.choice.banks() - 1);
  }
  /// Grid beam search: whatever a hypothesis offers is a candidate, as if the others were not there.
  bool alone() const { return banks == Banks::equal && beam.pruning.max_per_parent != Pruning::unlimited; }
  bool complete(State const& s, History::Node node) const { return constraints.complete(after(s, node)); }

  bool end_apart(Vocabulary const& vocabulary) const;
  void ask(State& s, Query& query, std::size_t rank) const;
  void follow(State& s) const;
  void collect(State& s, Expansion const& answer) const;
  bool possible(State& s, Pick const& pick) const;
  void select(State& s) const;
  void prune(State& s) const;
  void close(State& s) const;
};

}  // namespace sluice::inline v0
