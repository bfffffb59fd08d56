// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transducer: a model over alignments, made of a network's predictor and joiner, and what the tokens of its alignments mean.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/numbered.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A transducer reads frames and writes labels. An alignment says how: it is a sequence of tokens, each of which writes
/// a label or nothing (blank), and moves on by some frames. The tokens of
///
///  - an RNN-T are its V labels, blank among them: blank moves one frame on, all others stay;
///  - a TDT (Xu et al. 2023) are pairs of a label and a duration: token = index of the duration * V + label. A blank of
///    duration 0 does not exist;
///  - a multi-blank transducer (Xu et al. 2022) are V labels, of which several are blanks that move on by different
///    numbers of frames.
///
/// An output has the labels' numbers, without blanks.
struct TransducerTokens {
  /// A blank that moves on by several frames.
  struct BigBlank {
    Token token = 0;
    std::int32_t frames = 2;

    friend constexpr bool operator==(BigBlank, BigBlank) = default;
  };

  /// The most frames that a token may move on.
  static constexpr std::int32_t furthest = 1 << 20;

  std::int32_t labels = 0;                ///< V, with blank and the big blanks; >= 1
  Token blank = 0;                        ///< in [0, V)
  std::vector<std::int32_t> durations{};  ///< of a TDT: the frames that each of its durations moves on; empty: RNN-T
  std::vector<BigBlank> big_blanks{};     ///< of a multi-blank transducer
  /// Frames that a label moves on, without durations: 0; or 1, where every token moves one on (k2's
  /// modified_beam_search, monotonic RNN-T).
  std::int32_t label_frames = 0;

  friend bool operator==(TransducerTokens const&, TransducerTokens const&) = default;

  /// Takes those of a model where nothing is said. Throws std::invalid_argument, naming what differs, where something else is said.
  SLUICE_LAZY void adapt(TransducerTokens const& model) {
    if (*this == TransducerTokens()) *this = model;
    auto const same = [](std::string_view name, auto const& mine, auto const& its) {
      require(mine == its, name, mine,
              "that of the model is " + std::to_string(its) + ": leave the search's tokens out, or use model.tokens()");
    };
    same("tokens.labels", labels, model.labels), same("tokens.blank", blank, model.blank);
    same("tokens.label_frames", label_frames, model.label_frames);
    require(durations == model.durations, "tokens.durations", std::to_string(durations.size()) + " of them",
            "are not those of the model: leave the search's tokens out, or use model.tokens()");
    require(big_blanks == model.big_blanks, "tokens.big_blanks", std::to_string(big_blanks.size()) + " of them",
            "are not those of the model: leave the search's tokens out, or use model.tokens()");
  }
  /// Throws std::invalid_argument, naming what is wrong.
  SLUICE_LAZY void check() const {
    require(labels >= 1, "tokens.labels", labels,
            "must be at least 1: say what the model's tokens are (tokens = model.tokens())");
    auto const inside = [&](Token token) { return token >= 0 && token < labels; };
    require(inside(blank), "tokens.blank", blank, "must be one of the " + std::to_string(labels) + " labels");
    for (auto const duration : durations)
      require(duration >= 0 && duration <= furthest, "tokens.durations", duration, "must be in [0, 1048576]");
    require(std::int64_t{labels} * (std::max)(std::int64_t{1}, std::int64_t{std::ssize(durations)}) <=
                Limits::unlimited,
            "tokens.durations", durations.size(), "with so many labels there are too many tokens");
    require(durations.empty() || *std::max_element(durations.begin(), durations.end()) > 0, "tokens.durations",
            "only 0", "no token would ever move on");
    require(durations.empty() || (big_blanks.empty() && label_frames == 0), "tokens.durations", durations.size(),
            "a transducer with durations has neither big blanks nor label_frames");
    require(label_frames >= 0 && label_frames <= furthest, "tokens.label_frames", label_frames,
            "must be in [0, 1048576]");
    for (auto const& one : big_blanks) {
      require(inside(one.token) && one.token != blank, "tokens.big_blanks", one.token,
              "must be one of the labels, and not blank itself");
      require(one.frames >= 1 && one.frames <= furthest, "tokens.big_blanks", one.frames,
              "frames: must be in [1, 1048576]");
      require(std::count_if(big_blanks.begin(), big_blanks.end(),
                            [&](auto const& other) { return other.token == one.token; }) == 1,
              "tokens.big_blanks", one.token, "is listed more than once");
    }
  }

