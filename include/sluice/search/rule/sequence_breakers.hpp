// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sequence breakers of DRY.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/detail/recent_tokens.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Token sequences after which Dry restarts its count. Immutable and shared: a copy costs a reference count.
class SequenceBreakers {
 public:
  SequenceBreakers() = default;
  /// \throws std::invalid_argument  for an empty sequence or a negative token
  template <class = void>
  explicit SequenceBreakers(std::vector<std::vector<Token>> sequences) {
    for (auto const& sequence : sequences) {
      require(!sequence.empty(), "sequence breaker", "an empty one", "breaks nothing");
      for (auto const token : sequence) require(token >= 0, "sequence breaker: token", token, "must not be negative");
    }
    // Of those with the same first token, the longest comes first.
    std::sort(sequences.begin(), sequences.end(), [](auto const& a, auto const& b) {
      if (a[0] != b[0]) return a[0] < b[0];
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
    sequences_ = std::make_shared<std::vector<std::vector<Token>> const>(std::move(sequences));
  }

  /// Every way in which tokens can spell one of `texts`, as llama.cpp finds them (llama_sampler_init_dry): a token that
  /// contains the text, or one whose end is the beginning of the text, followed by the rest as `tokenise` splits it.
  /// Only the first 40 bytes of a text and the first 20 tokens of a rest count. Not reproduced: control tokens have no
  /// bytes here and break nothing.
  /// \param tokenise  (std::string_view) -> std::vector<Token>; without bos and the like
  /// \throws std::invalid_argument  for an empty text
  template <class Tokenise>
  static SequenceBreakers from_text(TokenBytes const& tokens, std::span<std::string const> texts,
                                    Tokenise const& tokenise) {
    constexpr std::size_t most_bytes = 40, most_tokens = 20;
    std::vector<std::vector<Token>> sequences;
    for (std::string_view text : texts) {
      require(!text.empty(), "sequence breaker", "an empty text", "breaks nothing");
      text = text.substr(0, most_bytes);
      for (Token token = 0; token < tokens.size(); ++token) {
        auto const bytes = tokens.bytes(token);
        if (bytes.find(text) != std::string_view::npos) {
          sequences.push_back({token});
          continue;
        }
        for (auto count = (std::min)(bytes.size(), text.size() - 1); count > 0; --count) {
          if (bytes.substr(bytes.size() - count) != text.substr(0, count)) continue;
          auto const rest = tokenise(text.substr(count));
          auto& sequence = sequences.emplace_back(1, token);
          sequence.insert(sequence.end(), rest.begin(),
                          rest.begin() + static_cast<std::ptrdiff_t>((std::min)(rest.size(), most_tokens)));
        }
      }
    }
    return SequenceBreakers(std::move(sequences));
  }

  /// The number of tokens after the longest sequence that begins `i` tokens before the end; -1: none does.
  template <class = void>
  std::ptrdiff_t behind(detail::RecentTokens const& recent, std::size_t i) const {
    for (auto const& sequence : beginning_with(recent.back(i))) {
      if (sequence.size() > i + 1) continue;
      std::size_t k = 1;
      while (k < sequence.size() && sequence[k] == recent.back(i - k)) ++k;
      if (k == sequence.size()) return static_cast<std::ptrdiff_t>(i + 1 - k);
    }
    return -1;
  }
  /// Whether the token is a sequence by itself.
  template <class = void>
  bool contains(Token token) const {
    auto const found = beginning_with(token);
    return !found.empty() && found.back().size() == 1;
  }

 private:
  template <class = void>
  std::span<std::vector<Token> const> beginning_with(Token token) const {
    if (sequences_ == nullptr) return {};
    auto const lower = std::ranges::lower_bound(*sequences_, token, {}, [](auto const& one) { return one[0]; });
    auto upper = lower;
    while (upper != sequences_->end() && (*upper)[0] == token) ++upper;
    return {lower, upper};
  }
  std::shared_ptr<std::vector<std::vector<Token>> const> sequences_;
};

}  // namespace sluice::inline v0
