// SPDX-License-Identifier: Apache-2.0
/// \file
/// The vocabulary as a trie of the tokens' bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The tokens of a vocabulary as a trie of their bytes, made once for all grammars of a model. Tokens without bytes, eos tokens and
/// tokens never generated are left out.
///
/// Immutable and shared: a copy costs a reference count. About 14 bytes per node, and about three nodes per token.
class TokenTrie : detail::TokenNodes {
 public:
  /// Has no tokens.
  TokenTrie() = default;
  /// \param names  of tokens without bytes (control tokens), for grammars that name them: <|im_end|> and the like
  /// \throws std::invalid_argument  for an invalid vocabulary or one without eos, if `bytes` has another number of
  ///     tokens, or for a name of a token that the vocabulary does not have
  SLUICE_LAZY TokenTrie(TokenBytes const& bytes, Vocabulary const& vocabulary,
                        std::vector<std::pair<std::string, Token>> names = {})
      : TokenNodes(bytes, vocabulary, std::move(names)) {}

  bool empty() const { return TokenNodes::empty(); }
  /// A token's bytes, as given.
  std::string_view bytes(Token token) const { return TokenNodes::bytes(token); }
  /// The bytes of a token, or the name of one without: for readers of texts that control tokens mark.
  std::string_view spelling(Token token) const { return TokenNodes::spelling(token); }

  /// For the library.
  detail::TokenNodes const& data() const { return *this; }
};

}  // namespace sluice::inline v0
