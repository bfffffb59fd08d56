// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that an output must not contain.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/phrase.hpp>
#include <sluice/search/common/phrase_matcher.hpp>
#include <sluice/search/rule/ruled.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// None of these phrases may occur (bad_words, suppress_sequences): the token that would complete one is forbidden. A
/// phrase may begin in a forced prefix. A phrase with bos first must not begin the output; one with eos last must not
/// end it. Cheap for any number of phrases of two or more tokens; each single token costs a look at every candidate.
///
/// A ConstraintAutomaton, and a Rule for any search: `Ruled<Sample, Forbidden>`.
class Forbidden {
 public:
  using State = PhraseMatcher::State;

  Forbidden() = default;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  template <class = void>
  explicit Forbidden(std::vector<Phrase> phrases, std::string name = "forbidden") {
    if (phrases.empty()) return;
    auto data = std::make_shared<Data>();
    data->phrases = std::move(phrases), data->name = std::move(name);
    if (std::ranges::none_of(data->phrases, &Phrase::empty)) data->matcher = PhraseMatcher(data->phrases);
    data_ = std::move(data);
  }
  template <class = void>
  Forbidden(std::initializer_list<Phrase> phrases) : Forbidden(std::vector<Phrase>(phrases)) {}

  /// \throws std::invalid_argument  naming the phrase: an empty one, a token outside the vocabulary, eos before the end
  ///     or bos after the beginning of a phrase
  template <class = void>
  State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return PhraseMatcher::root;
    for (std::size_t i = 0; i < data_->phrases.size(); ++i)
      if (!detail::is_sound(sentence, data_->phrases[i], false))  // there may be very many
        detail::check_phrase(sentence, data_->name + "[" + std::to_string(i) + "]", data_->phrases[i], false);
    return next(PhraseMatcher::root,
                sentence.vocabulary->bos);  // bos alone cannot be avoided: whether it is dead does not matter
  }
  template <class = void>
  State next(State state, Token token) const {
    return data_ == nullptr ? state : data_->matcher.next(state, token);
  }

  std::int32_t progress(State) const { return 0; }
  std::int32_t total() const { return 0; }
  bool complete(State) const { return true; }
  template <class = void>
  bool dead(State state) const {
    return data_ != nullptr && data_->matcher.ends(state);
  }
  void wanted(State, std::vector<Token>&) const {}
  template <class = void>
  void forbidden(State state, std::vector<Token>& tokens) const {
    if (data_ == nullptr) return;
    data_->matcher.for_each_completion(state, [&](Token token) { tokens.push_back(token); });
  }

  bool trivial() const { return data_ == nullptr; }
  template <class = void>
  void edit(State state, Output const&, std::vector<Edit>& edits) const {
    if (data_ == nullptr) return;
    data_->matcher.for_each_completion(state, [&](Token token) { edits.push_back(Edit::forbid(token)); });
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
    PhraseMatcher matcher;
    std::string name;
  };
  std::shared_ptr<Data const> data_;
};

}  // namespace sluice::inline v0
