// SPDX-License-Identifier: Apache-2.0
/// \file
/// WhisperTimestamps: where Whisper's outputs may have timestamps.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0 {

/// The rules of Whisper's timestamps (Radford et al. 2022, section 4.5; ApplyTimestampRules of openai/whisper,
/// WhisperTimeStampLogitsProcessor of Hugging Face, with the name of its option):
///
///  - `<|notimestamps|>` never comes;
///  - an output begins with a timestamp, at most max_initial_timestamp_index * 0.02 s;
///  - timestamps stand in pairs, the end of a segment and the beginning of the next, but for the first one and for one before eos:
///    after a pair, or the first, comes text; after one that ends a segment, a timestamp or eos;
///  - none is before an earlier one, nor at the same time, unless it begins the segment after it;
///  - where all timestamps together are likelier than any one text token, a timestamp comes.
///
/// The last rule reads all scores, those that ForbidTokens (suppress_tokens) and ForbidFirst (begin_suppress_tokens) have edited. A
/// forced prefix counts as part of the output; the prompt (`<|startoftranscript|>`, a language, a task) does not. Timestamps are the
/// tokens from no_timestamps + 1 to the end of the vocabulary, text those below eos.
struct WhisperTimestamps {
  Token no_timestamps = -1;                       ///< `<|notimestamps|>`: 50363 for multilingual models
  std::int32_t max_initial_timestamp_index = 50;  ///< steps of 0.02 s; -1: no limit

  static constexpr std::string_view name = "WhisperTimestamps";

  struct State {
    Token last = -1, before = -1;  ///< the output's last token, and the one before; -1: none
    Token latest = -1;             ///< the last timestamp; -1: none
    Token eos = 0;
  };

  SLUICE_LAZY void check() const {
    require(max_initial_timestamp_index >= -1, "whisper_timestamps.max_initial_timestamp_index",
            max_initial_timestamp_index, "must be -1, no limit, or more");
  }
  /// \throws std::invalid_argument  if there is no timestamp in the vocabulary, or it ends in none of its text tokens
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    auto const& vocabulary = *sentence.vocabulary;
    require(no_timestamps >= 0 && no_timestamps < vocabulary.size - 1, "whisper_timestamps.no_timestamps",
            no_timestamps, "must have timestamps after it, in a vocabulary of " + std::to_string(vocabulary.size));
    require(!vocabulary.eos.empty(), "vocabulary.eos", "none", "WhisperTimestamps ends texts by it");
    auto const eos = *std::min_element(vocabulary.eos.begin(), vocabulary.eos.end());
    require(eos < no_timestamps, "whisper_timestamps.no_timestamps", no_timestamps,
            "must be above the end of sentence, " + std::to_string(eos));
    return {.eos = eos};
  }
  State next(State state, Token token) const {
    return {token, state.last, token > no_timestamps ? token : state.latest, state.eos};
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  static constexpr bool raising() { return false; }

  SLUICE_LAZY void process(State const& state, Output const&, std::span<float> scores) const {
    auto const never = -std::numeric_limits<float>::infinity();
    auto const begin = static_cast<std::size_t>(no_timestamps) + 1;
    auto const texts = scores.first(begin), times = scores.subspan(begin);
    auto const forbid = [=](std::span<float> some) { std::fill(some.begin(), some.end(), never); };
    texts.back() = never;
    if (state.last < 0) {
      forbid(texts);
      if (auto const first = static_cast<std::size_t>(max_initial_timestamp_index) + 1; first < times.size())
        if (max_initial_timestamp_index >= 0) forbid(times.subspan(first));
      return;
    }
    auto const is_time = [&](Token token) { return token > no_timestamps; };
    auto const after_one = is_time(state.last), after_pair = after_one && (state.before < 0 || is_time(state.before));
    if (after_pair) forbid(times);
    else if (after_one) forbid(texts.first(static_cast<std::size_t>(state.eos)));
    if (state.latest >= 0) {
      auto const past = static_cast<std::size_t>(state.latest) - begin + (after_one && !after_pair ? 0 : 1);
      forbid(times.first((std::min)(past, times.size())));
    }
    // Compared after exp(x - best): the softmax, if there is one, subtracts the same from all.
    auto const text = *std::max_element(texts.begin(), texts.end());
    auto const time = *std::max_element(times.begin(), times.end());
    if (time == never) return;
    auto sum = 0.0;
    for (auto const x : times) sum += std::exp(static_cast<double>(x - time));
    if (static_cast<double>(time) + std::log(sum) > static_cast<double>(text)) forbid(texts);
  }
};

}  // namespace sluice::inline v0
