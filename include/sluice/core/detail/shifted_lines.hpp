// SPDX-License-Identifier: Apache-2.0
/// \file
/// Adds a constant to all log-probabilities of a line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>

#include <cstddef>
#include <vector>

namespace sluice::inline v0::detail {

/// What a rule adds to every token of each line of a plan: an Edit for each would cost a look at the vocabulary.
class ShiftedLines {
 public:
  void clear() { shifts_.clear(), any_ = false; }
  /// Adds the plan's next line.
  void add(float shift) { shifts_.push_back(shift), any_ = any_ || shift != 0; }

  /// The answer with the constants added. Valid until the next call, and as long as `answer`.
  SLUICE_LAZY Expansion shift(Expansion const& answer) {
    if (!any_ || answer.size() != shifts_.size()) return answer;
    entries_.clear(), best_.clear(), probes_.clear();
    for (std::size_t i = 0; i < answer.size(); ++i) {
      auto const line = answer[i];
      entries_.push_back({.best = best_.size(),
                          .probes = probes_.size(),
                          .best_count = line.best.size(),
                          .probe_count = line.probes.size(),
                          .log_sum_exp = line.log_sum_exp,
                          .entropy = line.entropy,
                          .valid = line.valid,
                          .impossible = line.impossible});
      for (auto const& one : line.best) best_.push_back({one.token, one.log_prob + shifts_[i]});
      for (auto const probe : line.probes) probes_.push_back(probe + shifts_[i]);
    }
    return {entries_, best_, probes_};
  }

 private:
  std::vector<float> shifts_;  // [line]
  Buffer<Expansion::Entry> entries_;
  Buffer<Candidate> best_;
  std::vector<float> probes_;
  bool any_ = false;
};

}  // namespace sluice::inline v0::detail
