// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether two results are one, bit for bit; and what holds of any.
#pragma once

#include <sluice/core/result.hpp>

#include <fuzz/demand.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

namespace sluice::test {

inline bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

inline bool same_hypothesis(Hypothesis const& a, Hypothesis const& b) {
  auto const same_float = [](float x, float y) { return same_number(static_cast<double>(x), static_cast<double>(y)); };
  return a.tokens == b.tokens && a.finished == b.finished && same_number(a.log_prob, b.log_prob) &&
         same_number(a.score, b.score) && std::ranges::equal(a.log_probs, b.log_probs, same_float) &&
         a.constraints_met == b.constraints_met && a.constraints_total == b.constraints_total && a.blocks == b.blocks &&
         a.stop == b.stop;
}

/// But for the id.
inline bool same_result(Result const& a, Result const& b) {
  return a.failure == b.failure && a.message == b.message && same_number(a.bound, b.bound) &&
         std::ranges::equal(a.hypotheses, b.hypotheses, same_hypothesis);
}

/// Of any, cut off or not.
inline void examine_result(Result const& result, std::int32_t vocabulary) {
  auto const explained = !result.ok() || result.hypotheses.empty();
  demand(explained == !result.message.empty(), "nothing is said of a failure, or something of a success",
         result.message);
  for (auto const& h : result.hypotheses) {
    demand(h.log_probs.size() == h.tokens.size(), "not every token has its log-probability");
    demand(std::ranges::all_of(h.tokens, [&](Token token) { return token >= 0 && token < vocabulary; }),
           "a token outside the vocabulary");
  }
}

inline std::string text(Result const& result) {
  std::string out = std::to_string(result.id) + ": " + name(result.failure) + " '" + result.message + "'";
  for (auto const& h : result.hypotheses) {
    out += "\n  " + std::to_string(h.score) + ' ' + std::to_string(h.log_prob) + (h.finished ? " ended:" : ":");
    for (auto const token : h.tokens) out += ' ' + std::to_string(token);
    for (auto const block : h.blocks) out += " b" + std::to_string(block);
  }
  return out + '\n';
}

}  // namespace sluice::test
