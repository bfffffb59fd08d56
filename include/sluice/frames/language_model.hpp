// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model of frames with any model beside it as its language model; several rules of a search over frames as one.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/token_tree.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/language_model.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Two models in one, for a search over frames whose `language_model` is FusionWeights: slots that are started are those of the frames; a fork of such a slot
/// before any frame begins a text, with the language model's bos, and is a slot of the language model from then on. One call of each a
/// step, with the rows of all utterances. Both must return Scores (Projected makes them of hidden vectors), and the language model must
/// be `ragged`. Sources that grow do so here too.
///
/// Limits of both models hold. A text that fills a slot of the language model (Limits::length) goes on no further: no label follows it. Where
/// its slots together hold what they can (Limits::tokens), or a slot of the frames does, the step throws NoRoom. A text model's own
/// Limits::log_prob counts too.
///
/// Lines are log-probabilities over the labels, or the tokens of a Transducer's alignments. Those of the language model have been
/// normalised over its own vocabulary; a label that stands for none of its tokens is impossible, and the blank's place has its eos.
template <Model F, Model L>
class WithLanguageModel {
  static_assert(sluice::abilities<F>().ragged && sluice::abilities<L>().ragged,
                "sluice: WithLanguageModel: both models must be `ragged`: texts have different lengths");

 public:
  using Source = typename F::Source;
  using Wrapped = F;  ///< see core/named.hpp
  static constexpr Abilities abilities{.ragged = true, .blocks = sluice::abilities<F>().blocks};

  /// \param frames  lives as long as this; so does `language`
  /// \param tokens  [labels]: the language model's token for each label; -1: none. Those of blanks are not looked at
  /// \param source  of every text
  /// \throws std::invalid_argument  for tokens of another number, or outside the language model's vocabulary
  SLUICE_LAZY WithLanguageModel(F& frames, L& language, std::vector<Token> tokens, typename L::Source source = {})
      : frames_(frames), language_(language), tokens_(std::move(tokens)), source_(std::move(source)) {
    Vocabulary const lines = frames_.vocabulary(), texts = language_.vocabulary();
    auto labels = lines.size;
    if constexpr (requires { frames_.tokens().labels; }) labels = frames_.tokens().labels;
    require(static_cast<std::int32_t>(tokens_.size()) == labels, "WithLanguageModel: tokens.size()", tokens_.size(),
            "must be the number of labels, " + std::to_string(labels));
    blank_ = lines.bos, size_ = lines.size;
    for (Token label = 0; label < labels; ++label)
      if (is_blank(label)) tokens_[static_cast<std::size_t>(label)] = -1;
    for (auto const token : tokens_)
      require(token < texts.size, "WithLanguageModel: token", token,
              "is outside the vocabulary of " + std::to_string(texts.size));
    bos_ = texts.bos, eos_ = texts.eos, text_limits_ = sluice::limits(std::as_const(language_));
  }

