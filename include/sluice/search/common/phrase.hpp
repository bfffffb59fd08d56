// SPDX-License-Identifier: Apache-2.0
/// \file
/// What holds for every phrase that an output is to have or not to have.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Tokens in a row. bos may be its first (then it stands at the beginning of the output, and behind any other bos, where
/// Vocabulary::never lets one be generated), eos its last (at the end).
using Phrase = std::vector<Token>;

namespace detail {

/// "[4 5 6]".
inline std::string text(std::span<Token const> phrase) {
  std::string out = "[";
  for (auto const token : phrase) out.append(out.size() > 1 ? " " : "").append(std::to_string(token));
  return out + "]";
}

/// "all[0] [4 5], all[1] [6]".
template <class = void>
std::string text_of(std::string const& name, std::vector<Phrase> const& phrases) {
  std::string all;
  for (std::size_t i = 0; i < phrases.size(); ++i)
    all.append(i == 0 ? "" : ", ").append(name + "[" + std::to_string(i) + "] ").append(text(phrases[i]));
  return all;
}

/// Throws std::invalid_argument, naming the phrase, unless it makes sense in `sentence`; if it is `wanted`, unless it could
/// be generated.
template <class = void>
void check_phrase(Sentence const& sentence, std::string const& name, Phrase const& phrase, bool wanted = true) {
  require(!phrase.empty(), name, text(phrase), "is empty");
  auto const& vocabulary = *sentence.vocabulary;
  for (std::size_t i = 0; i < phrase.size(); ++i) {
    auto const refuse = [&](bool bad, std::string const& why) {
      if (bad) require(false, name, text(phrase), "token " + std::to_string(phrase[i]) + " " + why);
    };
    auto const in = [&](std::vector<Token> const& list) {
      return std::find(list.begin(), list.end(), phrase[i]) != list.end();
    };
    refuse(!vocabulary.contains(phrase[i]), "is outside the vocabulary of " + std::to_string(vocabulary.size));
    auto const bos = phrase[i] == vocabulary.bos;
    if (i == 0 && bos) continue;
    if (i + 1 == phrase.size() && in(vocabulary.eos)) continue;
    refuse(in(vocabulary.eos), "is an end of sentence: it may only be the last of a phrase");
    refuse(bos, "is the beginning of a sentence: it may only be the first of a phrase");
    refuse(wanted && in(vocabulary.never), "is never generated");
  }
}

/// Whether `tokens` has `part` in it, in one piece.
inline bool contains(Phrase const& tokens, Phrase const& part) {
  return std::search(tokens.begin(), tokens.end(), part.begin(), part.end()) != tokens.end();
}

}  // namespace detail

}  // namespace sluice::inline v0
