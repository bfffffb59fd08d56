// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTC: the probability of a given text, its forced alignment, and the best path through a matrix of frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/ctc_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

/// The likeliest alignment of given labels.
struct CtcAlignment {
  double log_prob = 0;               ///< of that one alignment, with its blanks; -infinity: there is none
  std::vector<FrameRange> frames{};  ///< [labels]: from the first frame of each to its last; empty if there is none
  std::vector<double> log_probs{};   ///< [labels]: the mean over its frames: a confidence
};

namespace detail {

/// The states of given labels: blank, label, blank, label, ..., blank.
struct CtcStates {
  std::span<Token const> labels;
  Token blank;

  std::size_t size() const { return 2 * labels.size() + 1; }
  Token label(std::size_t state) const { return state % 2 == 0 ? blank : labels[state / 2]; }
  /// Whether a state may follow the one two before it: a label after another one.
  bool skips(std::size_t state) const { return state % 2 == 1 && state >= 3 && label(state) != label(state - 2); }
};

}  // namespace detail

/// The logarithm of the probability of `labels` (without blanks), summed over all alignments (Graves et al. 2006), in
/// double precision. -infinity if they need more frames than there are. Without frames, the empty text has probability
/// 1. O(frames * labels), and one pass over the frames.
/// \param frames  [frames, V], logits or log-probabilities
/// \throws std::invalid_argument  for a blank or label outside V, a label that is the blank, frames with NaN,
///     +infinity, or nothing possible
template <class T>
double ctc_log_prob(Scores<T> const& frames, std::span<Token const> labels, Token blank = 0) {
  detail::CtcLines const lines(frames);
  detail::check_ctc(lines, labels, blank);
  detail::CtcStates const states{labels, blank};
  std::vector<double> now(states.size(), detail::log_zero), next(states.size());
  now[0] = 0;
  for (std::ptrdiff_t t = 0; t < lines.rows(); ++t) {
    for (std::size_t s = 0; s < states.size(); ++s) {
      auto sum = now[s];
      if (s >= 1) sum = detail::log_sum(sum, now[s - 1]);
      if (states.skips(s)) sum = detail::log_sum(sum, now[s - 2]);
      next[s] = sum + lines.log_prob(t, states.label(s));
    }
    std::swap(now, next);
  }
  return labels.empty() ? now[0] : detail::log_sum(now.back(), now[now.size() - 2]);
}

/// Finds the likeliest alignment of `labels` (Viterbi): which frames each label has. Parameters and errors as
/// ctc_log_prob. O(frames * labels) time, and bytes.
template <class T>
CtcAlignment ctc_align(Scores<T> const& frames, std::span<Token const> labels, Token blank = 0) {
  detail::CtcLines const lines(frames);
  detail::check_ctc(lines, labels, blank);
  detail::CtcStates const states{labels, blank};
  std::vector<double> now(states.size(), detail::log_zero), next(states.size());
  std::vector<std::uint8_t> steps(static_cast<std::size_t>(lines.rows()) * states.size());  // how many states back
  now[0] = 0;
  for (std::ptrdiff_t t = 0; t < lines.rows(); ++t) {
    for (std::size_t s = 0; s < states.size(); ++s) {
      std::size_t back = 0;
      if (s >= 1 && now[s - 1] > now[s]) back = 1;
      if (states.skips(s) && now[s - 2] > now[s - back]) back = 2;
      steps[static_cast<std::size_t>(t) * states.size() + s] = static_cast<std::uint8_t>(back);
      next[s] = now[s - back] + lines.log_prob(t, states.label(s));
    }
    std::swap(now, next);
  }
  auto state = states.size() - 1;
  if (state > 0 && now[state - 1] > now[state]) --state;
  CtcAlignment found{.log_prob = now[state]};
  if (!(found.log_prob > detail::log_zero)) return found;
  found.frames.resize(labels.size()), found.log_probs.resize(labels.size());
  for (auto t = lines.rows(); t-- > 0;) {
    if (state % 2 == 1) {
      auto& range = found.frames[state / 2];
      range.begin = static_cast<std::int32_t>(t), range.end = (std::max)(range.end, range.begin + 1);
      found.log_probs[state / 2] += lines.log_prob(t, states.label(state));
    }
    state -= steps[static_cast<std::size_t>(t) * states.size() + state];
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    found.log_probs[i] /= static_cast<double>(found.frames[i].end - found.frames[i].begin);
  return found;
}

}  // namespace sluice::inline v0
