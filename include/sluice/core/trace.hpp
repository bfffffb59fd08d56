// SPDX-License-Identifier: Apache-2.0
/// \file
/// Looking at a decoder while it works.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>

SLUICE_NAMES(began)
SLUICE_NAMES(admitted)
SLUICE_NAMES(planned)
SLUICE_NAMES(answered)
SLUICE_NAMES(ended)
SLUICE_NAMES(wants_entropy)

namespace sluice::inline v0 {

/// A trace is any type with some of these members; each is called where it exists and costs nothing where not, and the
/// compiler refuses what has one of these names and another signature:
///
///  - `began(std::uint64_t id, Sentence const&)`: what the sentence's search has been told; before `admitted`, and only where
///    the search has not refused it;
///  - `admitted(std::uint64_t id, Slot base, std::int32_t slots)`: the sentence got its block of slots. One for which the
///    model has no room goes back to wait, and is admitted again;
///  - `planned(StepPlan const&)`: what is about to be run;
///  - `answered(StepPlan const&, Expansion const&)`: what came back, line by line;
///  - `ended(Result const&)`: before the result can be polled;
///  - `wants_entropy() const`: true: every question for probabilities asks for the line's entropy too.
///
/// A trace never changes a result, also where it throws: the decoder goes on as if it had not, and calls it again. What it threw
/// first goes to the caller when Decoder::step is done and results can be polled: of the same step, or, where submit, cancel,
/// settled or end_all called the trace, or where the step throws what a model or a schedule threw, of the next. A Server drops it. A
/// trace must not call the decoder that calls it.
///
/// TraceFile (sluice/decode/trace_file.hpp) writes all of it.
struct NoTrace {};

}  // namespace sluice::inline v0