  Vocabulary vocabulary() const { return frames_.vocabulary(); }
  /// Of a transducer.
  decltype(auto) tokens() const requires requires(F const& frames) { frames.tokens(); }
  { return std::as_const(frames_).tokens(); }
  /// Slots of frames and of texts hold different tokens, so what bounds these is not said here.
  Limits limits() const {
    auto const frames = sluice::limits(std::as_const(frames_)), texts = sluice::limits(std::as_const(language_));
    return {.slot_count = (std::min)(frames.slot_count, texts.slot_count),
            .log_prob = (std::max)(frames.log_prob, texts.log_prob)};
  }
  std::int32_t source_length(Source const& source) const { return sluice::source_length(frames_, source); }
  SourceGrowth growth(Source const& source) const requires GrowingModel<F> {
    return std::as_const(frames_).growth(source);
  }
  template <class... More>
    requires requires(F& frames, Source& source, More const&... more) { frames.append(source, more...); }
  void append(Source& source, More const&... more) { frames_.append(source, more...); }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    frames_.start(sources, slot_numbers);
    for (auto const slot : slot_numbers) put(slot, Holds::frames);
  }
  SLUICE_LAZY void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) {
      if (held(slot) == Holds::frames) release(frames_, slot);
      if (held(slot) == Holds::text) release(language_, slot);
      for (auto& tree : trees_) tree.clear(slot);
      put(slot, Holds::nothing);
    }
  }

  SLUICE_LAZY Scores<float> step(std::span<Row const> rows) {
    frame_rows_.clear(), text_rows_.clear(), begun_.clear();
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      lines += row.lines;
      if (held(row.from) == Holds::frames && (row.from == row.to || row.length > 0)) {
        frame_rows_.push_back(row);
        continue;
      }
      auto of_text = row;
      if (held(row.from) == Holds::frames) {
        if (row.tokens.size() != 1)
          require(false, "WithLanguageModel: tokens", row.tokens.size(), "a text begins with one, before any frame");
        begun_.push_back(row.to);
        of_text.from = row.to, of_text.tokens = {&bos_, 1};
      } else {
        require(row.tokens.size() == 1, "WithLanguageModel: tokens", row.tokens.size(), "a row of a text has one");
        require(tokens_[static_cast<std::size_t>(row.tokens[0])] >= 0, "WithLanguageModel: label", row.tokens[0],
                "stands for no token of the language model");
      }
      text_rows_.push_back(of_text);
    }
    fed_.resize(text_rows_.size());
    for (std::size_t i = 0; i < text_rows_.size(); ++i) {
      if (text_rows_[i].tokens.data() == &bos_) continue;
      fed_[i] = tokens_[static_cast<std::size_t>(text_rows_[i].tokens[0])];
      text_rows_[i].tokens = {&fed_[i], 1};
    }
    make_room(frame_rows_, sluice::limits(std::as_const(frames_)), false);
    make_room(text_rows_, text_limits_, true);
    if (!begun_.empty()) {
      sources_.assign(begun_.size(), &source_);
      language_.start(std::span<typename L::Source const* const>(sources_), std::span<Slot const>(begun_));
    }
    for (auto const& row : text_rows_) put(row.to, Holds::text);
    for (auto const& row : frame_rows_) put(row.to, Holds::frames);

    auto const size = static_cast<std::size_t>(size_);
    lines_.resize(static_cast<std::size_t>(lines) * size);
    if (!frame_rows_.empty()) fill(rows, true, frames_.step(std::span<Row const>(frame_rows_)));
    if (!text_rows_.empty()) fill(rows, false, language_.step(std::span<Row const>(text_rows_)));
    return scores(lines_.data(), lines, std::ptrdiff_t{size_}, Kind::log_probs);
  }

 private:
  bool is_blank(Token label) const {
    if constexpr (requires { frames_.tokens().is_blank(label); }) return frames_.tokens().is_blank(label);
    else return label == blank_;
  }

  enum class Holds : std::uint8_t { nothing, frames, text };

  Holds held(Slot slot) const {
    auto const i = static_cast<std::size_t>(slot);
    return i < held_.size() ? held_[i] : Holds::nothing;
  }
  void put(Slot slot, Holds what) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= held_.size()) held_.resize(i + 1, Holds::nothing);
    held_[i] = what;
  }
  /// Counts the tokens of rows. Throws NoRoom where a model that says how many it holds cannot hold them.
  SLUICE_LAZY void make_room(std::span<Row const> rows, Limits const& limits, bool of_texts) {
    for (auto const& row : rows)
      if (auto const after = std::int64_t{row.length} + std::ssize(row.tokens); after > limits.length)
        throw NoRoom("sluice: WithLanguageModel: a slot of the " + std::string(of_texts ? "language model" : "frames") +
                     " would hold " + std::to_string(after) + " tokens, and it holds " + std::to_string(limits.length) +
                     " (Limits::length)");
    if (limits.tokens == Limits{}.tokens) return;
    auto& tree = trees_[of_texts];
    for (auto const& row : rows)
      if (row.length == 0) tree.clear(row.to);
    tree.apply(rows);
    if (tree.used() > limits.tokens)
      throw NoRoom("sluice: WithLanguageModel: the slots of the " +
                   std::string(of_texts ? "language model" : "frames") + " would hold " + std::to_string(tree.used()) +
                   " tokens, and they hold " + std::to_string(limits.tokens) + " (Limits::tokens)");
  }
  template <class M>
  static void release(M& model, Slot slot) {
    if constexpr (ReleasingModel<M>) model.release(std::span<Slot const>(&slot, 1));
  }
  /// Writes the lines of the rows of frames, or of texts, to their places.
  template <class Answer>
  void fill(std::span<Row const> rows, bool of_frames, Answer const& answer) {
    auto const size = static_cast<std::size_t>(size_);
    auto* to = lines_.data();
    std::ptrdiff_t line = 0;
    for (auto const& row : rows)
      for (std::int32_t i = 0; i < row.lines; ++i, to += size) {
        if ((held(row.to) == Holds::frames) != of_frames) continue;
        auto const from = answer[line++];
        auto const norm = answer.kind == Kind::logits ? log_sum(from) : 0.0;
        auto const value = [&](Token token) {
          return static_cast<float>(static_cast<double>(from[static_cast<std::size_t>(token)]) - norm);
        };
        if (of_frames) {
          for (std::size_t v = 0; v < size; ++v) to[v] = value(static_cast<Token>(v));
          continue;
        }
        auto const full = row.length + 1 >= text_limits_.length;
        std::fill(to + tokens_.size(), to + size, -std::numeric_limits<float>::infinity());
        for (std::size_t v = 0; v < tokens_.size(); ++v)
          to[v] = full || tokens_[v] < 0 ? -std::numeric_limits<float>::infinity() : value(tokens_[v]);
        double end = 0;
        for (auto const eos : eos_) end += std::exp(static_cast<double>(value(eos)));
        to[blank_] = eos_.empty() ? 0 : static_cast<float>(std::log(end));
      }
  }
  template <class Line>
  static double log_sum(Line const& line) {
    auto best = -std::numeric_limits<double>::infinity();
    for (auto const score : line) best = (std::max)(best, static_cast<double>(score));
    if (!std::isfinite(best)) return 0;
    double sum = 0;
    for (auto const score : line) sum += std::exp(static_cast<double>(score) - best);
    return best + std::log(sum);
  }

  F& frames_;
  L& language_;
  std::vector<Token> tokens_;  // [label]
  typename L::Source source_;
  Token bos_ = 0, blank_ = 0;
  std::int32_t size_ = 0;  // of a line
  std::vector<Token> eos_;
  Limits text_limits_;
  std::vector<Holds> held_;                 // [slot]
  std::array<detail::TokenTree, 2> trees_;  // of what slots of frames and of texts hold, where that is limited
  std::vector<Row> frame_rows_, text_rows_;
  std::vector<Slot> begun_;
  std::vector<typename L::Source const*> sources_;
  std::vector<Token> fed_;    // [row of a text]
  std::vector<float> lines_;  // [lines, V]
};

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

