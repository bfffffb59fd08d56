// SPDX-License-Identifier: Apache-2.0
/// \file
/// One token by adaptive weighted rejection sampling.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// A token that was accepted, and an estimate of the probability that a token is.
struct Accepted {
  std::size_t place = 0;  ///< in the list
  double mass = 0;        ///< 0: none was accepted
};

/// Adaptive weighted rejection sampling (Lipkin et al. 2025, "Fast Controlled Generation from Language Models with Adaptive Weighted
/// Rejection Sampling"; as genlm-control's recursive_awrs, for looks = 1). The tokens of `list` are tried in order; the first that is
/// accepted is drawn. Since the list is a draw without replacement, that is a draw from the accepted tokens A.
///
/// The mass p(A) is that of the accepted tokens seen so far plus that of A in the rest, at any place of the list. So the estimate adds the
/// probabilities of accepted tokens up to some place that only what came before decides, and estimates the rest by whether one more
/// token is accepted: then all of it, else nothing. That place is `looks` tokens after the one drawn, or the last of the list; if the
/// list holds every possible token, nothing is estimated. Whatever the token, the expectation of `mass` given it is p(A) wherever the
/// list has a token that is accepted, and over all, E[mass * 1{token = a}] = p(a).
///
/// \param list   tokens drawn without replacement, in that order
/// \param whole  the list holds every possible token
/// \param looks  >= 1
/// \param accepts  whether the token at a place is accepted; called once for each place, in ascending order
template <class Accepts>
Accepted reject(std::span<Candidate const> list, bool whole, std::int32_t looks, Accepts const& accepts) {
  Accepted found;
  auto const none = list.size();
  found.place = none;
  double seen = 0, accepted = 0;  // mass of all tokens before this place, and of the accepted ones among them
  for (std::size_t i = 0; i < none; ++i) {
    auto const mass = std::exp(static_cast<double>(list[i].log_prob));
    auto const last =
        (found.place < none && i == found.place + static_cast<std::size_t>(looks)) || (i + 1 == none && !whole);
    auto const good = accepts(i);
    if (good && found.place == none) found.place = i;
    if (last) {
      // at least its own mass: log_probs are floats, and the difference may round to less
      if (good) accepted += (std::max)(mass, 1 - seen);
      break;
    }
    seen += mass;
    if (good) accepted += mass;
  }
  if (found.place < none) found.mass = accepted;
  return found;
}

}  // namespace sluice::inline v0::detail
