// SPDX-License-Identifier: Apache-2.0
/// \file
/// top_k, top_p, min_p and typical alone: what Sample and acceptance::Sampling mostly need.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/search/detail/cuts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Cuts the tail off a distribution, as the fields of Sample that have these names.
struct Truncation {
  std::int32_t top_k = 0;
  float top_p = 1, min_p = 0, typical = 1;

  bool off() const { return top_k == 0 && top_p >= 1 && min_p <= 0 && typical >= 1; }

  /// Requests the list that the first cut leaves; the whole line if there is no cut.
  SLUICE_LAZY void ask(Query& query, std::int32_t vocabulary) const {
    query.best = 0;
    if (top_k > 0) query.best = top_k;
    else if (top_p < 1) query.mass = top_p;
    else if (min_p > 0) query.within = min_p;
    else if (typical < 1) query.typical = typical;
    else query.best = vocabulary;
  }

  /// Applies the other cuts to that list. Returns a part of `list`, or of `sorted`, which is overwritten. O(n), with
  /// `typical` O(n log n).
  SLUICE_LAZY std::span<Candidate const> apply(std::span<Candidate const> list, std::vector<Candidate>& sorted) const {
    auto asked = top_k > 0;
    if (top_p < 1 && asked) list = list.first(head(list, static_cast<double>(top_p) * mass(list)));
    asked = asked || top_p < 1;
    if (min_p > 0 && asked && !list.empty())
      list = list.first(above(list, static_cast<double>(list[0].log_prob) + std::log(static_cast<double>(min_p))));
    asked = asked || min_p > 0;
    if (typical < 1 && asked) {
      sorted.assign(list.begin(), list.end());
      list = std::span<Candidate const>(sorted).first(sort_typical(sorted, static_cast<double>(typical)));
    }
    return list;
  }
};

}  // namespace sluice::inline v0::detail
