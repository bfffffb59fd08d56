// SPDX-License-Identifier: Apache-2.0
/// \file
/// Result: hypotheses, or the reason why there are none. ResultOrder: in which order results come.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// In which order decode_each() hands out results.
enum class ResultOrder : std::uint8_t {
  input,  ///< that of the inputs: a result waits for those before it
  ended,  ///< as sentences end; Result::id says which input it was
};

/// The model's distribution where a token was chosen, before any rule, temperature or truncation: see Confidence.
struct Choice {
  float entropy =
      std::numeric_limits<float>::quiet_NaN();  ///< in nats; NaN if it was not asked for, or no line was run
  std::int32_t rank =
      -1;  ///< index of the chosen token among the alternatives; their number if it is not among them. -1 if none
           ///< were asked for, or no line was run
  std::vector<Candidate> alternatives{};  ///< the best tokens, best first; may include the chosen one
};

/// Frames of a source: from `begin` up to, and not including, `end`.
struct FrameRange {
  std::int32_t begin = 0, end = 0;

  friend constexpr bool operator==(FrameRange, FrameRange) = default;
};

/// Seconds of a source.
struct TimeRange {
  double begin = 0, end = 0;
};
/// When frames are.
/// \param stride  seconds from a frame to the next: what the network reads a second in, times what it leaves out (0.01 s * 4, say)
/// \param first   the time at which frame 0 begins: of a stream that goes on where another ended (CtcStream::rest), say
constexpr TimeRange seconds(FrameRange frames, double stride, double first = 0) {
  return {first + frames.begin * stride, first + frames.end * stride};
}

/// One output sequence.
struct Hypothesis {
  std::vector<Token> tokens{};     ///< forced prefix and generated tokens, final eos included; the prompt is not
  std::vector<float> log_probs{};  ///< of each token given those before it; [tokens.size()]
  double log_prob = 0;             ///< their sum, natural log
  double score = 0;                ///< hypotheses are ranked by this: log_prob after length penalty and the like
  bool finished = false;           ///< ended by eos, by a stop, or, without eos, at its fixed length
  std::int32_t constraints_met =
      0;  ///< of a ConstrainedBeamSearch: how many of its phrases (or other demands) are in it
  std::int32_t constraints_total = 0;  ///< of how many
  std::vector<std::int32_t> blocks{};  ///< of Blockwise: tokens settled in each round, as Stern et al. (2018) count
  std::int32_t stop = -1;              ///< which stop of its rule ended it, see StopSequences; -1: none
  /// [tokens.size()]: what the model attached to the line that each token was chosen from, see Attachments. Empty if it
  /// attaches nothing, and for tokens of a prefix that is not scored
  std::vector<std::vector<float>> attached{};
  /// [tokens.size()] if Request::confidence asks, else empty
  std::vector<Choice> choices{};
  /// [tokens.size()]: of searches over frames (CTC, transducers): the frames of each token on the hypothesis' best alignment; else empty
  std::vector<FrameRange> frames{};
  /// Of ParticleSample: the estimated probability of this output among those that the potential admits; all of them add up to 1. Else NaN
  double weight = std::numeric_limits<double>::quiet_NaN();
};

/// Why a request has no (or no complete) result.
enum class Failure : std::uint8_t {
  none,
  bad_request,    ///< the request is invalid; nothing was run
  source,         ///< Model::start (or encode) threw for this source
  search,         ///< the search threw for this sentence
  model,          ///< Model::step (or the expander) threw in a step of this sentence
  not_a_number,   ///< the model's scores held a NaN or +infinity
  no_token_left,  ///< every token was impossible before any hypothesis had finished
  late,           ///< the deadline passed; with the hypotheses so far
  refused,        ///< a Server's queue was full, or it had closed; nothing was run
  cancelled,      ///< the caller cancelled the request; with the hypotheses so far
  schedule,       ///< the schedule threw, or chose no sentence
  no_room,        ///< more tokens than the model can hold, even alone; with the hypotheses so far
};

/// The failure's name, as written above.
constexpr char const* name(Failure failure) {
  switch (failure) {
    case Failure::none: return "none";
    case Failure::bad_request: return "bad_request";
    case Failure::source: return "source";
    case Failure::search: return "search";
    case Failure::model: return "model";
    case Failure::not_a_number: return "not_a_number";
    case Failure::no_token_left: return "no_token_left";
    case Failure::late: return "late";
    case Failure::refused: return "refused";
    case Failure::cancelled: return "cancelled";
    case Failure::schedule: return "schedule";
    case Failure::no_room: return "no_room";
  }
  return "unknown";
}

/// The outcome of one request.
struct Result {
  std::uint64_t id = 0;                  ///< as returned by Decoder::submit; decode() counts from 0 in input order
  std::vector<Hypothesis> hypotheses{};  ///< best first (samples: in their order); those so far if it failed
  Failure failure = Failure::none;
  std::string message{};       ///< what failed, with names and values. Without failure: empty, or why there are no
                               ///< hypotheses (AtMaximum::drop, ExactSearch::floor)
  std::exception_ptr cause{};  ///< the exception behind it, if there was one
  double bound =
      std::numeric_limits<double>::quiet_NaN();  ///< of ExactSearch: a proved upper bound of the score of any output

  std::int32_t frames =
      -1;  ///< of searches over frames: how many of the source's it is of, all if no endpoint came before; else -1
  /// Of ParticleSample: an estimate of the logarithm of the sum, over all outputs, of probability times potential; -infinity if no
  /// particle is left. Else NaN
  double log_z = std::numeric_limits<double>::quiet_NaN();
  double log_z_error = std::numeric_limits<double>::quiet_NaN();  ///< an estimate of the standard deviation of log_z

  bool ok() const { return failure == Failure::none; }
  /// Makes this a failure; the hypotheses stay.
  void fail(Failure why, std::string what, std::exception_ptr exception = {}) {
    failure = why, message = std::move(what), cause = std::move(exception);
  }
};

}  // namespace sluice::inline v0
