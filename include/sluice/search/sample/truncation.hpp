// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a line from which a sample may be drawn, and the draw.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/search/sample/detail/cuts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Cuts the tail off a distribution. Several cuts are applied in the order of the members (Hugging Face's), each to the
/// renormalised result of the one before. At least one token stays. Of equally probable tokens the lower one ranks
/// first.
struct Truncation {
  std::int32_t top_k = 0;  ///< the k most probable (Fan, Lewis and Dauphin 2018); 0 = all
  float top_p = 1;         ///< the most probable that together hold this much (Holtzman et al. 2020); in (0, 1]; 1 =
                           ///< all
  float min_p = 0;         ///< all that are at least this times as probable as the best (Nguyen et al. 2024); in [0,
                           ///< 1]; 0 = all
  float typical = 1;       ///< those whose information is nearest to the entropy and that together hold this much
                           ///< (Meister et al. 2023); in (0, 1]; 1 = all

  template <class = void>
  void check() const {
    require(top_k >= 0, "top_k", top_k, "must not be negative");
    require(top_p > 0 && top_p <= 1, "top_p", top_p, "must be in (0, 1]");
    require(min_p >= 0 && min_p <= 1, "min_p", min_p, "must be in [0, 1]");
    require(typical > 0 && typical <= 1, "typical", typical, "must be in (0, 1]");
  }
  bool off() const { return top_k == 0 && top_p >= 1 && min_p <= 0 && typical >= 1; }

  /// Requests the list that the first cut leaves; the whole line if there is no cut.
  template <class = void>
  void ask(Query& query, std::int32_t vocabulary) const {
    query.best = 0;
    if (top_k > 0) query.best = top_k;
    else if (top_p < 1) query.mass = top_p;
    else if (min_p > 0) query.within = min_p;
    else if (typical < 1) query.typical = typical;
    else query.best = vocabulary;
  }

  /// Applies the other cuts to that list. Returns a part of `list`, or of `sorted`, which is overwritten. O(n), with
  /// `typical` O(n log n).
  template <class = void>
  std::span<Candidate const> apply(std::span<Candidate const> list, std::vector<Candidate>& sorted) const {
    auto asked = top_k > 0;
    if (top_p < 1 && asked) list = list.first(detail::head(list, static_cast<double>(top_p) * detail::mass(list)));
    asked = asked || top_p < 1;
    if (min_p > 0 && asked && !list.empty())
      list =
          list.first(detail::above(list, static_cast<double>(list[0].log_prob) + std::log(static_cast<double>(min_p))));
    asked = asked || min_p > 0;
    if (typical < 1 && asked) {
      sorted.assign(list.begin(), list.end());
      list = std::span<Candidate const>(sorted).first(detail::sort_typical(sorted, static_cast<double>(typical)));
    }
    return list;
  }
};

/// Draws one of `list` in proportion to its probability, by the Gumbel-max trick: the argmax of log_prob +
/// gumbel(noise, token); ties: the lower token. The list need not be normalised or sorted, but must not be empty.
template <class = void>
Candidate draw(std::span<Candidate const> list, std::uint64_t noise) {
  auto best = list[0];
  if (list.size() == 1) return best;
  auto bar = static_cast<double>(best.log_prob) + gumbel(noise, best.token);
  for (auto const c : list.subspan(1)) {
    // gumbel <= -log(1 - uniform): most tokens need no logarithm
    auto const log_prob = static_cast<double>(c.log_prob);
    if (1 - uniform(noise, c.token) > std::exp(log_prob - bar)) continue;
    auto const value = log_prob + gumbel(noise, c.token);
    if (value > bar || (value == bar && c.token < best.token)) best = c, bar = value;
  }
  return best;
}

}  // namespace sluice::inline v0
