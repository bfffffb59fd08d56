// SPDX-License-Identifier: Apache-2.0
/// \file
/// Traces: observe a decoder while it works.
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

/// A trace is any type with some of these members. A member that does not exist costs nothing. A member with one of these names
/// and another signature is a compile error:
///
///  - `began(std::uint64_t id, Sentence const&)`: what the sentence's search was told. Called before `admitted`, and only if
///    the search has not refused the request;
///  - `admitted(std::uint64_t id, Slot base, std::int32_t slots)`: the sentence got its block of slots. A sentence that is
///    preempted is admitted again later;
///  - `planned(StepPlan const&)`: the plan that is about to run;
///  - `answered(StepPlan const&, Expansion const&)`: the answers, line by line;
///  - `ended(Result const&)`: before the result can be polled;
///  - `wants_entropy() const`: if true, every query for probabilities asks for the line's entropy too.
///
/// A trace never changes a result. If it throws, the decoder goes on, and calls it again. Its first exception goes to the
/// caller at the end of Decoder::step, when results can be polled. This is the next step if submit, cancel, settled or end_all
/// called the trace, or if the step throws an exception of a model or a schedule. A Server drops exceptions of traces. A trace
/// must not call the decoder that calls it.
///
/// TraceFile (sluice/decode/trace_file.hpp) writes all of this to a file.
struct NoTrace {};

}  // namespace sluice::inline v0