/// Several logits processors as one, for the member `rule` of CtcBeamSearch and TransducerBeam, which ask it once for each new text: their
/// states are part of every text, so their types are part of the search. All other searches take a list, Request::processors. If several
/// end an output, the first one's stop is reported.
template <LogitsProcessor... Rs>
struct Rules {
  using State = std::tuple<typename Rs::State...>;
  using Wrapped = std::tuple<Rs...>;  ///< some members are conditional, see core/detail/named.hpp
  std::tuple<Rs...> rules;

  Rules() = default;
  explicit Rules(Rs... all) requires(sizeof...(Rs) > 0) : rules(std::move(all)...) {}

  void check() const {
    std::apply([](auto const&... rule) { (detail::check_processor(rule), ...); }, rules);
  }
  State initial(Sentence const& sentence) const {
    return std::apply([&](auto const&... rule) { return State(rule.initial(sentence)...); }, rules);
  }
  State next(State const& state, Token token) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return State(std::get<I>(rules).next(std::get<I>(state), token)...);
    }
    (std::index_sequence_for<Rs...>{});
  }
  void edit(State const& state, Output const& output, std::vector<Edit>& edits) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(rules).edit(std::get<I>(state), output, edits), ...);
    }
    (std::index_sequence_for<Rs...>{});
  }
  BiasSum bias(State const& state, BiasPlace const& place, std::vector<Edit>& edits) const
      requires(detail::BiasingProcessor<Rs> || ...) {
    constexpr auto biasing = (int{detail::BiasingProcessor<Rs>} + ...);
    BiasSum sum;
    auto const ask = [&](auto const& rule, auto const& its_state) {
      if constexpr (detail::BiasingProcessor<std::remove_cvref_t<decltype(rule)>>) {
        auto const first = edits.empty();
        auto its_place = place;
        its_place.shares = place.shares && biasing == 1;  // edits of two rules are added up
        auto const its = rule.bias(its_state, its_place, edits);
        sum.all += its.all;
        if (first) sum.sorted = its.sorted;
        if (its.shared != nullptr) sum.shared = its.shared;
      }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (ask(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
    return sum;
  }
  bool trivial() const requires(detail::BiasingProcessor<Rs> || ...) {
    auto const adds = [](auto const& rule) {
      if constexpr (detail::BiasingProcessor<std::remove_cvref_t<decltype(rule)>>) return !rule.trivial();
      else return false;
    };
    return std::apply([&](auto const&... rule) { return !(adds(rule) || ...); }, rules);
  }
  /// Whether one of them adds to scores.
  bool raising() const requires(detail::RaisingProcessor<Rs> || ...) {
    auto const adds = [](auto const& rule) {
      if constexpr (detail::RaisingProcessor<std::remove_cvref_t<decltype(rule)>>) return rule.raising();
      else return false;
    };
    return std::apply([&](auto const&... rule) { return (adds(rule) || ...); }, rules);
  }
  std::int32_t stop(State const& state, Output const& output) const requires(detail::EndingProcessor<Rs> || ...) {
    std::int32_t found = -1;
    auto const ask = [&](auto const& rule, auto const& its_state) {
      if constexpr (detail::EndingProcessor<std::remove_cvref_t<decltype(rule)>>)
        if (found < 0) found = rule.stop(its_state, output);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (ask(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
    return found;
  }
  /// The tokens that all of them allow.
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const
      requires(detail::RestrictingProcessor<Rs> || ...) {
    std::shared_ptr<TokenSet const> set;
    for_each_restricting(state, [&](auto const& rule, auto const& its_state) {
      auto one = rule.may_follow(its_state, left);
      if (one == nullptr) return;
      if (set != nullptr) {
        auto both = std::make_shared<TokenSet>(*set);
        both->keep(*one);
        one = std::move(both);
      }
      set = std::move(one);
    });
    return set;
  }
  void require_possible(State const& state, Output const& output, std::int32_t left) const
      requires(detail::RestrictingProcessor<Rs> || ...) {
    for_each_restricting(
        state, [&](auto const& rule, auto const& its_state) { rule.require_possible(its_state, output, left); });
  }

 private:
  template <class Take>
  void for_each_restricting(State const& state, Take const& take) const {
    auto const one = [&](auto const& rule, auto const& its_state) {
      if constexpr (detail::RestrictingProcessor<std::remove_cvref_t<decltype(rule)>>) take(rule, its_state);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (one(std::get<I>(rules), std::get<I>(state)), ...); }
    (std::index_sequence_for<Rs...>{});
  }
};

namespace detail {
/// What a search over frames takes as its language model.
template <class L>
concept LanguageModelOrWeights = LanguageModel<L> || std::derived_from<L, FusionWeights>;
}  // namespace detail

}  // namespace sluice::inline v0
