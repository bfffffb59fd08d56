// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transducer: a model over alignments, made of a network's predictor and joiner.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/duration_lines.hpp>
#include <sluice/frames/detail/numbered.hpp>
#include <sluice/frames/transducer_tokens.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// One step of a predictor: from a state, by a label, to a state.
struct PredictorRow {
  std::int32_t from;  ///< a state that an earlier call wrote; -1: none, `to` is the state before any label
  std::int32_t to;    ///< the new state: no row of the call reads it
  Token label;        ///< never a blank; from = -1: the blank, as which most predictors begin
};

/// One line of a joiner: frame `frame` of an utterance, and a state of the predictor.
struct JoinerRow {
  std::int32_t utterance;
  std::int32_t frame;
  std::int32_t state;
};

// clang-format off
/// The parts of a transducer, which users implement.
///
///  - `Source`: an utterance: its frames as the encoder left them, or what the encoder reads;
///  - `tokens()`: what its tokens mean; constant;
///  - `frames(source)`: how many frames the joiner will see of it; 0 is legal. const;
///  - `start(sources, utterances)`: from now on the frames of `*sources[i]` are those of utterance `utterances[i]`. A
///    number is used again once no hypothesis of its utterance is left. Sources live until their sentence ends. The
///    place to run an encoder for all of them at once. If it throws, all these numbers are free again;
///  - `predict(rows)`: writes the predictor's states, which are numbered from 0 and never change once written. So
///    states can be rows of a matrix, no state is ever copied, and hypotheses that differ in blanks only share one.
///    Numbers stay below the number of slots, plus the rows of a step, plus 1. A stateless predictor's state is its
///    last labels;
///  - `join(rows)`: one line for each row, in order: `Scores<T>` or `Hidden<T>` as a model's step returns, [rows, V]. A
///    TDT returns `Scores<float>` of logits, [rows, V + durations], the durations' last, as NeMo's does;
///  - `release(utterances)`, optional: these are no longer needed;
///  - `growth(source)`, optional: an utterance's frames come while they are decoded (SourceGrowth: how many have come,
///    and whether that is all). const. Then `append(source, more...)`, which adds to a source (Decoder::append,
///    Server::append), is the place for an encoder. Neither search asks for a frame that has not come, nor, in
///    TransducerOrder::frames, for one before the last frame it asked for: those may be forgotten.
///
/// A line must depend on the utterance, the frame and the labels so far only: hypotheses of equal labels at equal
/// frames are one.
template <class T>
concept TransducerNetwork = requires(T& network, T const& same, typename T::Source const& source,
                                     std::span<typename T::Source const* const> sources, std::span<std::int32_t const> utterances,
                                     std::span<PredictorRow const> predictions, std::span<JoinerRow const> joins) {
  { same.tokens() } -> std::convertible_to<TransducerTokens>;
  { same.frames(source) } -> std::convertible_to<std::int32_t>;
  network.start(sources, utterances);
  network.predict(predictions);
  network.join(joins);
};
// clang-format on

/// A transducer as a Model over alignments (TransducerTokens), for the searches of search/frames/: feeding a blank
/// moves on, feeding a label runs the predictor. The first token of a slot is a blank that only begins. In a step all
/// utterances' rows are in one call of predict, which has the rows whose token is a label, and one of join.
/// `source_length` is the number of frames.
///
/// A slot costs 16 bytes, a fork copies them. Lines of a TDT are log-probabilities [rows, V * durations], O(V *
/// durations) each.
///
/// A slot that has passed its last frame cannot be continued: searches over frames end there.
template <TransducerNetwork T>
class Transducer {
  using Joined = std::remove_cvref_t<decltype(std::declval<T&>().join(std::span<JoinerRow const>()))>;
  static constexpr bool composes = std::same_as<Joined, Scores<float>>;
  static constexpr bool grows = requires(T const& network, typename T::Source const& source) {
    { network.growth(source) } -> std::same_as<SourceGrowth>;
  };

 public:
  using Source = typename T::Source;
  using Wrapped = T;  ///< see core/named.hpp
  static constexpr Abilities abilities{.ragged = true};

