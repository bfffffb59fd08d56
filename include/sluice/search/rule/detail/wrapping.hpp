// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a wrapper asks of the search that it holds.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/search.hpp>

#include <cstdint>

namespace sluice::inline v0::detail {

/// What a wrapper of S needs: a member where the compiler knows it, else a function that asks the wrapper's `search`.
template <class Wrapper, class S>
struct NeedsOf {
  Abilities needs() const { return sluice::needs(static_cast<Wrapper const&>(*this).search); }
};
template <class Wrapper, KnownNeeds S>
struct NeedsOf<Wrapper, S> {
  static constexpr Abilities needs = sluice::needs<S>();
};

/// Whether a search's probes are tokens that it may choose: then a rule's edits act on them.
template <class S>
consteval bool chooses_probes() {
  if constexpr (requires { S::chooses_probes; }) return S::chooses_probes;
  else return false;
}

/// How many tokens a search generates at most, forced prefix and end included, where it says so by a member `length` (of a
/// search that it holds as `beam` or `search`, too).
template <class S>
std::int32_t most_tokens(S const& search, Sentence const& sentence) {
  if constexpr (requires { search.length.of(sentence).max; }) return search.length.of(sentence).max;
  else if constexpr (requires { search.beam.length; }) return most_tokens(search.beam, sentence);
  else if constexpr (requires { search.search.slot_count(); }) return most_tokens(search.search, sentence);
  else return Limits::unlimited;
}

}  // namespace sluice::inline v0::detail
