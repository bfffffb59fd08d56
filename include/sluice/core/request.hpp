// SPDX-License-Identifier: Apache-2.0
/// \file
/// Request: the input of a decoder.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Which logprobs to return for the choice of every token, as Hypothesis::choices; works with every search. They are of the
/// model's own distribution over the tokens that may be generated, before rules, temperature and truncation. A step with a
/// request that asks runs the expander twice; nothing else changes, and steps without such a request cost nothing more.
struct Confidence {
  bool entropy = false;           ///< the entropy of the distribution, including tokens that are never generated
  std::int32_t alternatives = 0;  ///< how many of the best tokens, and the rank of the chosen one among them; >= 0

  bool asks() const { return entropy || alternatives > 0; }
};

/// One sentence to decode, with options of its own.
template <class Source, class SearchType>
struct Request {
  Source
      source{};  ///< kept until the result is there; if it is a view or a pointer, what it refers to must live until then
  std::vector<Token> prompt{};         ///< fed, not part of the output; empty = bos
  std::vector<Token> prefix{};         ///< the output begins with these
  std::optional<SearchType> search{};  ///< replaces the decoder's search; a copy, so it may go after submit()
  /// Logits processors, applied in order: grammars, stop sequences, penalties, biases, bans, your own
  LogitsProcessorList processors{};
  std::optional<std::uint64_t> seed{};  ///< of its random numbers; by default the request's id
  /// The output has only these tokens, those of its prefix, those that the search needs, and eos; probabilities are over them
  /// only. See ShortlistProjection.
  std::optional<TokenSet> shortlist{};
  std::int32_t direction = 0;  ///< of a multilingual model: goes to the expander unchanged. See ClusteredProjection
  Confidence confidence{};     ///< which logprobs to return; none by default
  bool traced = false;         ///< whether a TraceEach follows it
  /// Whether it takes part in what a model remembers of other requests (SuffixCache). false: its prompt and output are not stored
  /// for others, and its guesses do not come from what others left, so that it runs as if nothing were stored.
  bool remember = true;
};

namespace detail {

SLUICE_LAZY void check_request(std::span<Token const> prompt, std::span<Token const> prefix, TokenSet const* shortlist,
                               Vocabulary const& vocabulary) {
  auto const rule = "is outside the vocabulary of " + std::to_string(vocabulary.size);
  for (auto const token : prompt) require(vocabulary.contains(token), "prompt", token, rule);
  for (auto const token : prefix) require(vocabulary.contains(token), "prefix", token, rule);
  if (shortlist == nullptr) return;
  auto some = false;
  auto const words = shortlist->words();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == 0) continue;
    auto const last = i * 64 + 63 - static_cast<std::size_t>(std::countl_zero(words[i]));
    require(last < static_cast<std::size_t>(vocabulary.size), "shortlist", last, rule);
    some = true;
  }
  require(some, "shortlist", "no token", "must hold one");
}

}  // namespace detail

/// Throws std::invalid_argument if the request names tokens outside the vocabulary.
template <class Source, class SearchType>
void check(Request<Source, SearchType> const& request, Vocabulary const& vocabulary) {
  detail::check_request(request.prompt, request.prefix, request.shortlist ? &*request.shortlist : nullptr, vocabulary);
}

}  // namespace sluice::inline v0
