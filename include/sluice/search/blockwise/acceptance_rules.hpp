// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rules by which a Blockwise accepts the guesses of a block: sluice::acceptance.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/acceptance.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/sample/sample.hpp>
#include <sluice/search/sample/truncation.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace sluice::inline v0 {
namespace acceptance {

/// Accepts guesses among the n best tokens (section 5.1).
struct TopK {
  std::int32_t n = 2;

  static constexpr bool lossless = false;
  void check() const { require(n >= 1, "accept.n", n, "must be at least 1"); }
  void ask(Query& query, std::uint64_t, std::int32_t, std::int32_t) const {
    query.best = n, query.stage = Stage::after_softmax;
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    return line.best.empty() ? Candidate{-1, 0} : line.best[0];
  }
  bool accepts(Line const& line, Candidate, Token guess) const {
    return std::any_of(line.best.begin(), line.best.end(), [&](Candidate c) { return c.token == guess; });
  }
};

/// Accepts guesses at most epsilon from the best token, for tokens that are intensities (section 5.2).
struct Distance {
  std::int32_t epsilon = 2;

  static constexpr bool lossless = false;
  void check() const { require(epsilon >= 0, "accept.epsilon", epsilon, "must not be negative"); }
  void ask(Query& query, std::uint64_t, std::int32_t, std::int32_t) const {
    query.best = 1, query.stage = Stage::after_softmax;
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    return line.best.empty() ? Candidate{-1, 0} : line.best[0];
  }
  bool accepts(Line const&, Candidate own, Token guess) const {
    return own.token >= 0 && std::abs(static_cast<std::int64_t>(guess) - own.token) <= epsilon;
  }
};

/// The output is that of Sample with the same options and the same seed. At each position the model draws with the noise
/// that Sample would use, and a guess is accepted if it equals the token drawn. So outputs follow the model's own
/// distribution for any draft (the guarantee of Leviathan et al. 2023 and Chen et al. 2023). A draft that draws with
/// the same noise (WithDraft with this rule) is accepted more often than one that takes its best token. So it is under a
/// Watermark: the output carries the marks of Sample's.
struct Sampling {
  float temperature = 1;    ///< as in Sample; > 0
  Truncation truncation{};  ///< as in Sample, whose fields top_k, top_p, min_p and typical it gathers
  Watermark watermark{};    ///< as in Sample

  static constexpr bool lossless = true;
  void check() const {
    require(temperature > 0 && std::isfinite(temperature), "accept.temperature", temperature, "must be a number > 0");
    truncation.check(), watermark.check();
  }
  void ask(Query& query, std::uint64_t seed, std::int32_t position, std::int32_t vocabulary_size) const {
    query.temperature = temperature;
    if (truncation.off()) query.best = 1, query.noise = Sample::noise(seed, 0, position);
    else truncation.ask(query, vocabulary_size);
  }
  template <class = void>
  Candidate own(Line const& line, std::uint64_t seed, std::int32_t position, std::vector<Candidate>& scratch) const {
    auto const list = truncation.apply(line.best, scratch);
    return list.empty() ? Candidate{-1, 0} : draw(list, Sample::noise(seed, 0, position));
  }
  bool accepts(Line const&, Candidate own, Token guess) const { return guess == own.token; }

  template <class = void>
  detail::Marker marker() const {
    return detail::Marker(watermark);
  }
  detail::MarkScratch mark_scratch() const { return {}; }
  /// The mark of token `position`, before which the output is `text`, prefix included; a draft's guess has the same.
  template <class = void>
  detail::Mark mark(detail::Marker const& marker, std::span<Token const> text, std::uint64_t seed,
                    std::int32_t position) const {
    return marker.mark(text, Sample::noise(seed, 0, position));
  }
  template <class = void>
  detail::Mark draft_mark(detail::Marker const& marker, std::span<Token const> text, std::uint64_t seed,
                          std::int32_t position) const {
    return mark(marker, text, seed, position);
  }
  /// Changes the query of ask() for a token with that mark.
  template <class = void>
  void ask_marked(Query& query, detail::Marker const& marker, detail::Mark const& mark,
                  std::int32_t vocabulary_size) const {
    if (!mark.marked) return;
    if (marker.by_noise() && truncation.off()) query.noise = mark.place.noise;
    else query.noise = 0, truncation.ask(query, vocabulary_size);
  }
  /// own() for such a token.
  template <class = void>
  Candidate own_marked(Line const& line, std::uint64_t seed, std::int32_t position, std::vector<Candidate>& scratch,
                       detail::Marker const& marker, detail::Mark const& mark, detail::MarkScratch& weights) const {
    auto const list = truncation.apply(line.best, scratch);
    if (list.empty()) return {-1, 0};
    auto const noise = Sample::noise(seed, 0, position);
    if (list.size() == 1) return list[0];
    if (!mark.marked || marker.by_noise()) return draw(list, marker.noise(mark, noise));
    return list[marker.draw(list, mark, noise, weights)];
  }
};

}  // namespace acceptance

namespace detail {

/// A rule whose tokens may be marked.
template <class A>
concept MarkingAcceptance = requires(A const& rule) {
  rule.marker();
};
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

/// Scratch memory of a rule, if it needs any.
template <class A>
struct ScratchOf {};
template <class A>
  requires requires { typename A::Scratch; }
struct ScratchOf<A> : A::Scratch {};

}  // namespace detail

}  // namespace sluice::inline v0
