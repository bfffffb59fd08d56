// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which searches prove their results by log-probabilities that only fall.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::detail {

/// Whether a search takes for granted that log-probabilities only fall.
template <class S>
consteval bool assumes_falling() {
  if constexpr (requires { S::assumes_falling; }) return S::assumes_falling;
  else return false;
}

/// A search that holds one of several (OneOf).
template <class S>
concept HoldsChosen = requires(S const& search) {
  search.chosen([](auto const&) {});
};

/// Whether a search's options stop it by a proof from log-probabilities that only fall.
template <class S>
bool stops_by_proof(S const& search) {
  if constexpr (HoldsChosen<S>) return search.chosen([](auto const& one) { return stops_by_proof(one); });
  else if constexpr (requires { search.early_stopping.rule; })
    return search.early_stopping.rule == decltype(search.early_stopping.rule)::exact;
  else if constexpr (requires { search.beam.slot_count(); }) return stops_by_proof(search.beam);
  else if constexpr (requires { search.search.slot_count(); }) return stops_by_proof(search.search);
  else return false;
}

}  // namespace sluice::inline v0::detail
