// SPDX-License-Identifier: Apache-2.0
/// \file
/// What fairseq's constrained search loses at the last step.
#pragma once

#include <sluice/core/result.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <oracle_check/common.hpp>
#include <string>
#include <vector>

namespace oracle_check {

/// At the last step a hypothesis can only end, if it has met everything. fairseq deals the 2k places of that step to
/// all banks by turns, impossible candidates (of log-probability -infinity) among them, and looks at the first k: the
/// best of the complete ones has the first place, those behind it may have none. We find them all, so:
///
///  - fairseq's list is ours with some left out, tokens and scores, and has room for them;
///  - each that is left out ends at the last step and is complete;
///  - fairseq has one that ends there, and none left out is better than one of those: it lost the tail.
///
/// \param longest   tokens at the last step, eos included
/// \param complete  whether tokens hold all constraints
/// \returns how many were lost, in words; "" if the lists differ in another way, or not at all
template <class F>
std::string lost_at_last_step(sluice::Result const& result, std::vector<Expected> const& expected, std::size_t width,
                              std::size_t longest, F const& complete) {
  auto const& found = result.hypotheses;
  if (!result.ok() || found.size() <= expected.size() || found.size() > width) return {};
  double worst_kept = 0, best_lost = -std::numeric_limits<double>::infinity();
  std::size_t kept = 0, kept_last = 0;
  for (auto const& h : found) {
    auto const last = h.tokens.size() == longest;
    if (kept < expected.size() && h.tokens == expected[kept].tokens &&
        std::abs(h.score - expected[kept].score) <= tolerance) {
      ++kept;
      if (last) ++kept_last, worst_kept = std::min(worst_kept, h.log_prob);
    } else if (last && h.finished && complete(h.tokens)) {
      best_lost = std::max(best_lost, h.log_prob);
    } else {
      return {};
    }
  }
  if (kept < expected.size() || kept_last == 0 || best_lost > worst_kept) return {};
  return "last step: fairseq loses " + std::to_string(found.size() - kept) + " of " +
         std::to_string(found.size() - kept + kept_last) + " complete hypotheses of maximum length";
}

}  // namespace oracle_check
