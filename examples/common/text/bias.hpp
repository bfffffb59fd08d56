// SPDX-License-Identifier: Apache-2.0
/// \file
/// Boosted phrases as text: from files and requests to a sluice::Bias.
#pragma once

#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/phrase.hpp>

#include <text/lines.hpp>
#include <text/words.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace text {

/// A phrase that outputs should rather contain.
struct BiasTerm {
  std::string phrase;
  float boost = 0;         ///< in nats
  bool per_token = false;  ///< each token of it earns the boost; else the whole phrase
  std::string name;        ///< where it was said, for errors
};

/// \throws InputError  naming the term: an empty phrase, a boost that is NaN or infinite
inline BiasTerm bias_term(std::string_view phrase, float boost, bool per_token, std::string name) {
  BiasTerm term{squeezed(phrase), boost, per_token, std::move(name)};
  if (term.phrase.empty()) throw InputError(term.name + ": the phrase is empty");
  if (!std::isfinite(boost) || std::abs(boost) > 1e6f)
    throw InputError(term.name + ": the boost of '" + term.phrase + "' is no number of at most a million");
  return term;
}

/// Reads a file: phrase, tab, boost of the whole phrase in nats; without tab and boost 1 for each token. Lines that are
/// blank or begin with # say nothing.
/// \throws InputError  naming the line
inline std::vector<BiasTerm> read_bias(std::filesystem::path const& file) {
  std::vector<BiasTerm> terms;
  auto const lines = read_lines(file);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto const& line = lines[i];
    if (line.starts_with('#') || squeezed(line).empty()) continue;
    auto const name = file.string() + ":" + std::to_string(i + 1);
    auto const tab = line.find('\t');
    if (tab == line.npos) {
      terms.push_back(bias_term(line, 1, true, name));
      continue;
    }
    auto const number = squeezed(std::string_view(line).substr(tab + 1));
    float boost = 0;
    auto const* const end = number.data() + number.size();
    auto const read = std::from_chars(number.data(), end, boost);
    if (read.ec != std::errc() || read.ptr != end)
      throw InputError(name + ": '" + number + "' is not a number: phrase, tab, boost");
    terms.push_back(bias_term(std::string_view(line).substr(0, tab), boost, false, name));
  }
  return terms;
}

/// The phrase as it is, and with a capital as at the beginning of a sentence.
inline std::vector<std::string> cases(std::string const& phrase) {
  std::vector<std::string> all{phrase};
  if (auto capital = with_first(phrase, upper); capital != phrase) all.push_back(std::move(capital));
  return all;
}

/// The spellings of a phrase within a text, with a space before it and without. \param tokens  of a text
template <class Tokens>
std::vector<sluice::Phrase> spellings_within(std::string const& phrase, Tokens const& tokens) {
  std::vector<sluice::Phrase> all;
  auto const spell = [&](std::string const& text) -> sluice::Phrase {
    try {
      return tokens(text);
    } catch (std::invalid_argument const&) {  // llama.cpp, where a byte has no token
      return {};
    }
  };
  std::string before = "\n";  // so that the tokenizer adds no space of its own
  auto const anchor = spell(before);
  if (anchor.empty()) before.clear();
  for (auto const& text : {" " + phrase, phrase}) {
    auto spelling = spell(before + text);
    if (spelling.size() <= anchor.size() || !std::equal(anchor.begin(), anchor.end(), spelling.begin())) continue;
    spelling.erase(spelling.begin(), spelling.begin() + std::ssize(anchor));
    if (std::find(all.begin(), all.end(), spelling) == all.end()) all.push_back(std::move(spelling));
  }
  return all;
}

/// \param spell  called with a text: its tokens in each way that the tokenizer may cut it; none: it cannot be spelt
/// \throws InputError  naming a phrase that cannot be spelt
template <class Spell>
sluice::Bias make_bias(std::vector<BiasTerm> const& terms, bool once, Spell const& spell) {
  if (terms.empty()) return {};
  std::vector<sluice::BiasedPhrase> phrases;
  for (auto const& term : terms) {
    auto& phrase = phrases.emplace_back();
    (term.per_token ? phrase.per_token : phrase.whole) = term.boost;
    for (auto const& text : cases(term.phrase))
      for (auto& spelling : spell(text)) phrase.spellings.push_back(std::move(spelling));
    if (phrase.spellings.empty())
      throw InputError(term.name + ": '" + term.phrase + "' cannot be spelt with the tokens of this model");
  }
  return sluice::Bias(phrases, {.once = once});
}

}  // namespace text
