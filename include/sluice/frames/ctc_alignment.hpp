// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTC: the probability of a given text, and its forced alignment.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/ctc_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

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
