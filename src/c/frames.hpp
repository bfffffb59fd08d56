// SPDX-License-Identifier: Apache-2.0
/// \file
/// What searches over frames share in the C interface: rules and language models of any kind as one type, results, and streams.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/language_model.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/frames/detail/numbered.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/phrase.hpp>

#include "options.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
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

/// Numbers of a model that several decoders use. Decoders may be freed by any thread.
class NumberPool {
 public:
  std::int32_t take() {
    std::scoped_lock const lock(mutex_);
    return all_.take();
  }
  void drop(std::span<std::int32_t const> numbers) {
    std::scoped_lock const lock(mutex_);
    for (auto const number : numbers) all_.drop(number);
    all_.forget_freed();
  }

 private:
  std::mutex mutex_{};
  detail::Numbered all_{};
};

/// The numbers that one decoder gives out, as numbers of a model that several decoders use.
class SharedNumbers {
 public:
  explicit SharedNumbers(std::shared_ptr<NumberPool> all) : all_(std::move(all)) {}
  SharedNumbers(SharedNumbers const&) = delete;
  SharedNumbers& operator=(SharedNumbers const&) = delete;
  SharedNumbers(SharedNumbers&&) = default;
  SharedNumbers& operator=(SharedNumbers&&) = delete;
  ~SharedNumbers() {
    if (all_ != nullptr) all_->drop(numbers_);
  }

  std::shared_ptr<NumberPool> const& all() const { return all_; }
  std::int32_t operator()(std::int32_t own) {
    while (own >= static_cast<std::int32_t>(numbers_.size())) numbers_.push_back(all_->take());
    return own < 0 ? own : numbers_[static_cast<std::size_t>(own)];
  }

 private:
  std::shared_ptr<NumberPool> all_;
  std::vector<std::int32_t> numbers_{};
};

/// A language model that several decoders use, each with slots of its own.
class LanguageSlots {
 public:
  using Source = void const*;
  static constexpr Abilities abilities{.ragged = true};  // as sluice_ctc_create has seen to

  LanguageSlots(AnyModel<void const*>& model, std::shared_ptr<NumberPool> slots)
      : model_(model), numbers_(std::move(slots)) {}

  Vocabulary vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return model_.limits(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) { model_.start(sources, own(slots)); }
  Scores<float> step(std::span<Row const> rows) {
    rows_.assign(rows.begin(), rows.end());
    for (auto& row : rows_) row.from = number(row.from), row.to = number(row.to);
    return model_.step(rows_);
  }
  void release(std::span<Slot const> slots) { model_.release(own(slots)); }

 private:
  std::span<Slot const> own(std::span<Slot const> slots) {
    slots_.clear();
    for (auto const slot : slots) slots_.push_back(number(slot));
    return slots_;
  }
  Slot number(Slot slot) {
    auto const found = numbers_(slot), most = model_.limits().slot_count;
    if (found >= most)
      throw NoRoom("sluice: the language model has " + std::to_string(most) + " slots, and all streams need more");
    return found;
  }

  AnyModel<void const*>& model_;
  SharedNumbers numbers_;
  std::vector<Row> rows_{};
  std::vector<Slot> slots_{};
};

}  // namespace sluice::c

struct sluice_ctc {
  std::int32_t labels = 0;
  sluice::Token blank = 0;
  sluice::Kind kind = sluice::Kind::logits;
  std::vector<std::string> texts{};  // [labels], or none
  std::vector<sluice::Token> separators{};
  sluice::Lexicon lexicon{};
  sluice::c::AnyNGrams language{};
  sluice::AnyModel<void const*>* model = nullptr;  // in place of that: a language model that is run
  std::vector<sluice::Token> model_tokens{};       // [labels]: its token for each
  sluice::FusionWeights weights{};                 // of it
  std::shared_ptr<sluice::c::NumberPool> slots = std::make_shared<sluice::c::NumberPool>();  // of it
  sluice::TokenTrie trie{};                                                                  // of the texts
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

/// Whether a search has the language model in rows of its model.
template <class S>
concept InRows = requires(S search) {
  requires std::same_as<decltype(search.language_model), FusionWeights>;
};

/// A model of frames for a search, with the language model beside it if the search has that in rows.
template <class F, class S>
class ModelOf {
 public:
  ModelOf(F frames, sluice_ctc const& texts) : frames_(std::move(frames)) {
    if constexpr (InRows<S>) {
      language_.emplace(*texts.model, texts.slots);
      both_.emplace(frames_, *language_, texts.model_tokens);
    }
  }
  ModelOf(ModelOf const&) = delete;
  ModelOf& operator=(ModelOf const&) = delete;

  F& frames() { return frames_; }
  auto& model() {
    if constexpr (InRows<S>) return *both_;
    else return frames_;
  }

 private:
  struct None {};
  F frames_;
  std::conditional_t<InRows<S>, std::optional<LanguageSlots>, None> language_{};
  std::conditional_t<InRows<S>, std::optional<WithLanguageModel<F, LanguageSlots>>, None> both_{};
};

}  // namespace sluice::c

/// A stream without the type of its search.
struct sluice_ctc_stream {
  explicit sluice_ctc_stream(sluice_ctc const& its_ctc) : ctc(its_ctc) {}
  sluice_ctc_stream(sluice_ctc_stream const&) = delete;
  sluice_ctc_stream& operator=(sluice_ctc_stream const&) = delete;
  virtual ~sluice_ctc_stream() = default;
  virtual void append(sluice::MatrixView<float const> const& frames, bool last) = 0;
  virtual bool next() = 0;  ///< false: no frames are left

  sluice_ctc const& ctc;
  std::vector<sluice::Token> settled{};
  sluice::Result found{};
  sluice::c::FramesView shown{};
  sluice_frames_result result{};
  bool ended = false, over = false;
};

namespace sluice::c {

/// A stream over a model F of frames that come.
template <class F, class S>
class StreamOf : public sluice_ctc_stream {
 protected:
  using Model = std::remove_reference_t<decltype(std::declval<ModelOf<F, S>&>().model())>;

  StreamOf(sluice_ctc const& its_ctc, F frames, S search)
      : sluice_ctc_stream(its_ctc),
        model_(std::move(frames), its_ctc),
        decoder_(model_.model(), std::move(search), Batched{.size = 1}) {}

  F& frames() { return model_.frames(); }
  void begin(typename Model::Source source) { id_ = decoder_.submit({.source = std::move(source)}); }
  void begin_next(typename Model::Source source) {
    ended = false, over = false, settled.clear(), found = {}, result = {};
    begin(std::move(source));
  }
  /// Decodes what has come.
  template <class... More>
  void decode(More const&... more) {
    decoder_.append(id_, more...);
    go_on();
  }
  void go_on() {
    auto const problem = run();
    if (!decoder_.poll(found)) {
      if (problem != nullptr) std::rethrow_exception(problem);
      return;
    }
    ended = true, result = ctc.view(found, shown);
    settled = found.hypotheses.empty() ? std::vector<Token>() : found.hypotheses.front().tokens;
  }

 private:
  std::exception_ptr run() {
    try {
      while (decoder_.step())
        decoder_.settled(
            [](std::uint64_t) { return true; },
            [&](std::uint64_t, std::span<Token const> tokens) { settled.assign(tokens.begin(), tokens.end()); });
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  ModelOf<F, S> model_;
  Decoder<Model, S> decoder_;
  std::uint64_t id_ = 0;
};

}  // namespace sluice::c
