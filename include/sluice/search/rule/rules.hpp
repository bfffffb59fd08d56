// SPDX-License-Identifier: Apache-2.0
/// \file
/// Common rules for Ruled<search, rule>: those here, and Forbidden for phrases. All of them are off by default.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/search/rule/forbidden.hpp>
#include <sluice/search/rule/penalties.hpp>
#include <sluice/search/rule/ruled.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

struct Stateless {};
inline void require_inside(std::span<Token const> tokens, Sentence const& sentence, char const* name) {
  for (auto const token : tokens)
    require(sentence.vocabulary->contains(token), name, token,
            "is outside the vocabulary of " + std::to_string(sentence.vocabulary->size));
}

}  // namespace detail

/// Tokens that are never generated (suppress_tokens, bad_words of one token, no `<unk>`).
struct ForbidTokens {
  std::vector<Token> tokens{};

  using State = detail::Stateless;
  State initial(Sentence const& sentence) const {
    return detail::require_inside(tokens, sentence, "forbidden token"), State{};
  }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>& edits) const {
    for (auto const token : tokens) edits.push_back(Edit::forbid(token));
  }
};

/// Tokens that must not be the first one chosen, at the beginning or after a forced prefix (begin_suppress_tokens).
struct ForbidFirst {
  std::vector<Token> tokens{};

  using State = detail::Stateless;
  State initial(Sentence const& sentence) const {
    return detail::require_inside(tokens, sentence, "forbidden first token"), State{};
  }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    if (output.tokens.size() != output.prefix) return;
    for (auto const token : tokens) edits.push_back(Edit::forbid(token));
  }
};

/// No n-gram occurs twice in one output, forced prefix included (Paulus et al. 2017; no_repeat_ngram_size).
struct NoRepeatNgram {
  std::int32_t n = 0;  ///< 0 = off; 1: no token twice

  void check() const { require(n >= 0, "no_repeat_ngram.n", n, "must not be negative"); }
  using State = detail::Stateless;
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    auto const length = static_cast<std::size_t>(n);
    auto const& t = output.tokens;
    if (n == 0 || t.size() < length) return;
    auto const end = t.last(length - 1);
    for (std::size_t i = 0; i + length <= t.size(); ++i)
      if (std::equal(end.begin(), end.end(), t.begin() + static_cast<std::ptrdiff_t>(i)))
        edits.push_back(Edit::forbid(t[i + length - 1]));
  }
};

/// Makes every token that already occurs in the output less likely (Keskar et al. 2019, CTRL): a positive score is
/// divided, a negative one multiplied, once regardless of how often it occurs.
struct RepetitionPenalty {
  float penalty = 1;  ///< > 0; 1 = off; more than 1 discourages

  void check() const {
    require(penalty > 0 && std::isfinite(penalty), "repetition_penalty", penalty, "must be a number > 0");
  }
  using State = detail::Stateless;
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    Penalties{.repetition = penalty, .window = -1, .prompt = false}.edit({}, output, edits);
  }
};

/// Adds to the scores of some tokens: logit bias; unknown-word penalty ({{unk, -2}}).
struct TokenBias {
  std::vector<std::pair<Token, float>> biases{};  ///< token, added to its score; -infinity forbids

  using State = detail::Stateless;
  State initial(Sentence const& sentence) const {
    for (auto const& [token, bias] : biases) {
      detail::require_inside({&token, 1}, sentence, "token bias");
      require(!std::isnan(bias) && bias < std::numeric_limits<float>::infinity(), "token bias", bias,
              "must be a number");
    }
    return {};
  }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>& edits) const {
    for (auto const& [token, bias] : biases) edits.push_back({token, bias, 1});
  }
};

}  // namespace sluice::inline v0
