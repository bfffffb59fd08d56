// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a wrapper needs to know about the search that it wraps.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/search.hpp>

#include <cstdint>

namespace sluice::inline v0::detail {

/// The `needs` of a wrapper of S: a constant if they are known at compile time, otherwise a function that asks the
/// wrapper's `search`.
template <class Wrapper, class S>
struct NeedsOf {
  Abilities needs() const { return sluice::needs(static_cast<Wrapper const&>(*this).search); }
};
template <class Wrapper, detail::KnownNeeds S>
struct NeedsOf<Wrapper, S> {
  static constexpr Abilities needs = sluice::needs<S>();
};

/// Whether a search may choose among its probes: then a rule's edits apply to them.
template <class S>
consteval bool chooses_probes() {
  if constexpr (requires { S::chooses_probes; }) return S::chooses_probes;
  else return false;
}

/// Whether a search takes for granted that log-probabilities only fall.
template <class S>
consteval bool assumes_falling() {
  if constexpr (requires { S::assumes_falling; }) return S::assumes_falling;
  else return false;
}

/// The maximum number of tokens that a search generates, forced prefix and end included, if it has a member `length`
/// (also in a search that it holds as `beam` or `search`).
template <class S>
std::int32_t most_tokens(S const& search, Sentence const& sentence) {
  if constexpr (requires { search.length.of(sentence).max; }) return search.length.of(sentence).max;
  else if constexpr (requires { search.beam.length; }) return most_tokens(search.beam, sentence);
  else if constexpr (requires { search.search.slot_count(); }) return most_tokens(search.search, sentence);
  else return Limits::unlimited;
}

}  // namespace sluice::inline v0::detail
