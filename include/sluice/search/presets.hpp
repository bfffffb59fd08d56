// SPDX-License-Identifier: Apache-2.0
/// \file
/// Presets for the beam searches of other engines.
///
/// Each is a BeamSearch with that engine's rules filled in. Any member can be changed afterwards, e.g. n_best, length
/// and penalty. Lengths are the engine's own defaults where they are numbers; lengths that depend on the source are
/// described below. A preset reproduces which hypotheses are returned, in which order and with which scores, given the
/// same log-probabilities. Every rule is applied to one sentence, even where the original applies it to its batch
/// (noted below), so results never depend on other sentences. Ties are broken by this library's rule.
///
/// Presets for the greedy searches of other engines, where they differ from Greedy.
///
/// Presets for the sampling of other engines: a Sample with that engine's defaults and order. Any member can be changed
/// afterwards.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/length.hpp>
#include <sluice/search/sample.hpp>

#include <cstdint>

namespace sluice::inline v0::presets {

/// CTranslate2's GreedySearch with its Translator's defaults (beam_size 1; include/ctranslate2/translation.h:
/// length_penalty 1, min_decoding_length 1, max_decoding_length 256): score = log_prob / length^length_penalty; eos is
/// forbidden before the softmax, so the first token's log-probability is normalised without eos. Set length to suit
/// source and output.
/// Not reproduced: a forced prefix scoring 0 (its tokens keep the model's own log-probabilities).
inline Greedy ctranslate2_greedy(double length_penalty = 1) {
  return {.length = {.min = 1, .max = 256},
          .penalty = {.kind = length_penalty == 0 ? LengthPenalty::Kind::none : LengthPenalty::Kind::average,
                      .alpha = length_penalty},
          .stage = Stage::before_softmax};
}

/// llama.cpp's defaults (common/common.h, common_params_sampling): top_k 40, top_p 0.95, min_p 0.05, then the
/// temperature, 0.8. Its penalties, DRY and logit bias, off by default, come first: Request::processors{TokenBias,
/// Penalties, Dry}.
/// Not reproduced: its random numbers; `--mirostat 2` uses no sampler other than the temperature: switch the others
/// off.
inline Sample llama_cpp_sample() {
  return {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .order = SamplerOrder::llama_cpp()};
}

/// Hugging Face transformers' `do_sample=True` (4.50, GenerationConfig): top_k 50.
/// Not reproduced: its random numbers; on a tie with the last token kept, Hugging Face keeps all tied tokens, and this
/// keeps the lowest.
inline Sample huggingface_sample() { return {.top_k = 50, .order = SamplerOrder::hugging_face()}; }

/// fairseq's SequenceGenerator: eos among the k best of 2k candidates is set aside, and k non-eos candidates continue;
/// the search ends with k finished; at the maximum length eos is forced and its log-probability counts; masks act after
/// the softmax; score = log_prob / length. Its constructor's defaults: min_len 1, max_len_a 0, max_len_b 200, which
/// does not count eos: length.max is one more.
/// Not reproduced: max_len computed from the padded width of the batch, where max_len_a is set.
inline BeamSearch fairseq(std::int32_t k) {
  return {.width = k, .length = {.min = 1, .max = 201}, .penalty = {.alpha = 1}};
}

/// CTranslate2's BeamSearch with its Translator's defaults (include/ctranslate2/translation.h: length_penalty 1, hence
/// no early exit, min_decoding_length 1, max_decoding_length 256): eos among the k best of 2k is set aside; the search
/// ends with patience * k finished, and all that end in the last step count; live hypotheses at the maximum length join
/// unchanged; masks act on the logits; forced prefixes score 0. With length penalty 0, as with raw DecodingOptions, the
/// rule is early exit; those have a min_length of 0: set length.min. Greedy: presets::ctranslate2_greedy.
/// Not reproduced: eos forbidden in some beams only after a prefix that is not returned; in a batch, one sentence's
/// prefix changing the first step of other sentences (guard_prefix).
inline BeamSearch ctranslate2(std::int32_t k, double length_penalty = 1) {
  return {.width = k,
          .length = {.min = 1, .max = 256},
          .penalty = {.kind = length_penalty == 0 ? LengthPenalty::Kind::none : LengthPenalty::Kind::average,
                      .alpha = length_penalty},
          .early_stopping = {.rule = length_penalty == 0 ? EarlyStopping::Rule::top_ended : EarlyStopping::Rule::count},
          .at_maximum = AtMaximum::truncate,
          .surplus = true,
          .prefix_scored = false,
          .guard_prefix = true,
          .stage = Stage::before_softmax};
}

/// Hugging Face transformers' beam search (4.50 and later): eos among the k best candidates joins a pool of the k best,
/// and k non-eos candidates continue; live hypotheses at the maximum length join unchanged; masks act on the
/// log-probabilities; score = log_prob / length^length_penalty. The prompt is Request::prompt and does not count. Its
/// GenerationConfig's max_length of 20 counts the prompt too and comes with a warning: set length.max.
/// Its early_stopping is `early`: False (the default) is `heuristic`, True is `count`, "never" is `never_early`.
/// A hypothesis that completes a stop leaves as one in eos does, as by its StoppingCriteria.
/// Not reproduced: the loop running until the last sentence of the batch is done (its results are the same).
inline BeamSearch huggingface(std::int32_t k, double length_penalty = 1,
                              EarlyStopping::Rule early = EarlyStopping::Rule::heuristic) {
  return {.width = k,
          .penalty = {.alpha = length_penalty},
          .early_stopping = {.rule = early},
          .at_maximum = AtMaximum::truncate,
          .surplus = true,
          .stop_at_once = true};
}

/// Sockeye 3's BeamSearch: k candidates; a finished hypothesis keeps its place with its final score, which competes
/// with the plain log-probabilities of live ones; the search ends when all hypotheses in the beam are finished; at the
/// maximum length eos is forced and its log-probability counts; score = log_prob / ((beta + length) / (beta +
/// 1))^alpha. Its maximum is a multiple of the source's length that it learns from its training data: set
/// length.max_factor.
/// Not reproduced: beam_search_stop = "first" waiting for every sentence of the batch (early_stopping.finished = 1 does this for
/// one sentence), and unfinished hypotheses in its n-best list.
inline BeamSearch sockeye(std::int32_t k, double alpha = 1, double beta = 0) {
  return {.width = k,
          .penalty = {.kind = LengthPenalty::Kind::gnmt, .alpha = alpha, .beta = beta},
          .finished = FinishedHypotheses::stay};
}

/// Marian's beam search: as many candidates as the live width; finished hypotheses leave, and each reduces the width;
/// the search ends at width 0; live hypotheses at the maximum length join unchanged; score = (log_prob - word_penalty *
/// length) / length^normalize. Its max-length-factor is 3: set length.max_factor, which needs the source's length. It
/// forbids the unknown token and other special tokens: list them in Vocabulary::never.
/// Not reproduced: all sentences of a batch stopping when one of them reaches the maximum length, and that length
/// computed from the padded width of the batch.
inline BeamSearch marian(std::int32_t k, double normalize = 0, double word_penalty = 0) {
  return {.width = k,
          .penalty = {.alpha = normalize, .word_penalty = word_penalty},
          .finished = FinishedHypotheses::shrink,
          .at_maximum = AtMaximum::truncate};
}

/// The variable-width beam of VAR-STREAM and VAR-BATCH (Yang et al. 2020, appendix A; the authors' code for machine
/// translation): at most per_parent children of one hypothesis; candidates `threshold` or more below the best are
/// dropped; finished hypotheses stay, at no cost, until they lead; each that leaves reduces the width; eos is free at
/// the maximum length; score = log_prob / length.
/// Not reproduced: padding rows finishing when fewer than k candidates exist, the score -1e8 of an empty output.
inline BeamSearch varstream(std::int32_t k, double threshold = 1.5, std::int32_t per_parent = 5) {
  return {.width = k,
          .pruning = {.absolute_threshold = threshold, .max_per_parent = per_parent},
          .finished = FinishedHypotheses::leave_first,
          .at_maximum = AtMaximum::force_eos_free};
}

}  // namespace sluice::inline v0::presets