  /// \throws std::invalid_argument  for invalid tokens, or durations where join does not return Scores<float>
  explicit Transducer(T network) : network_(std::move(network)), tokens_(network_.tokens()) {
    tokens_.check();
    require(composes || tokens_.durations.empty(), "tokens.durations", tokens_.durations.size(),
            "a network with durations must return Scores<float> from join");
    vocabulary_ = tokens_.vocabulary();
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  TransducerTokens const& tokens() const { return tokens_; }
  std::int32_t source_length(Source const& source) const {
    if constexpr (grows) {
      auto const grown = std::as_const(network_).growth(source);
      return grown.over ? grown.length : -1;
    } else {
      return std::as_const(network_).frames(source);
    }
  }
  SourceGrowth growth(Source const& source) const requires(grows) { return std::as_const(network_).growth(source); }
  template <class... More>
    requires requires(T& network, Source& source, More const&... more) { network.append(source, more...); }
  void append(Source& source, More const&... more) { network_.append(source, more...); }
  T& network() { return network_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    started_.clear();
    for (std::size_t i = 0; i < sources.size(); ++i) started_.push_back(utterances_.take());
    try {
      begin();
      network_.start(sources, std::span<std::int32_t const>(started_));
    } catch (...) {
      for (auto const utterance : started_) utterances_.drop(utterance);
      utterances_.forget_freed();
      throw;
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      states_.share(begin_);
      auto const frames = source_length(*sources[i]);
      put(slot_numbers[i], {started_[i], frames < 0 ? unknown : frames, begin_, -1});
    }
    tell_released();
  }

  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) put(slot, {});
    tell_released();
  }

  /// Throws what the network throws; std::logic_error for a row that continues a slot after its last frame, or lines of
  /// a wrong shape.
  auto step(std::span<Row const> rows) {
    held_.clear(), predictions_.clear(), joins_.clear();
    try {
      for (auto const& row : rows) held_.push_back(after(row));
      if (!predictions_.empty()) network_.predict(std::span<PredictorRow const>(predictions_));
    } catch (...) {
      for (auto const& one : predictions_) states_.drop(one.to);
      states_.forget_freed();
      throw;
    }
    std::size_t predicted = 0;  // every slot's new content is counted before any old one is dropped
    for (auto const& one : held_) {
      utterances_.share(one.utterance);
      if (predicted < predictions_.size() && predictions_[predicted].to == one.state) ++predicted;
      else states_.share(one.state);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) put(rows[i].to, held_[i]);
    tell_released();
    return answer(network_.join(std::span<JoinerRow const>(joins_)));
  }

 private:
  static constexpr auto unknown = (std::numeric_limits<std::int32_t>::max)();

  /// What a slot holds.
  struct Held {
    std::int32_t utterance = -1, frames = 0, state = -1;
    std::int32_t frame = -1;  // -1: no token yet
  };

  /// Computes the state before any label, once.
  void begin() {
    if (begin_ >= 0) return;
    PredictorRow const row{-1, 0, tokens_.blank};
    network_.predict(std::span<PredictorRow const>(&row, 1));
    begin_ = states_.take();
  }

  /// The slot of a row after its token.
  Held after(Row const& row) {
    auto held = at(row.from);
    auto const token = row.tokens.back(), label = tokens_.label(token);
    auto const blank = tokens_.is_blank(label);
    if (!blank) predictions_.push_back({held.state, states_.take(), label}), held.state = predictions_.back().to;
    if (held.frame < 0) held.frame = blank ? 0 : tokens_.frames(token);
    else held.frame += tokens_.frames(token);
    if (held.frame >= held.frames)
      throw std::logic_error("sluice: Transducer: a row goes to frame " + std::to_string(held.frame) +
                             ", and the utterance has " + std::to_string(held.frames) +
                             ": use a search over frames (TransducerGreedy, TransducerBeam)");
    joins_.push_back({held.utterance, held.frame, held.state});
    return held;
  }

  auto answer(Joined lines) {
    if constexpr (composes) {
      if (!tokens_.durations.empty()) return lines_.compose(lines, tokens_, std::ssize(joins_));
    }
    return lines;
  }

  Held& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= slots_.size()) slots_.resize(i + 1);
    return slots_[i];
  }
  /// Overwrites a slot with what has been counted already.
  void put(Slot slot, Held const& held) {
    auto& old = at(slot);
    if (old.state >= 0) states_.drop(old.state);
    if (old.utterance >= 0) utterances_.drop(old.utterance);
    old = held;
  }
  void tell_released() {
    auto const freed = utterances_.freed();
    if constexpr (requires { network_.release(freed); })
      if (!freed.empty()) network_.release(freed);
    utterances_.forget_freed(), states_.forget_freed();
  }

  T network_;
  TransducerTokens tokens_;
  Vocabulary vocabulary_;
  std::vector<Held> slots_, held_;
  detail::Numbered states_, utterances_;
  std::int32_t begin_ = -1;  // the state before any label
  std::vector<std::int32_t> started_;
  std::vector<PredictorRow> predictions_;
  std::vector<JoinerRow> joins_;
  detail::DurationLines lines_;
};

}  // namespace sluice::inline v0
