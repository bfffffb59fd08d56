// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one output of a search that has no others.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/length.hpp>

#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

/// The output of a search that keeps one and never takes a token back: the base of its State.
struct SingleOutput : OutputLimits {
  std::vector<Token> tokens;  // generated
  std::vector<float> log_probs;
  bool finished = false, ended = false;  // ended: no token follows

  /// The length of the output so far.
  std::int32_t size() const { return prefix.size() + static_cast<std::int32_t>(tokens.size()); }

  SLUICE_LAZY void begin(Sentence const& sentence, LengthLimits const& length) {
    OutputLimits::begin(sentence, length);
    tokens.clear(), log_probs.clear();
    finished = ended = false;
  }
  /// Appends a token. Returns whether it is the last, and sets `ended` to that.
  SLUICE_LAZY bool keep(Candidate token) {
    tokens.push_back(token.token), log_probs.push_back(token.log_prob);
    finished = finished_by(token.token, size());
    return ended = finished || size() >= bounds.max;
  }
  /// Writes the output as the result's hypothesis, with the log-probability of all its tokens as its score. Returns it;
  /// nullptr, and a failure, if the search found no token that could follow.
  SLUICE_LAZY Hypothesis* write(Result& result) const {
    result.hypotheses.clear();
    if (ended && !finished && size() < bounds.max) {
      result.fail(Failure::no_token_left, "every token was impossible");
      return nullptr;
    }
    auto& h = result.hypotheses.emplace_back();
    h.tokens = tokens, h.log_probs = log_probs, h.finished = finished;
    h.log_prob = prefix.log_prob();
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = h.log_prob;
    return &h;
  }
};

}  // namespace sluice::inline v0::detail
