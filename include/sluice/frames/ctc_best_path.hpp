// SPDX-License-Identifier: Apache-2.0
/// \file
/// The best path through a matrix of frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace sluice::inline v0 {

/// Greedy decoding of CTC (best path, Graves et al. 2006): the best label of every frame, equal neighbours joined, blanks dropped. Of
/// equal scores the lower label counts. `log_prob` and `score` are those of that one alignment, whereas a text's probability, as
/// CtcBeamSearch tells it, sums all of its alignments. `frames` has the frames of each token, `log_probs` its log-probability at its
/// best frame. O(frames * V).
///
/// \param frames  [frames, V]
/// \throws std::invalid_argument  for a matrix without frames, a blank outside of it, or a frame with a NaN or +infinity, or with no
///     label that is possible
template <class T>
Hypothesis ctc_best_path(Scores<T> const& frames, Token blank = 0) {
  require(frames.rows >= 1, "frames", frames.rows, "there must be at least one");
  require(blank >= 0 && blank < frames.columns, "blank", blank,
          "is outside the vocabulary of " + std::to_string(frames.columns));
  Hypothesis path;
  path.finished = true;
  auto before = blank;
  for (std::ptrdiff_t frame = 0; frame < frames.rows; ++frame) {
    auto const line = frames[frame];
    std::size_t best = 0;
    for (std::size_t v = 0; v < line.size(); ++v) {
      auto const score = static_cast<float>(line[v]);
      require(score < std::numeric_limits<float>::infinity(), "frame", frame, "has a NaN or +infinity");
      if (score > static_cast<float>(line[best])) best = v;
    }
    auto log_prob = static_cast<double>(line[best]);
    require(std::isfinite(log_prob), "frame", frame, "has no label that is possible");
    if (frames.kind == Kind::logits) {
      double sum = 0;
      for (auto const score : line) sum += std::exp(static_cast<double>(score) - log_prob);
      log_prob = -std::log(sum);
    }
    path.log_prob += log_prob;
    auto const label = static_cast<Token>(best);
    auto const end = static_cast<std::int32_t>(frame) + 1;
    if (label != blank && label == before) {
      path.frames.back().end = end;
      path.log_probs.back() = (std::max)(path.log_probs.back(), static_cast<float>(log_prob));
    } else if (label != blank) {
      path.tokens.push_back(label), path.log_probs.push_back(static_cast<float>(log_prob));
      path.frames.push_back({end - 1, end});
    }
    before = label;
  }
  path.score = path.log_prob;
  return path;
}

}  // namespace sluice::inline v0
