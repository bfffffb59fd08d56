// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the rules acceptance::Sampling and acceptance::Rejection draw tokens under a watermark.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/watermark/detail/marker.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A rule whose tokens may be marked.
template <class A>
concept MarkingAcceptance = std::same_as<A, acceptance::Sampling> || std::same_as<A, acceptance::Rejection>;

SLUICE_LAZY inline Marker marker_of(acceptance::Sampling const& rule) { return Marker(rule.sample.watermark); }
SLUICE_LAZY inline Marker marker_of(acceptance::Rejection const& rule) { return Marker(rule.watermark); }

/// The mark of token `position`, before which the output is `text`, prefix included.
SLUICE_LAZY inline Mark mark_of(acceptance::Sampling const&, Marker const& marker, std::span<Token const> text,
                                std::uint64_t seed, std::int32_t position) {
  return marker.mark(text, Sample::noise(seed, 0, position));
}
SLUICE_LAZY inline Mark mark_of(acceptance::Rejection const&, Marker const& marker, std::span<Token const> text,
                                std::uint64_t, std::int32_t) {
  return marker.mark_with(text, true);
}
/// That of a draft's guess for this token.
SLUICE_LAZY inline Mark draft_mark_of(acceptance::Sampling const& rule, Marker const& marker,
                                      std::span<Token const> text, std::uint64_t seed, std::int32_t position) {
  return mark_of(rule, marker, text, seed, position);
}
SLUICE_LAZY inline Mark draft_mark_of(acceptance::Rejection const&, Marker const& marker, std::span<Token const> text,
                                      std::uint64_t, std::int32_t) {
  return marker.mark_with(text, false);
}

/// Changes the query of the rule's ask() for a token with that mark.
SLUICE_LAZY inline void ask_marked(acceptance::Sampling const& rule, Query& query, Marker const& marker,
                                   Mark const& mark, std::int32_t vocabulary_size) {
  if (!mark.marked) return;
  auto const truncation = SamplerChain<Sample const&>{rule.sample}.truncation();
  if (marker.by_noise() && truncation.off()) query.noise = mark.place.noise;
  else query.noise = 0, truncation.ask(query, vocabulary_size);
}
SLUICE_LAZY inline void ask_marked(acceptance::Rejection const&, Query& query, Marker const& marker, Mark const& mark,
                                   std::int32_t) {
  query.noise = marker.noise(mark, query.noise);
}

/// The rule's own() for such a token.
SLUICE_LAZY inline Candidate own_marked(acceptance::Sampling const& rule, Line const& line, std::uint64_t seed,
                                        std::int32_t position, std::vector<Candidate>& scratch, Marker const& marker,
                                        Mark const& mark, MarkScratch& weights) {
  auto const list = SamplerChain<Sample const&>{rule.sample}.truncation().apply(line.best, scratch);
  if (list.empty()) return {-1, 0};
  auto const noise = Sample::noise(seed, 0, position);
  if (list.size() == 1) return list[0];
  if (!mark.marked || marker.by_noise()) return draw(list, marker.noise(mark, noise));
  return list[marker.draw(list, mark, noise, weights)];
}
SLUICE_LAZY inline Candidate own_marked(acceptance::Rejection const& rule, Line const& line, std::uint64_t seed,
                                        std::int32_t position, std::vector<Candidate>& scratch, Marker const&,
                                        Mark const&, MarkScratch&) {
  return rule.own(line, seed, position, scratch);
}

/// What such a rule needs in a search's State; nothing for others.
template <class A>
struct MarksOf {};
template <MarkingAcceptance A>
struct MarksOf<A> {
  Marker marker;
  std::vector<Token> text;  // of the output, prefix included
  std::vector<Token> path;  // the same, and guesses
  MarkScratch weights;
};

}  // namespace sluice::inline v0::detail
