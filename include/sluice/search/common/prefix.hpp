// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a running search needs to know about a forced prefix.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>

#include <cstdint>
#include <limits>

namespace sluice::inline v0 {

/// A forced prefix: it counts in lengths and in log-probabilities. The decoding loop feeds its tokens.
class Prefix {
 public:
  Prefix() = default;
  explicit Prefix(Sentence const& sentence)
      : size_(static_cast<std::int32_t>(sentence.prefix.size())), log_prob_(sentence.prefix_log_prob) {}

  std::int32_t size() const { return size_; }
  /// Valid from the first advance on.
  double log_prob() const { return log_prob_ == nullptr ? 0 : *log_prob_; }
  /// Whether the model considers it impossible: its log_prob() is -infinity.
  bool impossible() const { return !(log_prob() > -std::numeric_limits<double>::infinity()); }

  // An output after an impossible prefix is impossible too, but still requested: the search ranks it by what follows
  // the prefix.
  /// The initial log-probability of a search: log_prob(), or 0 where that is -infinity.
  double ranked() const { return impossible() ? 0 : log_prob(); }
  /// Restores the log_prob and score of outputs ranked this way; keeps their order.
  void complete(Result& result) const {
    if (!impossible()) return;
    for (auto& h : result.hypotheses) h.log_prob = h.score = log_prob();
  }

 private:
  std::int32_t size_ = 0;
  double const* log_prob_ = nullptr;
};

}  // namespace sluice::inline v0
