// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compares answers with double precision, before anything is timed.
#pragma once

#include <sluice/core/query.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

/// A line's log-probabilities and its k best, the lower token on ties.
struct Reference {
  /// \param line  including the bias, as the float sum that kernels compute
  Reference(std::span<float const> line, std::int32_t k) : log_probs(line.begin(), line.end()) {
    auto const maximum = *std::max_element(log_probs.begin(), log_probs.end());
    double sum = 0;
    for (auto const x : log_probs) sum += std::exp(x - maximum);
    auto const log_sum_exp = maximum + std::log(sum);
    std::vector<std::int32_t> order(line.size());
    std::iota(order.begin(), order.end(), 0);
    auto const before = [&line](std::int32_t a, std::int32_t b) {
      auto const x = line[static_cast<std::size_t>(a)], y = line[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    };
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
    best.assign(order.begin(), order.begin() + k);
    for (auto& x : log_probs) x -= log_sum_exp;
  }

  /// Checks that values descend and match their tokens, that no token repeats, and that they are as good as the best.
  /// \param exact      also check which of equal scores is listed
  /// \throws std::runtime_error  saying what is wrong
  void check(std::span<Candidate const> answer, double tolerance, bool exact) const {
    std::set<std::int32_t> seen;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      auto const token = static_cast<std::int32_t>(answer[i].token);
      auto const value = static_cast<double>(answer[i].log_prob);
      auto const expected = log_probs[static_cast<std::size_t>(best[i])];
      if (std::isinf(expected)) break;  // fewer than k are possible; the rest is undefined
      if (token < 0 || static_cast<std::size_t>(token) >= log_probs.size()) fail(i, "no token", token, best[i]);
      if (!seen.insert(token).second) fail(i, "a token twice", token, best[i]);
      if (exact && token != best[i]) fail(i, "another token", token, best[i]);
      if (!(std::abs(value - expected) <= tolerance)) fail(i, "another log-probability", value, expected);
      if (!(std::abs(value - log_probs[static_cast<std::size_t>(token)]) <= tolerance))
        fail(i, "not the token's log-probability", value, log_probs[static_cast<std::size_t>(token)]);
    }
  }

  std::vector<double> log_probs;
  std::vector<std::int32_t> best;

 private:
  template <class Number>
  [[noreturn]] static void fail(std::size_t i, char const* what, Number is, Number expected) {
    std::ostringstream text;
    text << "place " << i << ": " << what << ": " << is << ", expected " << expected;
    throw std::runtime_error(text.str());
  }
};

/// Answers with one error each, all of which check() must refuse.
/// \throws std::logic_error  if it does not
inline void check_the_check() {
  std::vector<float> const line{1, 3, 2, 3, -1, 0};
  Reference const reference(line, 3);
  std::vector<Candidate> right;
  for (auto const token : reference.best)
    right.push_back({token, static_cast<float>(reference.log_probs[static_cast<std::size_t>(token)])});
  auto const refused = [&](std::vector<Candidate> const& answer, bool exact) {
    try {
      reference.check(answer, 1e-4, exact);
    } catch (std::runtime_error const&) {
      return true;
    }
    return false;
  };
  auto const changed = [&](std::size_t i, Candidate candidate) {
    auto answer = right;
    answer[i] = candidate;
    return answer;
  };
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  auto tied = right;
  std::swap(tied[0], tied[1]);
  auto const good = !refused(right, true) && !refused(tied, false) && refused(tied, true) &&
                    refused(changed(0, {right[0].token, right[0].log_prob + 0.01f}), false) &&
                    refused(changed(0, {right[0].token, nan}), false) && refused(changed(1, right[0]), false) &&
                    refused(changed(2, {0, right[2].log_prob}), false) &&
                    refused(changed(2, {-1, right[2].log_prob}), false) &&
                    refused(changed(2, {6, right[2].log_prob}), false);
  if (!good) throw std::logic_error("the check of answers lets wrong ones pass, or refuses right ones");
}

}  // namespace sluice::bench
