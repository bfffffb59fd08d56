// SPDX-License-Identifier: Apache-2.0
/// \file
/// Presets for the constrained searches of other engines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/search/beam/presets.hpp>
#include <sluice/search/constraint/automaton.hpp>
#include <sluice/search/constraint/bank_sizes.hpp>
#include <sluice/search/constraint/constrained_beam_search.hpp>
#include <sluice/search/constraint/constraints.hpp>

#include <cstdint>
#include <utility>

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
