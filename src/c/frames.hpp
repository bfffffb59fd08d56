// SPDX-License-Identifier: Apache-2.0
/// \file
/// What searches over frames share in the C interface: rules and language models of any kind as one type, and results.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/phrase.hpp>

#include "options.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::c {

/// Boosted phrases, for which a text's beginning and end count as a separator.
struct PhrasesOfWords {
  using State = Bias::State;
  Bias phrases{};
  Token separator = -1;  // -1: none

  bool trivial() const { return phrases.trivial(); }
  State initial(Sentence const& sentence) const {
    auto const state = phrases.initial(sentence);
    return separator < 0 ? state : phrases.next(state, separator);
  }
  State next(State const& state, Token token) const { return phrases.next(state, token); }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  BiasSum bias(State const& state, BiasPlace const& place, std::vector<Edit>& edits) const {
    auto const sum = phrases.bias(state, place, edits);
    if (separator < 0 || trivial()) return sum;
    auto const paid = phrases.paid(state, separator);
    if (paid == 0) return sum;
    if (place.over) return {.all = sum.all + paid};
    for (auto const eos : place.vocabulary.eos) edits.push_back({.token = eos, .add = paid});
    return {.all = sum.all};  // the edits are no longer sorted
  }
};

/// A language model of n-grams of any kind.
class AnyNGrams {
 public:
  struct State {
    NGramState gram{};
    std::uint32_t node = 0;
  };

 private:
  template <class F>
  auto visit(F const& f) const {  // a branch, not a call through a pointer
    switch (held_.index()) {
      case 1: return f(std::get<1>(held_));
      case 2: return f(std::get<2>(held_));
      case 3: return f(std::get<3>(held_));
      default: return f(std::get<0>(held_));
    }
  }

 public:
  AnyNGrams() = default;
  template <class L>
  explicit AnyNGrams(L model) : held_(std::move(model)) {}

  bool none() const { return std::holds_alternative<NoRule>(held_); }
  bool of_lexicon() const { return std::holds_alternative<LexiconNGrams>(held_); }
  State initial(Sentence const& sentence) const {
    return visit([&](auto const& model) { return put(model.initial(sentence)); });
  }
  State next(State const& state, Token token) const {
    return visit([&](auto const& model) { return put(model.next(take(model, state), token)); });
  }
  float score(State const& state, Token token) const {
    return visit([&](auto const& model) { return model.score(take(model, state), token); });
  }
  float end(State const& state) const {
    return visit([&](auto const& model) { return model.end(take(model, state)); });
  }
  float most(State const& state) const {
    return visit([&](auto const& model) { return model.most(take(model, state)); });
  }

 private:
  static State put(NoRule::State) { return {}; }
  static State put(NGramModel<>::State const& state) { return {state, 0}; }
  static State put(WordModel<>::State const& state) { return {state.gram, state.node}; }
  static State put(LexiconNGrams::State const& state) { return {state.gram, static_cast<std::uint32_t>(state.node)}; }
  static NoRule::State take(NoRule const&, State const&) { return {}; }
  static NGramModel<>::State take(NGramModel<> const&, State const& state) { return state.gram; }
  static WordModel<>::State take(WordModel<> const&, State const& state) { return {state.gram, state.node}; }
  static LexiconNGrams::State take(LexiconNGrams const&, State const& state) {
    return {static_cast<std::int32_t>(state.node), state.gram};
  }

  std::variant<NoRule, NGramModel<>, WordModel<>, LexiconNGrams> held_;
};

using TextRules = Rules<Forbidden, Structure, InCatalogue, PhrasesOfWords, Lexicon>;
/// What a call of C sees of a hypothesis, beside the hypothesis.
struct FramesView {
  std::vector<sluice_frames_hypothesis> hypotheses{};
  std::vector<std::vector<sluice_frames_word>> words{};
};

struct AllCtcWorkers;

}  // namespace sluice::c

struct sluice_ctc {
  std::int32_t labels = 0;
  sluice::Token blank = 0;
  sluice::Kind kind = sluice::Kind::logits;
  std::vector<std::string> texts{};  // [labels], or none
  std::vector<sluice::Token> separators{};
  sluice::Lexicon lexicon{};
  sluice::c::AnyNGrams language{};
  sluice::TokenTrie trie{};                             // of the texts
  std::shared_ptr<sluice::c::AllCtcWorkers> workers{};  // none: texts of other models of frames

  /// The words of an output.
  std::vector<sluice_frames_word> words(sluice::Hypothesis const& found) const;
  sluice_frames_result view(sluice::Result const& result, sluice::c::FramesView& view) const;
};

struct sluice_frames_results {
  std::vector<sluice::Result> results{};
  std::vector<sluice::c::FramesView> views{};
  std::vector<sluice_frames_result> list{};
};

namespace sluice::c {

/// The rules of a search over frames; throws for what such a search cannot have.
/// \param trivial  whether there are none
TextRules text_rules(SearchOptions const& options, sluice_ctc const& texts, bool& trivial);

}  // namespace sluice::c
