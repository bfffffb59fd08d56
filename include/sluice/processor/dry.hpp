// SPDX-License-Identifier: Apache-2.0
/// \file
/// DRY: a penalty for continuing a repetition, and the sequence breakers that it restarts at.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/detail/recent_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
  SLUICE_LAZY explicit SequenceBreakers(std::vector<std::vector<Token>> sequences) {
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
  SLUICE_LAZY std::ptrdiff_t behind(detail::RecentTokens const& recent, std::size_t i) const {
    for (auto const& sequence : beginning_with(recent.back(i))) {
      if (sequence.size() > i + 1) continue;
      std::size_t k = 1;
      while (k < sequence.size() && sequence[k] == recent.back(i - k)) ++k;
      if (k == sequence.size()) return static_cast<std::ptrdiff_t>(i + 1 - k);
    }
    return -1;
  }
  /// Whether the token is a sequence by itself.
  SLUICE_LAZY bool contains(Token token) const {
    auto const found = beginning_with(token);
    return !found.empty() && found.back().size() == 1;
  }

 private:
  SLUICE_LAZY std::span<std::vector<Token> const> beginning_with(Token token) const {
    if (sequences_ == nullptr) return {};
    auto const lower = std::ranges::lower_bound(*sequences_, token, {}, [](auto const& one) { return one[0]; });
    auto upper = lower;
    while (upper != sequences_->end() && (*upper)[0] == token) ++upper;
    return {lower, upper};
  }
  std::shared_ptr<std::vector<std::vector<Token>> const> sequences_;
};

/// "Don't repeat yourself" (p-e-w 2024, text-generation-webui; as llama.cpp's llama_sampler_init_dry). If a token
/// followed the n last tokens earlier in the window, with n >= allowed_length, its score is reduced by multiplier *
/// base^(n - allowed_length), where n is the largest for it. Repetitions do not extend across a sequence breaker, and
/// tokens that are breakers themselves are not penalised. Off by default.
///
/// O(w log w) per line, with w the number of tokens in the window.
struct Dry {
  float multiplier = 0;             ///< >= 0; 0 = off
  float base = 1.75f;               ///< >= 1
  std::int32_t allowed_length = 2;  ///< >= 0
  std::int32_t window = 64;         ///< number of most recent tokens to look at; 0 = off; -1 = all; llama.cpp:
                                    ///< dry_penalty_last_n
  bool prompt = true;               ///< whether to include the prompt, as llama.cpp does
  SequenceBreakers breakers{};      ///< llama.cpp: from_text with "\n", ":", "\"" and "*"

  SLUICE_LAZY void check() const {
    require(multiplier >= 0 && std::isfinite(multiplier), "dry.multiplier", multiplier, "must be a number >= 0");
    require(base >= 1 && std::isfinite(base), "dry.base", base, "must be a number >= 1");
    require(allowed_length >= 0, "dry.allowed_length", allowed_length, "must not be negative");
    detail::require_window("dry.window", window);
  }
  using State = detail::SeenPrompt;
  State initial(Sentence const& sentence) const { return prompt ? State{sentence.prompt} : State{}; }
  State next(State state, Token) const { return state; }
  SLUICE_LAZY void edit(State state, Output const& output, std::vector<Edit>& edits) const;

 private:
  SLUICE_LAZY static void count_repeats(detail::RecentTokens const& recent, std::size_t limit, Edit* counts);
};

template <class Void>
void Dry::edit(State state, Output const& output, std::vector<Edit>& edits) const {
  if (multiplier == 0 || window == 0) return;
  detail::RecentTokens const recent(state.prompt, output.tokens, window);
  auto const n = recent.size(), allowed = static_cast<std::size_t>(allowed_length);
  if (n <= allowed) return;
  auto limit = n;
  for (std::size_t i = 0; i < n; ++i) {
    auto const behind = breakers.behind(recent, i);
    if (behind < 0) continue;
    limit = static_cast<std::size_t>(behind);
    break;
  }
  if (limit < allowed) return;

  // The new end of `edits` is used as scratch memory: first for counts, then for the tokens that follow.
  auto const first = edits.size();
  edits.resize(first + n);
  count_repeats(recent, limit, edits.data() + first);
  auto end = first;
  for (std::size_t k = 1; k < n; ++k) {
    auto const repeats = edits[first + k].token;
    auto const token = recent.back(k - 1);
    if (repeats < allowed_length || breakers.contains(token) || !output.vocabulary.contains(token)) continue;
    edits[end++] = {token, static_cast<float>(repeats)};
  }
  edits.resize(end);
  auto const begin = edits.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, edits.end(),
            [](Edit const& a, Edit const& b) { return a.token != b.token ? a.token < b.token : a.add > b.add; });
  edits.erase(std::unique(begin, edits.end(), [](Edit const& a, Edit const& b) { return a.token == b.token; }),
              edits.end());

  constexpr auto largest = 88.7228391f;  // logarithm of the largest float
  auto const most = base > 1.000001f ? static_cast<std::int32_t>(largest / std::log(base)) : 0;
  for (auto i = first; i < edits.size(); ++i) {
    auto exponent = static_cast<std::int32_t>(edits[i].add) - allowed_length;
    if (most > 0) exponent = (std::min)(exponent, most);
    auto const penalty = static_cast<double>(multiplier) * std::pow(static_cast<double>(base), exponent);
    edits[i].add = -static_cast<float>(penalty);
  }
}

/// Sets counts[k].token, k from 1, to the length of the longest match between the tokens that end at the k-th from the
/// end, itself included, and the last tokens; at most `limit`. The Z-algorithm, run backwards: O(n).
template <class Void>
void Dry::count_repeats(detail::RecentTokens const& recent, std::size_t limit, Edit* counts) {
  auto const n = recent.size();
  std::size_t left = 0, right = 0;  // the last matching stretch, right exclusive
  for (std::size_t k = 1; k < n; ++k) {
    std::size_t length = 0;
    if (k < right) length = (std::min)(static_cast<std::size_t>(counts[k - left].token), right - k);
    // A count cut at the limit is too low; extending it here finds the same value again.
    if (k >= right || length == right - k) {
      while (k + length < n && recent.back(length) == recent.back(k + length)) ++length;
      if (length > 0) left = k, right = k + length;
    }
    counts[k].token = static_cast<Token>((std::min)(length, limit));
  }
}

}  // namespace sluice::inline v0
