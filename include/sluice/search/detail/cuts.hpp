// SPDX-License-Identifier: Apache-2.0
/// \file
/// The arithmetic of truncation on lists of candidates, best first, not necessarily normalised.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace sluice::inline v0::detail {

/// The total probability of a list.
inline double mass(std::span<Candidate const> list) {
  double sum = 0;
  for (auto const c : list) sum += std::exp(static_cast<double>(c.log_prob));
  return sum;
}

/// The number of leading candidates that together hold `wanted`.
SLUICE_LAZY std::size_t head(std::span<Candidate const> list, double wanted) {
  std::size_t n = 0;
  for (double held = 0; n < list.size() && held < wanted; ++n) held += std::exp(static_cast<double>(list[n].log_prob));
  return n;
}

/// The number of leading candidates that are at least `bar`.
SLUICE_LAZY std::size_t above(std::span<Candidate const> list, double bar) {
  auto const end =
      std::find_if(list.begin(), list.end(), [&](auto c) { return static_cast<double>(c.log_prob) < bar; });
  return static_cast<std::size_t>(end - list.begin());
}

/// Sorts best first; ties by token.
SLUICE_LAZY void sort_by_score(std::span<Candidate> list) {
  std::sort(list.begin(), list.end(), [](Candidate a, Candidate b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
  });
}

/// Sorts a list by the distance of each candidate's information from the entropy. \returns how many then hold `typical`
/// of it
SLUICE_LAZY std::size_t sort_typical(std::span<Candidate> list, double typical) {
  auto const all = mass(list);
  double mean = 0;  // of log_prob; renormalising shifts it and the entropy alike
  for (auto const c : list) mean += std::exp(static_cast<double>(c.log_prob)) / all * static_cast<double>(c.log_prob);
  auto const distance = [&](Candidate c) { return std::abs(static_cast<double>(c.log_prob) - mean); };
  std::sort(list.begin(), list.end(), [&](Candidate a, Candidate b) {
    return distance(a) != distance(b) ? distance(a) < distance(b) : a.token < b.token;
  });
  return head(list, typical * all);
}

}  // namespace sluice::inline v0::detail