  /// How many tokens alignments have.
  std::int32_t size() const { return labels * (std::max)(1, static_cast<std::int32_t>(durations.size())); }
  /// The label that a token writes, or the blank that it is.
  Token label(Token token) const { return durations.empty() ? token : token % labels; }
  /// Whether a label is a blank: it is no part of an output.
  bool is_blank(Token label) const {
    return label == blank ||
           std::any_of(big_blanks.begin(), big_blanks.end(), [&](auto const& b) { return b.token == label; });
  }
  /// How many frames a token moves on.
  SLUICE_LAZY std::int32_t frames(Token token) const {
    if (!durations.empty()) return durations[static_cast<std::size_t>(token / labels)];
    if (token == blank) return 1;
    for (auto const& one : big_blanks)
      if (one.token == token) return one.frames;
    return label_frames;
  }
  /// The most frames that any token moves on.
  SLUICE_LAZY std::int32_t most_frames() const {
    auto most = durations.empty() ? (std::max)(1, label_frames) : 0;
    for (auto const duration : durations) most = (std::max)(most, duration);
    for (auto const& one : big_blanks) most = (std::max)(most, one.frames);
    return most;
  }
  /// The tokens that are blanks and move on.
  SLUICE_LAZY std::vector<Token> blanks() const {
    std::vector<Token> all;
    for (Token token = blank; token < size(); token += labels)
      if (frames(token) > 0) all.push_back(token);
    for (auto const& one : big_blanks) all.push_back(one.token);
    return all;
  }
  /// The vocabulary of alignments: the tokens; blank is fed first. No token ends a sentence: its frames do.
  Vocabulary vocabulary() const { return {.size = size(), .bos = blank}; }
  /// The vocabulary of outputs, as rules and language models see it: the labels; blank, which no output has, stands for
  /// its end, as with CTC (ctc_text_vocabulary). Build grammars and catalogues over it.
  SLUICE_LAZY Vocabulary outputs() const {
    Vocabulary made{.size = labels, .bos = blank, .eos = {blank}};
    for (auto const& one : big_blanks) made.never.push_back(one.token);
    return made;
  }
};

}  // namespace sluice::inline v0

namespace sluice::inline v0::detail {

/// Makes log-probabilities of pairs, [lines, durations * V], of logits [lines, V + durations]: log p(label) + log
/// p(duration).
class DurationLines {
 public:
  /// \throws std::logic_error  if the logits have another shape
  SLUICE_LAZY Scores<float> compose(Scores<float> const& logits, TransducerTokens const& tokens, std::ptrdiff_t lines) {
    auto const labels = static_cast<std::size_t>(tokens.labels), durations = tokens.durations.size();
    auto const columns = std::ptrdiff_t{tokens.labels} + std::ssize(tokens.durations);
    if (logits.rows != lines || logits.columns != columns)
      throw std::logic_error("sluice: Transducer: join was asked for [" + std::to_string(lines) + ", " +
                             std::to_string(columns) + "], and answered [" + std::to_string(logits.rows) + ", " +
                             std::to_string(logits.columns) + "]");
    auto const size = labels * durations;
    lines_.resize(static_cast<std::size_t>(lines) * size);
    for (std::ptrdiff_t i = 0; i < lines; ++i) {
      auto const line = logits[i];
      auto const of_label = log_sum(line.first(labels), logits.kind),
                 of_duration = log_sum(line.subspan(labels), logits.kind);
      auto* const out = lines_.data() + static_cast<std::size_t>(i) * size;
      for (std::size_t d = 0; d < durations; ++d) {
        auto const rest = (line[labels + d] - of_duration) - of_label;
        for (std::size_t v = 0; v < labels; ++v) out[d * labels + v] = line[v] + rest;
        if (tokens.durations[d] == 0) out[d * labels + static_cast<std::size_t>(tokens.blank)] = impossible;
      }
    }
    return scores(lines_.data(), lines, static_cast<std::ptrdiff_t>(size), Kind::log_probs);
  }

 private:
  static constexpr auto impossible = -std::numeric_limits<float>::infinity();

  /// The logarithm of the sum of the exponentials; 0 for log-probabilities. A NaN or +infinity makes it one too.
  SLUICE_LAZY static float log_sum(std::span<float const> line, Kind kind) {
    if (kind == Kind::log_probs) return 0;
    auto const most = *std::max_element(line.begin(), line.end());
    if (!(most > impossible)) return most == impossible ? 0 : most;
    double sum = 0;
    for (auto const x : line) sum += std::exp(static_cast<double>(x) - static_cast<double>(most));
    return most + static_cast<float>(std::log(sum));
  }

  std::vector<float> lines_;
};

}  // namespace sluice::inline v0::detail

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

/// A transducer as a Model over alignments (TransducerTokens), for the searches of this folder: feeding a blank
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
