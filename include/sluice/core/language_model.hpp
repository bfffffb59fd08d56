// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a language model beside a search over frames is, and how much it counts.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cmath>
#include <concepts>

namespace sluice::inline v0 {

// clang-format off
/// A language model beside what is seen or heard: adds to the score of a text when a token follows. `State` is a small value that
/// follows the text. NGramModel, WordModel and LexiconNGrams are some, for the member `language_model` of the searches over frames.
///
/// A Model is one in two ways. Beside frames WithLanguageModel runs it, and the search's `language_model` is FusionWeights. Beside any
/// other model Fused adds the two up. NGramModel and WordModel are Models too.
///
///  - `initial(sentence)`: the state of the empty text. The sentence's vocabulary is that of texts: labels, with the blank as eos. Throws
///    std::invalid_argument for a vocabulary that does not suit;
///  - `next(state, token)`: the state after `token`;
///  - `score(state, token)`: what is added when `token` follows; -infinity forbids. Asked at most once for each prefix and token;
///  - `end(state)`: what is added when the text ends; -infinity: it may not;
///  - `most(state)`: an upper bound of score() for every token; infinity is one, but the search is slower then;
///  - `check()`, optional: throws std::invalid_argument for invalid options.
template <class L>
concept LanguageModel = std::copyable<typename L::State> && std::default_initializable<typename L::State> &&
  requires(L const& model, typename L::State const& state, Sentence const& sentence, Token token) {
    { model.initial(sentence) } -> std::same_as<typename L::State>;
    { model.next(state, token) } -> std::same_as<typename L::State>;
    { model.score(state, token) } -> std::same_as<float>;
    { model.end(state) } -> std::same_as<float>;
    { model.most(state) } -> std::same_as<float>;
  };
// clang-format on

/// How much a language model counts in a search over frames: score = log p(text | frames) + weight * log p(text) + bonus * its length.
/// Alone it is the search's `language_model` if the search's model is a WithLanguageModel (its lines have the scores): each new prefix of
/// the beam is one row, those of all utterances of a step in one call. The end then adds weight * that of the language model's eos.
struct FusionWeights {
  /// Of the language model's log-probability (natural); >= 0. Tuned weights are mostly 0.2 to 0.6, since the frames already say
  /// most of it; with 1, the text of a language model that does not fit wins over what was heard or seen.
  double weight = 0.3;
  double bonus = 0;    ///< for each token, or word of a language model of words
  double unknown = 0;  ///< added to the log-probability of each token or word that an n-gram table has not

  SLUICE_LAZY void check() const {
    require(weight >= 0 && std::isfinite(weight), "weights.weight", weight, "must be a number >= 0");
    require(std::isfinite(bonus), "weights.bonus", bonus, "must be a number");
    require(std::isfinite(unknown), "weights.unknown", unknown, "must be a number");
  }
};

}  // namespace sluice::inline v0
