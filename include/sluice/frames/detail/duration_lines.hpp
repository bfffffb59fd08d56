// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines of a transducer with durations.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/transducer_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Makes log-probabilities of pairs, [lines, durations * V], of logits [lines, V + durations]: log p(label) + log
/// p(duration).
class DurationLines {
 public:
  /// \throws std::logic_error  if the logits have another shape
  template <class = void>
  Scores<float> compose(Scores<float> const& logits, TransducerTokens const& tokens, std::ptrdiff_t lines) {
    auto const labels = static_cast<std::size_t>(tokens.labels), durations = tokens.durations.size();
    auto const columns = std::ptrdiff_t{tokens.labels} + std::ssize(tokens.durations);
    if (logits.rows != lines || logits.columns != columns)
      throw std::logic_error("sluice: Transducer: join was asked for [" + std::to_string(lines) + ", " +
                             std::to_string(columns) + "], and answered [" + std::to_string(logits.rows) + ", " +
                             std::to_string(logits.columns) + "]");
    auto const size = labels * durations;
    lines_.resize(static_cast<std::size_t>(lines) * size);
    for (std::ptrdiff_t i = 0; i < lines; ++i) {
      auto const line = logits[i];
      auto const of_label = log_sum(line.first(labels), logits.kind),
                 of_duration = log_sum(line.subspan(labels), logits.kind);
      auto* const out = lines_.data() + static_cast<std::size_t>(i) * size;
      for (std::size_t d = 0; d < durations; ++d) {
        auto const rest = (line[labels + d] - of_duration) - of_label;
        for (std::size_t v = 0; v < labels; ++v) out[d * labels + v] = line[v] + rest;
        if (tokens.durations[d] == 0) out[d * labels + static_cast<std::size_t>(tokens.blank)] = impossible;
      }
    }
    return scores(lines_.data(), lines, static_cast<std::ptrdiff_t>(size), Kind::log_probs);
  }

 private:
  static constexpr auto impossible = -std::numeric_limits<float>::infinity();

  /// The logarithm of the sum of the exponentials; 0 for log-probabilities. A NaN or +infinity makes it one too.
  template <class = void>
  static float log_sum(std::span<float const> line, Kind kind) {
    if (kind == Kind::log_probs) return 0;
    auto const most = *std::max_element(line.begin(), line.end());
    if (!(most > impossible)) return most == impossible ? 0 : most;
    double sum = 0;
    for (auto const x : line) sum += std::exp(static_cast<double>(x) - static_cast<double>(most));
    return most + static_cast<float>(std::log(sum));
  }

  std::vector<float> lines_;
};

}  // namespace sluice::inline v0::detail
