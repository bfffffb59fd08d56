// SPDX-License-Identifier: Apache-2.0
/// \file
/// Length limits of outputs, and the effect of length on the score.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace sluice::inline v0 {

/// Bounds on the number of generated tokens of one sentence. A forced prefix counts, the prompt does not.
struct LengthLimits {
  /// As `max`: until the model's slots are full (Limits::length), as engines for language models do.
  static constexpr std::int32_t unlimited = Limits::unlimited;

  std::int32_t min = 0;  ///< minimum number generated before eos (eos is forbidden until then); >= 0
  std::int32_t max =
      256;  ///< maximum number generated, eos included; >= 0. (fairseq's max_len excludes eos: this is one more.)
  double min_factor = 0;   ///< > 0: also at least this times the source's length, rounded up
  double max_factor = 0;   ///< > 0: also at most this times the source's length, rounded up, plus
  std::int32_t extra = 0;  ///< this

  /// Throws std::invalid_argument if the options are inconsistent.
  SLUICE_LAZY void check() const {
    require(min >= 0, "length.min", min, "must not be negative");
    require(max >= 0, "length.max", max, "must not be negative");
    require(min <= max, "length.min", min, "must be at most length.max, " + std::to_string(max));
    require(min_factor >= 0 && std::isfinite(min_factor), "length.min_factor", min_factor, "must be a number >= 0");
    require(max_factor >= 0 && std::isfinite(max_factor), "length.max_factor", max_factor, "must be a number >= 0");
    require(extra >= 0, "length.extra", extra, "must not be negative");
  }

  /// The shortest and the longest output of one sentence; see of().
  struct Bounds {
    std::int32_t min, max;
  };
  /// The bounds for one sentence, also limited by the model. Throws std::invalid_argument if a factor is given and the
  /// source's length is unknown, if nothing limits the output, or if the forced prefix leaves no room.
  SLUICE_LAZY Bounds of(Sentence const& sentence) const {
    auto const prefix = static_cast<std::int32_t>(sentence.prefix.size());
    auto const prompt = static_cast<std::int32_t>(sentence.prompt.size());
    require((min_factor <= 0 && max_factor <= 0) || sentence.source_length >= 0, "source length", "unknown",
            "length factors need it: the model has no source_length(source) and the source no size()");
    require(prompt <= sentence.limits.length, "prompt", std::to_string(prompt) + " tokens",
            "the model's slots hold " + std::to_string(sentence.limits.length));
    require(max < unlimited || max_factor > 0 || sentence.limits.length < Limits::unlimited, "length.max", "unlimited",
            "the model names no limit (Limits::length): outputs might never end");
    Bounds bounds{min, max};
    auto const times = [&](double factor) { return std::ceil(factor * static_cast<double>(sentence.source_length)); };
    if (min_factor > 0)
      bounds.min = static_cast<std::int32_t>(std::max<double>(min, (std::min)(times(min_factor), 1e9)));
    if (max_factor > 0) bounds.max = static_cast<std::int32_t>(std::min<double>(max, times(max_factor) + extra));
    if (sentence.limits.length < Limits::unlimited)  // the last generated token is never fed
      bounds.max = (std::min)(bounds.max, sentence.limits.length - prompt + 1);
    bounds.min = (std::min)(bounds.min, bounds.max);
    require(prefix == 0 || prefix < bounds.max, "prefix", std::to_string(prefix) + " tokens",
            "must be shorter than the maximum length, " + std::to_string(bounds.max));
    return bounds;
  }
};

/// The final score by which hypotheses are ranked. Lengths include the forced prefix and the final eos.
struct LengthPenalty {
  /// What the sum of log-probabilities is divided by.
  enum class Kind : std::uint8_t {
    none,     ///< score = log_prob - word_penalty * length
    average,  ///< that / length^alpha (fairseq, CTranslate2, Marian, Hugging Face; alpha = 1: the mean per token)
    gnmt,     ///< that / ((beta + length) / (beta + 1))^alpha (Wu et al. 2016, eq. 14; Sockeye)
  };
  Kind kind = Kind::average;
  double alpha = 1;         ///< 0 = none; larger favours longer outputs; negative favours shorter ones
  double beta = 5;          ///< for gnmt; > -1
  double word_penalty = 0;  ///< per token; negative rewards length

  SLUICE_LAZY void check() const {
    require(std::isfinite(alpha), "penalty.alpha", alpha, "must be a number");
    require(std::isfinite(beta) && beta > -1, "penalty.beta", beta, "must be more than -1");
    require(std::isfinite(word_penalty), "penalty.word_penalty", word_penalty, "must be a number");
  }

  SLUICE_LAZY double divisor(std::int32_t length) const {
    auto const n = static_cast<double>((std::max)(length, 1));
    if (kind == Kind::none || alpha == 0) return 1;
    auto const base = kind == Kind::average ? n : (beta + n) / (beta + 1);
    return alpha == 1 ? base : std::pow(base, alpha);
  }
  double score(double log_prob, std::int32_t length) const {
    return (log_prob - word_penalty * static_cast<double>(length)) / divisor(length);
  }
  /// An upper bound on the score of any continuation of a hypothesis with this log_prob that ends with `from` to `to`
  /// tokens: log_prob only falls, the divisor is monotone in the length, and the word penalty is linear in it.
  SLUICE_LAZY double bound(double log_prob, std::int32_t from, std::int32_t to) const {
    auto const gain = (std::max)(-word_penalty * static_cast<double>(from), -word_penalty * static_cast<double>(to));
    auto const top = log_prob + gain;
    return (std::max)(top / divisor(from), top / divisor(to));
  }
};

}  // namespace sluice::inline v0
