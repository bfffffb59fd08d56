// SPDX-License-Identifier: Apache-2.0
/// \file
/// A beam on the device: converts options and sentences from C to C++, and results from C++ to C.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/device_beam_options.cuh>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include "layout.hpp"
#include "tasks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sluice_cuda.h>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::c::device {

inline BeamSearch preset_search(std::int32_t preset, std::int32_t width, double length_penalty) {
  require(preset >= SLUICE_CUDA_FAIRSEQ && preset <= SLUICE_CUDA_HUGGINGFACE, "preset", preset,
          "must be SLUICE_CUDA_FAIRSEQ, SLUICE_CUDA_CTRANSLATE2 or SLUICE_CUDA_HUGGINGFACE");
  auto search = preset == SLUICE_CUDA_FAIRSEQ       ? presets::fairseq(width)
                : preset == SLUICE_CUDA_CTRANSLATE2 ? presets::ctranslate2(width, length_penalty)
                                                    : presets::huggingface(width, length_penalty);
  if (preset == SLUICE_CUDA_FAIRSEQ) search.penalty.alpha = length_penalty;
  search.check();
  return search;
}

/// The size of options without the last of them.
inline constexpr std::size_t shortest_options = offsetof(sluice_cuda_beam_options, longest);
inline sluice_cuda_beam_options taken(sluice_cuda_beam_options const& given) {
  return c::taken(given, "sluice_cuda_beam_options", shortest_options);
}

/// The options without a vocabulary, for one sentence.
inline sluice_cuda_beam_options options_of(BeamSearch const& search) {
  sluice_cuda_beam_options made{};
  made.width = search.width, made.n_best = search.n_best;
  made.min_length = search.length.min, made.max_length = search.length.max;
  made.min_factor = search.length.min_factor, made.max_factor = search.length.max_factor;
  made.extra = search.length.extra;
  made.penalty = static_cast<std::int32_t>(search.penalty.kind);
  made.alpha = search.penalty.alpha, made.beta = search.penalty.beta;
  made.stop = static_cast<std::int32_t>(search.early_stopping.rule);
  made.stop_finished = search.early_stopping.finished, made.patience = search.early_stopping.patience;
  made.at_maximum = static_cast<std::int32_t>(search.at_maximum);
  made.surplus = search.surplus ? 1 : 0, made.prefix_scored = search.prefix_scored ? 1 : 0;
  made.guard_prefix = search.guard_prefix ? 1 : 0, made.candidates = search.candidates;
  made.stage = static_cast<std::int32_t>(search.stage), made.sentences = 1;
  return made;
}

/// An enumerator, checked to be in 0 .. last.
template <class E>
E chosen(std::int32_t value, E last, std::string_view name, std::string_view rule) {
  require(value >= 0 && value <= static_cast<std::int32_t>(last), name, value, rule);
  return static_cast<E>(value);
}

/// DeviceBeam checks the rest.
inline BeamSearch search_of(sluice_cuda_beam_options const& from) {
  require(from.at_maximum != static_cast<std::int32_t>(AtMaximum::force_eos_free), "at_maximum", from.at_maximum,
          "must be SLUICE_CUDA_FORCE_EOS, ...");
  BeamSearch search;
  search.width = from.width, search.n_best = from.n_best;
  search.length = {.min = from.min_length,
                   .max = from.max_length,
                   .min_factor = from.min_factor,
                   .max_factor = from.max_factor,
                   .extra = from.extra};
  search.penalty = {.kind = chosen(from.penalty, LengthPenalty::Kind::gnmt, "penalty",
                                   "must be SLUICE_CUDA_PENALTY_NONE, ..._AVERAGE or ..._GNMT"),
                    .alpha = from.alpha,
                    .beta = from.beta};
  search.early_stopping = {
      .rule = chosen(from.stop, EarlyStopping::Rule::never_early, "stop", "must be SLUICE_CUDA_STOP_COUNT, ..."),
      .finished = from.stop_finished,
      .patience = from.patience};
  search.at_maximum = chosen(from.at_maximum, AtMaximum::drop, "at_maximum", "must be SLUICE_CUDA_FORCE_EOS, ...");
  search.surplus = flag(from.surplus, "surplus"), search.prefix_scored = flag(from.prefix_scored, "prefix_scored");
  search.guard_prefix = flag(from.guard_prefix, "guard_prefix"), search.candidates = from.candidates;
  search.stage = chosen(from.stage, Stage::after_softmax, "stage",
                        "must be SLUICE_CUDA_BEFORE_SOFTMAX or SLUICE_CUDA_AFTER_SOFTMAX");
  return search;
}

