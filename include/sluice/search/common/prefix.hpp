// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a search that runs still needs to know of a forced prefix.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>

#include <cstdint>
#include <limits>

namespace sluice::inline v0 {

/// A forced prefix: it counts in lengths and in log-probabilities. Its tokens are the loop's affair.
class Prefix {
 public:
  Prefix() = default;
  explicit Prefix(Sentence const& sentence)
      : size_(static_cast<std::int32_t>(sentence.prefix.size())), log_prob_(sentence.prefix_log_prob) {}

  std::int32_t size() const { return size_; }
  /// From the first advance on.
  double log_prob() const { return log_prob_ == nullptr ? 0 : *log_prob_; }
  /// Whether the model holds it for impossible: its log_prob() is -infinity.
  bool impossible() const { return !(log_prob() > -std::numeric_limits<double>::infinity()); }

  // An output behind an impossible prefix is impossible too, and still wanted: the search ranks it by what follows the prefix.
  /// What a search begins to add to: log_prob(), or 0 where that is -infinity.
  double ranked() const { return impossible() ? 0 : log_prob(); }
  /// Makes outputs that were ranked so what they are, in their order.
  void complete(Result& result) const {
    if (!impossible()) return;
    for (auto& h : result.hypotheses) h.log_prob = h.score = log_prob();
  }

 private:
  std::int32_t size_ = 0;
  double const* log_prob_ = nullptr;
};

}  // namespace sluice::inline v0
