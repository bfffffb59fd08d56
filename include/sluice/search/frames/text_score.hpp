// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a language model in a search over frames is.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/rule.hpp>

#include <cmath>
#include <concepts>
#include <vector>

namespace sluice::inline v0 {

// clang-format off
/// A language model inside a search over frames: adds to the score of a prefix when a token follows. `State` is a small value that
/// follows the prefix.
///
///  - `initial(sentence)`: the state of the empty text. The sentence's vocabulary is that of texts: labels, with the blank as eos. Throws
///    std::invalid_argument for a vocabulary that does not suit;
///  - `next(state, token)`: the state after `token`;
///  - `score(state, token)`: what is added when `token` follows; -infinity forbids. Asked at most once for each prefix and token;
///  - `end(state)`: what is added when the text ends; -infinity: it may not;
///  - `most(state)`: an upper bound of score() for every token; infinity is one, but the search is slower then;
///  - `check()`, optional: throws std::invalid_argument for invalid options.
template <class L>
concept TextScore = std::copyable<typename L::State> && std::default_initializable<typename L::State> &&
  requires(L const& model, typename L::State const& state, Sentence const& sentence, Token token) {
    { model.initial(sentence) } -> std::same_as<typename L::State>;
    { model.next(state, token) } -> std::same_as<typename L::State>;
    { model.score(state, token) } -> std::same_as<float>;
    { model.end(state) } -> std::same_as<float>;
    { model.most(state) } -> std::same_as<float>;
  };
// clang-format on

/// No rule, or no language model.
struct NoRule {
  struct State {};
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  float score(State, Token) const { return 0; }
  float end(State) const { return 0; }
  float most(State) const { return 0; }
};

/// How much a language model counts: score = log p(text | frames) + weight * log p(text) + bonus * its length.
struct FusionWeights {
  double weight = 1;   ///< of the language model's log-probability (natural); >= 0
  double bonus = 0;    ///< for each token, or word of a language model of words
  double unknown = 0;  ///< added to the log-probability of each token or word that the language model has not

  template <class = void>
  void check() const {
    require(weight >= 0 && std::isfinite(weight), "weights.weight", weight, "must be a number >= 0");
    require(std::isfinite(bonus), "weights.bonus", bonus, "must be a number");
    require(std::isfinite(unknown), "weights.unknown", unknown, "must be a number");
  }
};

}  // namespace sluice::inline v0
