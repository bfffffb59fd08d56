// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options in which beam searches differ.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sluice::inline v0 {

/// Which candidates a beam drops even though it has room (Freitag and Al-Onaizan 2017, "Beam Search Strategies for
/// Neural Machine Translation"). All are off by default: the beam has a fixed width. A candidate exactly at a threshold
/// is dropped.
struct Pruning {
  static constexpr auto off = std::numeric_limits<double>::infinity();
  static constexpr auto unlimited = (std::numeric_limits<std::int32_t>::max)();

  double absolute_threshold =
      off;                        ///< keep log_prob > best - this, where best is the best of the kept candidates and of
                                  ///< the finished hypotheses (an empty output does not count); >= 0
  double relative_threshold = 0;  ///< keep probability > this times that of the same best; in [0, 1)
  double relative_local_threshold = 0;      ///< keep candidates whose last token alone is more than this times as
                                            ///< probable as the most probable last token of all candidates; in [0, 1)
  std::int32_t max_per_parent = unlimited;  ///< maximum number of children of one hypothesis, finished ones included;
                                            ///< >= 1
  double below_finished = off;  ///< drop hypotheses more than this below the best finished one, as Sockeye's beam_prune
                                ///< and Post and Vilar (2018, section 6.3) do: compares the log_prob of a live one, or
                                ///< the score of a finished one, with the best score of a finished one. With a length
                                ///< penalty that is nearly a bound on log_prob itself; >= 0

  bool by_total() const { return absolute_threshold < off || relative_threshold > 0; }
  /// The maximum distance of a log-probability below the best: the stricter of the two thresholds.
  double margin() const {
    return relative_threshold > 0 ? std::fmin(absolute_threshold, -std::log(relative_threshold)) : absolute_threshold;
  }
  SLUICE_LAZY void check() const {
    require(absolute_threshold >= 0, "pruning.absolute_threshold", absolute_threshold, "must be a number >= 0");
    require(relative_threshold >= 0 && relative_threshold < 1, "pruning.relative_threshold", relative_threshold,
            "must be in [0, 1)");
    require(relative_local_threshold >= 0 && relative_local_threshold < 1, "pruning.relative_local_threshold",
            relative_local_threshold, "must be in [0, 1)");
    require(below_finished >= 0, "pruning.below_finished", below_finished, "must be a number >= 0");
    require(max_per_parent >= 1, "pruning.max_per_parent", max_per_parent, "must be at least 1");
  }
};

/// What happens to a hypothesis that ends while its beam goes on.
enum class FinishedHypotheses : std::uint8_t {
  set_aside,  ///< eos among the `width` best candidates goes to a list, and the beam is refilled (fairseq, CTranslate2,
              ///< Hugging Face)
  shrink,     ///< it leaves, and its place stays empty (Marian)
  stay,       ///< it keeps its place and competes with its final score (Sockeye)
  leave_first,  ///< it stays and competes with its log_prob; once no live hypothesis is better, it leaves and its place
                ///< stays empty (VAR-STREAM)
};

/// What happens to hypotheses that are still alive at the maximum length.
enum class AtMaximum : std::uint8_t {
  force_eos,        ///< their last token is eos, with its own log-probability (fairseq, Sockeye)
  force_eos_free,   ///< their last token is eos, at no cost (VAR-STREAM)
  truncate,         ///< they join the finished ones, without eos (CTranslate2, Hugging Face, Marian)
  best_unfinished,  ///< the best of them joins the finished ones, without eos
  drop,             ///< they are discarded
};

/// When a sentence ends before its beam is empty and before the maximum length.
struct EarlyStopping {
  /// When the search ends, besides at the maximum length.
  enum class Rule : std::uint8_t {
    count,      ///< when `finished` hypotheses have ended
    top_ended,  ///< when the best candidate of some step was an end and n_best have ended (CTranslate2 without penalty)
    exact,  ///< when no live hypothesis can still enter the n-best list. Needs scores that only fall: see LengthPenalty
    heuristic,  ///< when width have ended and the best live one, scored as if it ended now, is no better than the worst
                ///< of the width best finished ones (Hugging Face, early_stopping = False)
    never_early,  ///< the same, but scored at the maximum length where alpha > 0 (Hugging Face, early_stopping =
                  ///< "never")
  };
  Rule rule = Rule::count;
  std::int32_t finished = 0;  ///< for Rule::count; 0 = patience times width
  double patience = 1;        ///< (CTranslate2; Kasai et al. 2022); rounded, at least 1
  /// As Hugging Face before 4.50, and its group beam search: heuristic and never_early compare the best candidate of the
  /// step, even if it has just ended; at the maximum length the places of those that end are filled as at any other, and
  /// the live hypotheses join only if no rule stops the search.
  bool ended_first = false;

  /// The number of hypotheses that must end under Rule::count, for a beam of this width.
  SLUICE_LAZY std::int32_t needed(std::int32_t width) const {
    if (finished != 0) return finished;
    return (std::max)(1, static_cast<std::int32_t>(std::lround(patience * static_cast<double>(width))));
  }

  SLUICE_LAZY void check() const {
    require(finished >= 0, "early_stopping.finished", finished, "must not be negative");
    require(patience > 0 && std::isfinite(patience), "early_stopping.patience", patience, "must be a number > 0");
  }
};

namespace detail::beam_loop {

/// Why a finished beam search has no hypotheses.
SLUICE_LAZY void say_why_empty(AtMaximum at_maximum, Result& result) {
  if (at_maximum == AtMaximum::drop)
    result.fail(Failure::none, "no hypothesis had finished, and AtMaximum::drop keeps no other");
  else result.fail(Failure::no_token_left, "every token was impossible before any hypothesis had finished");
}

}  // namespace detail::beam_loop

}  // namespace sluice::inline v0
