// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the tokens of a transducer's alignments mean.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
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
  template <class = void>
  void adapt(TransducerTokens const& model) {
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
  template <class = void>
  void check() const {
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
  template <class = void>
  std::int32_t frames(Token token) const {
    if (!durations.empty()) return durations[static_cast<std::size_t>(token / labels)];
    if (token == blank) return 1;
    for (auto const& one : big_blanks)
      if (one.token == token) return one.frames;
    return label_frames;
  }
  /// The most frames that any token moves on.
  template <class = void>
  std::int32_t most_frames() const {
    auto most = durations.empty() ? (std::max)(1, label_frames) : 0;
    for (auto const duration : durations) most = (std::max)(most, duration);
    for (auto const& one : big_blanks) most = (std::max)(most, one.frames);
    return most;
  }
  /// The tokens that are blanks and move on.
  template <class = void>
  std::vector<Token> blanks() const {
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
  template <class = void>
  Vocabulary outputs() const {
    Vocabulary made{.size = labels, .bos = blank, .eos = {blank}};
    for (auto const& one : big_blanks) made.never.push_back(one.token);
    return made;
  }
};

}  // namespace sluice::inline v0
