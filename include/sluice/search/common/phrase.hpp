// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that an output must or must not contain.
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

/// Consecutive tokens. bos may be the first (the phrase then stands at the beginning of the output, and also after any
/// other bos, where Vocabulary::never lets bos be generated). eos may be the last (at the end).
using Phrase = std::vector<Token>;

namespace detail {

/// "[4 5 6]".
template <class = void>
std::string text(std::span<Token const> phrase) {
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

/// Whether check_phrase() would let it pass. Reads each token once, and allocates nothing.
inline bool is_sound(Sentence const& sentence, Phrase const& phrase, bool wanted = true) {
  auto const& vocabulary = *sentence.vocabulary;
  for (std::size_t i = 0; i < phrase.size(); ++i) {
    auto const token = phrase[i];
    auto const in = [&](std::vector<Token> const& list) {
      return std::find(list.begin(), list.end(), token) != list.end();
    };
    if (!vocabulary.contains(token)) return false;
    if (i == 0 && token == vocabulary.bos) continue;
    if (in(vocabulary.eos) ? i + 1 < phrase.size() : token == vocabulary.bos || (wanted && in(vocabulary.never)))
      return false;
  }
  return !phrase.empty();
}

/// Throws std::invalid_argument, naming the phrase, unless it is valid in `sentence` and, if `wanted`, can be
/// generated.
template <class = void>
void check_phrase(Sentence const& sentence, std::string const& name, Phrase const& phrase, bool wanted = true) {
  if (is_sound(sentence, phrase, wanted)) return;
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

/// Whether `tokens` contains `part` as a contiguous sequence.
inline bool contains(Phrase const& tokens, Phrase const& part) {
  return std::search(tokens.begin(), tokens.end(), part.begin(), part.end()) != tokens.end();
}

}  // namespace detail

}  // namespace sluice::inline v0
