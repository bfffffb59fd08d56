// SPDX-License-Identifier: Apache-2.0
/// \file
/// Grid beam search: constrained decoding with a full beam for every number of constraints met.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/search/beam/beam_search.hpp>
#include <sluice/search/constraint/automaton.hpp>
#include <sluice/search/constraint/bank_sizes.hpp>
#include <sluice/search/constraint/constrained_beam_search.hpp>

#include <cstdint>
#include <string>
#include <utility>

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
