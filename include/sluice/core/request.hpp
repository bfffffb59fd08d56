// SPDX-License-Identifier: Apache-2.0
/// \file
/// What goes in.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
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

/// What is told of the choice of every token, as Hypothesis::choices, whatever the search. It is the model's own distribution over
/// the tokens that may be generated: rules, temperature and truncation do not show. A step in which somebody asks makes two passes
/// of the expander; nothing else changes, and who does not ask pays nothing.
struct Confidence {
  bool entropy = false;           ///< of the distribution, those tokens included that are never generated
  std::int32_t alternatives = 0;  ///< so many of the best tokens, and the rank of the one taken among them; >= 0

  bool asks() const { return entropy || alternatives > 0; }
};

/// One sentence to decode, with what is special about it.
template <class Source, class SearchType>
struct Request {
  Source source{};
  std::vector<Token> prompt{};          ///< fed, not part of the output; empty = bos
  std::vector<Token> prefix{};          ///< the output begins with these
  std::optional<SearchType> search{};   ///< in place of the decoder's own
  std::optional<std::uint64_t> seed{};  ///< of its random numbers; by default the request's id
  std::optional<TokenSet> shortlist{};  ///< the output holds these tokens only, those of its prefix, of what its search
                                        ///< must have, and the end; probabilities are over them alone. See
                                        ///< ShortlistProjection
  std::int32_t direction = 0;           ///< of a multilingual model: which clusters serve it, see ClusteredProjection
  Confidence confidence{};              ///< what is told of every choice; nothing
};

namespace detail {

inline void check_request(std::span<Token const> prompt, std::span<Token const> prefix, TokenSet const* shortlist,
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
