// SPDX-License-Identifier: Apache-2.0
/// \file
/// A prefix in the beam of a CtcBeamSearch.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/frames/detail/alignments.hpp>
#include <sluice/frames/detail/prefix_tree.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace sluice::inline v0::detail {

/// log(exp(a) + exp(b)).
inline double log_of_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  auto const less = b - a;
  return less > -40 ? a + std::log1p(std::exp(less)) : a;  // also for two of -infinity: NaN > -40 is false
}

/// A prefix, and the probability of those of its alignments with the frames so far that the beam has not dropped.
struct CtcEntry {
  static constexpr double impossible = -std::numeric_limits<double>::infinity();

  double in_blank = impossible, in_token = impossible;  // sums over alignments that end in a blank, in the last token
  double total = impossible;                            // over both
  double added = 0;                                     // by the rule and the language model
  double score = impossible;                            // total + added
  PrefixTree::Node node = PrefixTree::root;
  Token last = -1;
  std::int32_t text = -1;  // in TextScores
  BestAlignment blank_path, token_path;

  /// The probability of what `token` may follow: equal tokens need a blank between them.
  double before(Token token) const { return last == token ? in_blank : total; }
  BestAlignment const& better() const { return token_path.log_prob > blank_path.log_prob ? token_path : blank_path; }
  BestAlignment then_blank(double log_prob) const {
    auto path = better();
    path.log_prob += log_prob;
    return path;
  }
};

}  // namespace sluice::inline v0::detail
