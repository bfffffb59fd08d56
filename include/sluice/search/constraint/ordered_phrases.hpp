// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that must occur in an output in the given order.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/phrase.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Every phrase must occur, each after the one before it, with anything in between. Phrases that are met stay met; a
/// phrase that breaks off falls back to its own longest prefix (Knuth, Morris and Pratt 1977). Progress: the tokens of
/// the phrases met, plus the length of the next phrase's prefix that ends the output. next() is O(1) amortised.
class OrderedPhrases {
 public:
  struct State {
    std::int32_t phrase = 0;  // the next to match
    std::int32_t depth = 0;   // its tokens matched so far
    std::int32_t credit = 0;  // tokens of the phrases met
  };

  OrderedPhrases() = default;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  template <class = void>
  explicit OrderedPhrases(std::vector<Phrase> phrases, std::string name = "ordered") {
    if (phrases.empty()) return;
    auto data = std::make_shared<Data>();
    data->phrases = std::move(phrases), data->name = std::move(name);
    for (auto const& phrase : data->phrases) {
      data->total += static_cast<std::int32_t>(phrase.size());
      data->borders.push_back(borders(phrase));
    }
    data_ = std::move(data);
  }
  template <class = void>
  OrderedPhrases(std::initializer_list<Phrase> phrases) : OrderedPhrases(std::vector<Phrase>(phrases)) {}

  /// \throws std::invalid_argument  naming the phrase: an empty one, a token outside the vocabulary or never generated,
  ///     eos anywhere but at the end, bos anywhere but at the beginning
  template <class = void>
  State initial(Sentence const& sentence) const {
    for (std::size_t i = 0; i < phrases().size(); ++i) {
      auto const& phrase = phrases()[i];
      auto const name = data_->name + "[" + std::to_string(i) + "]";
      detail::check_phrase(sentence, name, phrase);
      require(i + 1 == phrases().size() || !sentence.vocabulary->ends(phrase.back()), name, detail::text(phrase),
              "ends the sentence, but a phrase is to follow");
      require(i == 0 || phrase.front() != sentence.vocabulary->bos, name, detail::text(phrase),
              "begins the sentence, but a phrase is to come before");
    }
    return next({}, sentence.vocabulary->bos);
  }

  template <class = void>
  State next(State state, Token token) const {
    if (at(state.phrase) >= phrases().size()) return state;
    auto const& phrase = phrases()[at(state.phrase)];
    while (phrase[at(state.depth)] != token) {
      if (state.depth == 0) return state;
      state.depth = data_->borders[at(state.phrase)][at(state.depth) - 1];
    }
    if (at(++state.depth) == phrase.size()) state.credit += state.depth, state.depth = 0, ++state.phrase;
    return state;
  }

  std::int32_t progress(State const& state) const { return state.credit + state.depth; }
  std::int32_t total() const { return data_ == nullptr ? 0 : data_->total; }
  template <class = void>
  bool complete(State const& state) const {
    return state.phrase == count();
  }
  bool dead(State const&) const { return false; }
  template <class = void>
  void wanted(State const& state, std::vector<Token>& tokens) const {
    if (!complete(state)) tokens.push_back(phrases()[at(state.phrase)][at(state.depth)]);
  }

  std::int32_t begun(State const& state) const { return state.depth; }
  std::int32_t remaining(State const& state) const { return total() - progress(state); }
  bool trivial() const { return data_ == nullptr; }
  std::int32_t met(State const& state) const { return state.phrase; }
  template <class = void>
  std::int32_t count() const {
    return static_cast<std::int32_t>(phrases().size());
  }
  template <class = void>
  void insert_into(TokenSet& set) const {
    for (auto const& phrase : phrases())
      for (auto const token : phrase)
        if (token >= 0) set.insert(token);
  }
  template <class = void>
  std::string text() const {
    return detail::text_of(data_ == nullptr ? "" : data_->name, phrases());
  }
  /// The phrases as given.
  template <class = void>
  std::vector<Phrase> const& phrases() const {
    static std::vector<Phrase> const none;
    return data_ == nullptr ? none : data_->phrases;
  }

 private:
  struct Data {
    std::vector<Phrase> phrases;
    std::vector<std::vector<std::int32_t>> borders;  // of each phrase
    std::string name;
    std::int32_t total = 0;
  };

  /// [i]: the length of the longest proper prefix of the first i + 1 tokens that is also their suffix.
  template <class = void>
  static std::vector<std::int32_t> borders(Phrase const& phrase) {
    std::vector<std::int32_t> border(phrase.size());
    auto k = std::int32_t{0};
    for (std::size_t i = 1; i < phrase.size(); ++i) {
      while (k > 0 && phrase[at(k)] != phrase[i]) k = border[at(k) - 1];
      if (phrase[at(k)] == phrase[i]) ++k;
      border[i] = k;
    }
    return border;
  }
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::shared_ptr<Data const> data_;
};

}  // namespace sluice::inline v0
