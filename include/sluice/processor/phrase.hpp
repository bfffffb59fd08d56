// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that an output must or must not contain: what finds them in a stream of tokens, and Forbidden, the rule.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/detail/pattern_automaton.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The automaton of Aho and Corasick (1975) over a list of phrases. A state is the longest prefix of any phrase that is
/// a suffix of the tokens so far. Overlaps and shared prefixes are handled by construction: [4 5] is found in 4 4 5.
///
/// Built in O(L log n) for n phrases of L tokens together, with some 20 bytes for each token. next() follows at most as
/// many fallbacks as the state is deep, usually one or none. Phrases may repeat; each keeps its index.
class PhraseMatcher {
  using Automaton = detail::PatternAutomaton<std::vector<Token>>;

 public:
  using State = Automaton::State;
  static constexpr State root = Automaton::root;

  SLUICE_LAZY PhraseMatcher() : PhraseMatcher(std::span<std::vector<Token> const>{}) {}

  /// \throws std::invalid_argument  naming the phrase, if one is empty
  SLUICE_LAZY explicit PhraseMatcher(std::span<std::vector<Token> const> phrases) : automaton_(checked(phrases)) {
    completions_begin_.reserve(size() + 1);
    for (State state = root; state < states(); ++state) {
      completions_begin_.push_back(static_cast<std::int32_t>(completions_.size()));
      auto const tokens = children(state);
      auto child = automaton_.first_child(state);
      for (auto const token : tokens)
        if (ends(child++) && (state == root || !ends(next(fallback(state), token)))) completions_.push_back(token);
    }
    completions_begin_.push_back(static_cast<std::int32_t>(completions_.size()));
  }

  /// The state after one token more.
  SLUICE_LAZY State next(State state, Token token) const { return automaton_.next(state, token); }

  std::int32_t states() const { return automaton_.states(); }                ///< 0 .. states() - 1
  std::int32_t depth(State state) const { return automaton_.depth(state); }  ///< tokens matched
  State fallback(State state) const { return automaton_.fallback(state); }   ///< the next longest prefix; lower
  /// Phrases that end exactly here with all depth() tokens. Shorter ones that end here are found along fallback().
  SLUICE_LAZY std::span<std::int32_t const> phrases(State state) const { return automaton_.patterns(state); }
  /// Whether any phrase ends here, of any length.
  bool ends(State state) const { return automaton_.ends(state); }
  /// The tokens that extend the match, ascending.
  std::span<Token const> children(State state) const { return automaton_.children(state); }
  /// Calls f(token) once for every token that completes a phrase.
  template <class F>
  void for_each_completion(State state, F&& f) const {
    for (;; state = fallback(state)) {
      auto const at = static_cast<std::size_t>(state);
      for (auto i = completions_begin_[at]; i < completions_begin_[at + 1]; ++i)
        f(completions_[static_cast<std::size_t>(i)]);
      if (state == root) return;
    }
  }
  std::size_t size() const { return static_cast<std::size_t>(states()); }

 private:
  SLUICE_LAZY static std::span<std::vector<Token> const> checked(std::span<std::vector<Token> const> phrases) {
    for (std::size_t p = 0; p < phrases.size(); ++p) require(!phrases[p].empty(), "phrase", p, "is empty");
    return phrases;
  }

  Automaton automaton_;
  std::vector<Token> completions_;                 // of all states, without those of fallbacks
  std::vector<std::int32_t> completions_begin_{};  // [state], and one more at the end
};

/// Consecutive tokens. bos may be the first (the phrase then stands at the beginning of the output, and also after any
/// other bos, where Vocabulary::never lets bos be generated). eos may be the last (at the end).
using Phrase = std::vector<Token>;

namespace detail {

/// "[4 5 6]".
SLUICE_LAZY std::string text(std::span<Token const> phrase) {
  std::string out = "[";
  for (auto const token : phrase) out.append(out.size() > 1 ? " " : "").append(std::to_string(token));
  return out + "]";
}

/// "all[0] [4 5], all[1] [6]".
SLUICE_LAZY std::string text_of(std::string const& name, std::vector<Phrase> const& phrases) {
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
SLUICE_LAZY void check_phrase(Sentence const& sentence, std::string const& name, Phrase const& phrase,
                              bool wanted = true) {
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

/// None of these phrases may occur (bad_words, suppress_sequences): the token that would complete one is forbidden. A
/// phrase may begin in a forced prefix. A phrase with bos first must not begin the output; one with eos last must not
/// end it. Cheap for any number of phrases of two or more tokens; each single token costs a look at every candidate.
///
/// A ConstraintAutomaton, and a logits processor for any search.
class Forbidden {
 public:
  using State = PhraseMatcher::State;

  Forbidden() = default;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  SLUICE_LAZY explicit Forbidden(std::vector<Phrase> phrases, std::string name = "forbidden") {
    if (phrases.empty()) return;
    auto data = std::make_shared<Data>();
    data->phrases = std::move(phrases), data->name = std::move(name);
    if (std::ranges::none_of(data->phrases, &Phrase::empty)) data->matcher = PhraseMatcher(data->phrases);
    data_ = std::move(data);
  }
  SLUICE_LAZY Forbidden(std::initializer_list<Phrase> phrases) : Forbidden(std::vector<Phrase>(phrases)) {}

  /// \throws std::invalid_argument  naming the phrase: an empty one, a token outside the vocabulary, eos before the end
  ///     or bos after the beginning of a phrase
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return PhraseMatcher::root;
    for (std::size_t i = 0; i < data_->phrases.size(); ++i)
      if (!detail::is_sound(sentence, data_->phrases[i], false))  // there may be very many
        detail::check_phrase(sentence, data_->name + "[" + std::to_string(i) + "]", data_->phrases[i], false);
    return next(PhraseMatcher::root,
                sentence.vocabulary->bos);  // bos alone cannot be avoided: whether it is dead does not matter
  }
  SLUICE_LAZY State next(State state, Token token) const {
    return data_ == nullptr ? state : data_->matcher.next(state, token);
  }

  std::int32_t progress(State) const { return 0; }
  std::int32_t total() const { return 0; }
  bool complete(State) const { return true; }
  SLUICE_LAZY bool dead(State state) const { return data_ != nullptr && data_->matcher.ends(state); }
  void wanted(State, std::vector<Token>&) const {}
  SLUICE_LAZY void forbidden(State state, std::vector<Token>& tokens) const {
    if (data_ == nullptr) return;
    data_->matcher.for_each_completion(state, [&](Token token) { tokens.push_back(token); });
  }

  bool trivial() const { return data_ == nullptr; }
  SLUICE_LAZY void edit(State state, Output const&, std::vector<Edit>& edits) const {
    if (data_ == nullptr) return;
    data_->matcher.for_each_completion(state, [&](Token token) { edits.push_back(Edit::forbid(token)); });
  }

  /// The phrases as given.
  SLUICE_LAZY std::vector<Phrase> const& phrases() const {
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
