// SPDX-License-Identifier: Apache-2.0
/// \file
/// SearchFacts of a type of search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/falling.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstdint>

namespace sluice::inline v0::detail {

/// Whether a search may choose among its probes: then edits apply to them.
template <class S>
consteval bool chooses_probes() {
  if constexpr (requires { S::chooses_probes; }) return S::chooses_probes;
  else return false;
}

/// Whether a search takes for granted that log-probabilities only fall, but from any start, and may begin all outputs at a bonus
/// that is taken back token by token.
template <class S>
consteval bool bears_bonus() {
  if constexpr (requires { S::bears_bonus; }) return S::bears_bonus;
  else return false;
}

/// Whether a search holds processors that end outputs.
template <class S>
bool ends_outputs(S const& search) {
  if constexpr (HoldsChosen<S>) return search.chosen([](auto const& one) { return ends_outputs(one); });
  else if constexpr (requires { search.ends_outputs(); }) return search.ends_outputs();
  else return false;
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

/// Of how many candidates of a step a search asks Expansion::stop.
template <class S>
std::int32_t stops_asked(S const& search, Sentence const& sentence) {
  if constexpr (HoldsChosen<S>) return search.chosen([&](auto const& one) { return stops_asked(one, sentence); });
  else if constexpr (requires { search.stops_asked(sentence); }) return search.stops_asked(sentence);
  else return 0;
}

/// Whether the tokens that a search chooses are those of its outputs; not so over frames.
template <class S>
consteval bool takes_processors() {
  if constexpr (requires { S::takes_processors; }) return S::takes_processors;
  else return true;
}

template <class S>
SearchFacts facts_of(S const& search, Sentence const& sentence) {
  SearchFacts facts{.takes_processors = takes_processors<S>(),
                    .takes_prefix = takes_prefix<S>(),
                    .goes_back = goes_back<S>(),
                    .drafts = DraftingSearch<S>,
                    .chooses_probes = chooses_probes<S>(),
                    .assumes_falling = assumes_falling<S>(),
                    .bears_bonus = bears_bonus<S>(),
                    .stops_by_proof = stops_by_proof(search),
                    .ends_unasked = ends_unasked(search),
                    .ends_outputs = ends_outputs(search),
                    .most = most_tokens(search, sentence),
                    .stops_asked = stops_asked(search, sentence)};
  if constexpr (requires { search.block; }) facts.block = search.block;
  return facts;
}

}  // namespace sluice::inline v0::detail
