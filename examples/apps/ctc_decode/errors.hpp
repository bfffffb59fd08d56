// SPDX-License-Identifier: Apache-2.0
/// \file
/// Errors of texts against what they should be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace ctc_decode {

/// The least number of insertions, deletions and substitutions that make one of the other (Levenshtein).
template <class Sequence>
std::size_t distance(Sequence const& one, Sequence const& other) {
  std::vector<std::size_t> before(other.size() + 1), now(other.size() + 1);
  std::iota(before.begin(), before.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    now[0] = i + 1;
    for (std::size_t k = 0; k < other.size(); ++k)
      now[k + 1] = (std::min)({before[k] + (one[i] == other[k] ? 0u : 1u), before[k + 1] + 1, now[k] + 1});
    std::swap(before, now);
  }
  return before.back();
}

/// Errors, of so many.
struct ErrorRate {
  std::size_t errors = 0, of = 0;

  double percent() const { return of == 0 ? 0 : 100.0 * static_cast<double>(errors) / static_cast<double>(of); }
  template <class Sequence>
  void add(Sequence const& found, Sequence const& wanted) {
    errors += distance(found, wanted), of += wanted.size();
  }
};

}  // namespace ctc_decode
