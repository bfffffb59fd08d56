// SPDX-License-Identifier: Apache-2.0
/// \file
/// What tells how a decoder works: counts and seconds; traces, which observe it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>
#include <vector>

SLUICE_NAMES(began)
SLUICE_NAMES(admitted)
SLUICE_NAMES(planned)
SLUICE_NAMES(answered)
SLUICE_NAMES(ended)
SLUICE_NAMES(wants_entropy)

namespace sluice::inline v0 {

/// Counts and seconds of one Decoder since its construction. Add up those of several with +=.
struct Statistics {
  std::uint64_t sentences = 0;      ///< ended, including failed ones
  std::uint64_t tokens = 0;         ///< of the best hypotheses, including eos and forced prefix
  std::uint64_t steps = 0;          ///< rounds: plan, model, advance
  std::uint64_t model_calls = 0;    ///< calls of Model::step (none in a round without rows)
  std::uint64_t rows = 0;           ///< run through the decoder
  std::uint64_t fed = 0;            ///< tokens in these rows
  std::uint64_t expansions = 0;     ///< rows, plus the ended hypotheses that beams carried (the papers' count)
  std::uint64_t forks = 0;          ///< rows that copied a slot
  std::uint64_t restarted = 0;      ///< preemptions: sentences that went back to the queue since the model had no room
  std::uint64_t shared = 0;         ///< tokens of prompts that were not fed since a slot held them (prefix caching)
  std::uint64_t encoder_calls = 0;  ///< calls of Model::start; of Model::encode if sources are encoded ahead
  std::uint64_t encoded = 0;        ///< sentences in these calls
  std::vector<std::uint64_t> rows_histogram;  ///< [n]: model calls with n rows
  /// Time spent, added up, in seconds.
  struct Seconds {
    double encode = 0;  ///< Model::start; waiting for, or doing, Model::encode
    double model = 0;   ///< Model::step
    double output = 0;  ///< the expander: projection, softmax, selection
    double search = 0;  ///< everything else in Decoder::step
    double beside = 0;  ///< Model::encode in the encoder thread; not part of the total
    double total() const { return encode + model + output + search; }
  } seconds;

  /// Counts a call of the model.
  SLUICE_LAZY void count(StepPlan const& step) {
    ++model_calls, rows += step.rows.size();
    if (rows_histogram.size() <= step.rows.size()) rows_histogram.resize(step.rows.size() + 1);
    ++rows_histogram[step.rows.size()];
    for (auto const& row : step.rows) forks += row.from != row.to, fed += row.tokens.size();
  }

  Statistics& operator+=(Statistics const& other) {
    sentences += other.sentences, tokens += other.tokens, steps += other.steps, model_calls += other.model_calls;
    rows += other.rows, fed += other.fed, expansions += other.expansions, forks += other.forks;
    restarted += other.restarted, shared += other.shared;
    encoder_calls += other.encoder_calls, encoded += other.encoded;
    if (rows_histogram.size() < other.rows_histogram.size()) rows_histogram.resize(other.rows_histogram.size());
    for (std::size_t n = 0; n < other.rows_histogram.size(); ++n) rows_histogram[n] += other.rows_histogram[n];
    seconds.encode += other.seconds.encode, seconds.model += other.seconds.model;
    seconds.output += other.seconds.output, seconds.search += other.seconds.search;
    seconds.beside += other.seconds.beside;
    return *this;
  }
};

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
