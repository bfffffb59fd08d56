// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a wrapper needs to know about the search that it wraps.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/falling.hpp>
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

/// Whether a search takes for granted that they only fall, but from any start, and may begin all outputs at a bonus that
/// is taken back token by token.
template <class S>
consteval bool bears_bonus() {
  if constexpr (requires { S::bears_bonus; }) return S::bears_bonus;
  else return false;
}

/// Whether S, or a search within, is one whose rule ends outputs.
template <class S>
consteval bool ends_outputs() {
  auto its_own = false, inside = false;
  if constexpr (requires { S::ends; }) its_own = S::ends;
  if constexpr (requires { typename S::Wrapped; }) inside = ends_outputs<typename S::Wrapped>();
  return its_own || inside;
}

/// Whether a search's options end outputs of the maximum length in an eos that it does not ask for.
template <class S>
bool ends_unasked(S const& search) {
  if constexpr (HoldsChosen<S>) return search.chosen([](auto const& one) { return ends_unasked(one); });
  else if constexpr (requires { decltype(search.at_maximum)::force_eos_free; })
    return search.at_maximum == decltype(search.at_maximum)::force_eos_free;
  else if constexpr (requires { search.beam.slot_count(); }) return ends_unasked(search.beam);
  else if constexpr (requires { search.search.slot_count(); }) return ends_unasked(search.search);
  else return false;
}

/// The maximum number of tokens that a search generates, forced prefix and end included, if it has a member `length`
/// (also in a search that it holds as `beam` or `search`).
template <class S>
std::int32_t most_tokens(S const& search, Sentence const& sentence) {
  if constexpr (HoldsChosen<S>) return search.chosen([&](auto const& one) { return most_tokens(one, sentence); });
  else if constexpr (requires { search.length.of(sentence).max; }) return search.length.of(sentence).max;
  else if constexpr (requires { search.beam.length; }) return most_tokens(search.beam, sentence);
  else if constexpr (requires { search.search.slot_count(); }) return most_tokens(search.search, sentence);
  else return Limits::unlimited;
}

}  // namespace sluice::inline v0::detail
