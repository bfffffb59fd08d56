// SPDX-License-Identifier: Apache-2.0
/// \file
/// What comes out: hypotheses, or the reason why there are none.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// What the model thought where a token was chosen, before any rule, temperature or truncation: see Confidence.
struct Choice {
  float entropy =
      std::numeric_limits<float>::quiet_NaN();  ///< in nats; NaN where it was not asked for, or nothing was run
  std::int32_t rank =
      -1;  ///< of the token that was taken, among the alternatives, from 0; as many as these: behind them all.
           ///< -1 where none were asked for, or nothing was run
  std::vector<Candidate> alternatives{};  ///< the best tokens, the one taken included, best first
};

/// One output sequence.
struct Hypothesis {
  std::vector<Token> tokens{};     ///< forced prefix and generated tokens, final eos included; the prompt is not
  std::vector<float> log_probs{};  ///< of each token given those before it; [tokens.size()]
  double log_prob = 0;             ///< their sum, natural log
  double score = 0;                ///< what hypotheses are ranked by: log_prob after length penalty and the like
  bool finished = false;           ///< ended by eos, by a stop, or at its fixed length where there is no eos
  std::int32_t constraints_met =
      0;  ///< of a ConstrainedBeamSearch: how many of its phrases (or other demands) are in it
  std::int32_t constraints_total = 0;  ///< of so many
  std::vector<std::int32_t> blocks{};  ///< of Blockwise: tokens settled in each round, as Stern et al. (2018) count
  std::int32_t stop = -1;              ///< which of its rule's stops ended it, see StopAt; -1: none
  /// [tokens.size()]: what the model attached to the line that each token was chosen from, see Attachments; nothing where it
  /// attaches nothing, and for tokens of a prefix that is not scored
  std::vector<std::vector<float>> attached{};
  /// [tokens.size()] where Request::confidence asks, else nothing
  std::vector<Choice> choices{};
};

/// Why a request has no (or no complete) result.
enum class Failure : std::uint8_t {
  none,
  bad_request,    ///< the request made no sense; nothing was run
  source,         ///< Model::start (or encode) threw for this source
  search,         ///< the search threw for this sentence
  model,          ///< Model::step (or the expander) threw in a step that this sentence took part in
  not_a_number,   ///< the model's scores held a NaN or +infinity
  no_token_left,  ///< every token was impossible before any hypothesis had finished
  late,           ///< the deadline passed; the hypotheses are what there was
  refused,        ///< a Server's queue was full, or it had closed; nothing was run
  cancelled,      ///< the caller withdrew the request; the hypotheses are what there was
  schedule,       ///< the schedule threw, or chose nobody
  no_room,        ///< more tokens than the model can hold, even alone; the hypotheses are what there was
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

/// What became of one request.
struct Result {
  std::uint64_t id = 0;                  ///< as returned by Decoder::submit; decode() counts from 0 in input order
  std::vector<Hypothesis> hypotheses{};  ///< best first (samples: in their order); so far, if it broke off
  Failure failure = Failure::none;
  std::string message{};       ///< what failed, with names and values; where nothing did, empty, or why there are no
                               ///< hypotheses all the same (AtMaximum::drop, ExactSearch::floor)
  std::exception_ptr cause{};  ///< the exception behind it, if there was one
  double bound =
      std::numeric_limits<double>::quiet_NaN();  ///< of ExactSearch: it has proved that no output scores more

  bool ok() const { return failure == Failure::none; }
  /// Makes this a failure; the hypotheses stay.
  void fail(Failure why, std::string what, std::exception_ptr exception = {}) {
    failure = why, message = std::move(what), cause = std::move(exception);
  }
};

}  // namespace sluice::inline v0