inline std::span<Token const> tokens_of(std::int32_t const* tokens, std::int32_t count, std::string_view name) {
  require(count >= 0, name, count, "must not be so many");
  require(count == 0 || tokens != nullptr, name, "null", "must be there");
  return {tokens, static_cast<std::size_t>(count)};
}
inline Vocabulary vocabulary_of(sluice_cuda_beam_options const& from) {
  auto const eos = tokens_of(from.eos, from.eos_count, "eos"), never = tokens_of(from.never, from.never_count, "never");
  return {from.vocabulary, 0, {eos.begin(), eos.end()}, {never.begin(), never.end()}};
}
inline cuda::DeviceBeamOptions places_of(sluice_cuda_beam_options const& from, cuda::StepOptions const& step) {
  require(from.slot_length >= 0, "slot_length", from.slot_length, "must not be negative");
  return {.sentences = from.sentences,
          .length = from.longest,
          .kind = flag(from.log_probs, "log_probs") ? Kind::log_probs : Kind::logits,
          .step = step};
}

/// \throws std::invalid_argument  unless first, ..., first + count - 1 are numbers of existing sentences
inline void check_numbers(std::int32_t first, std::int32_t count, std::int32_t sentences) {
  require(first >= 0 && first <= sentences, "first", first, "must be the number of a sentence");
  require(count >= 0 && count <= sentences - first, "count", count, "must be so many sentences as there are");
}

/// Sentences converted to C++. A beam needs only the lengths of prompt and prefix.
class Sentences {
 public:
  /// \param slot_length  0: any
  Sentences(std::span<sluice_cuda_sentence const> from, Vocabulary const& vocabulary, std::int32_t slot_length) {
    std::int32_t longest = 0;
    for (auto const& one : from) {
      require(one.held >= 0, "sentence.held", one.held, "must not be negative");
      require(slot_length == 0 || one.held < slot_length, "sentence.held", one.held, "must be less than slot_length");
      require(one.prefix >= 0 && one.prefix - 1 <= one.held, "sentence.prefix", one.prefix,
              "must be in [0, sentence.held + 1]");
      require(one.prefix_log_prob < std::numeric_limits<double>::infinity(), "sentence.prefix_log_prob",
              one.prefix_log_prob, "must be a number, or -infinity");
      longest = std::max({longest, one.prefix, prompt(one, slot_length)});
    }
    tokens_.resize(static_cast<std::size_t>(longest));
    for (auto const& one : from)
      sentences_.push_back({.vocabulary = &vocabulary,
                            .prompt = first(prompt(one, slot_length)),
                            .prefix = first(one.prefix),
                            .last = one.last,
                            .held = one.held,
                            .prefix_log_prob = &one.prefix_log_prob,
                            .source_length = one.source_length,
                            .limits = {.length = slot_length == 0 ? Limits::unlimited : slot_length}});
  }

  std::span<Sentence const> all() const { return sentences_; }

 private:
  /// The prompt's length, if it matters.
  static std::int32_t prompt(sluice_cuda_sentence const& one, std::int32_t slot_length) {
    return slot_length == 0 ? 0 : one.held - one.prefix + 1;
  }
  std::span<Token const> first(std::int32_t count) const { return {tokens_.data(), static_cast<std::size_t>(count)}; }

  std::vector<Token> tokens_;
  std::vector<Sentence> sentences_;
};

/// Results, and their C views.
class Results {
 public:
  explicit Results(std::vector<Result> results) : results_(std::move(results)), hypotheses_(results_.size()) {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      auto const& result = results_[i];
      auto& seen = hypotheses_[i];
      for (auto const& h : result.hypotheses)
        seen.push_back({h.tokens.data(), h.log_probs.data(), h.tokens.size(), h.log_prob, h.score, h.finished ? 1 : 0});
      seen_.push_back({name(result.failure), result.message.c_str(), seen.data(), seen.size()});
    }
  }
  Results(Results const&) = delete;
  Results& operator=(Results const&) = delete;

  sluice_cuda_result const* at(std::size_t index) const { return index < seen_.size() ? &seen_[index] : nullptr; }

 private:
  std::vector<Result> results_;
  std::vector<std::vector<sluice_cuda_hypothesis>> hypotheses_;
  std::vector<sluice_cuda_result> seen_;
};

}  // namespace sluice::c::device
