// SPDX-License-Identifier: Apache-2.0
/// \file
/// Names of earlier releases, for one release more: docs/notation.md says what they are now.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/language_model.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/model.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/heads.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/speculated.hpp>

#include <utility>
#include <variant>

namespace sluice::inline v0 {

class SuffixCache;
class SuffixDecoding;
template <class>
class WordModel;
template <Model, Model>
class WithLanguageModel;
inline namespace SLUICE_ISA {
template <class>
class NGramModel;
}

/// PromptLookup::Options.
using Lookup [[deprecated("write PromptLookup::Options")]] = PromptLookup::Options;

// clang-format off
/// Speculated{model, PromptLookup(options)}.
template <Model M>
class [[deprecated("write Speculated{model, PromptLookup(options)}")]] WithLookup : public Speculated<M, PromptLookup> {
 public:
  explicit WithLookup(M& model, PromptLookup::Options const& options = {})
      : Speculated<M, PromptLookup>(model, PromptLookup(options)) {}
};

/// Speculated{model, DraftModel(draft, expander, choice)}.
template <Model M, Model D, class E = LogSoftmaxTopK, Acceptance Choice = acceptance::Exact>
class [[deprecated("write Speculated{model, DraftModel(draft)}")]] WithDraft : public Speculated<M, DraftModel<D, E, Choice>> {
 public:
  WithDraft(M& model, D& draft, E expander = {}, Choice choice = {})
      : Speculated<M, DraftModel<D, E, Choice>>(model, DraftModel<D, E, Choice>(draft, std::move(expander), choice)) {}
};

/// Speculated{model, DraftHeads(heads, projection, trees)}.
template <Model M, ProposalHeads H, class E>
class [[deprecated("write Speculated{model, DraftHeads(heads, projection)}")]] WithHeads : public Speculated<M, DraftHeads<H, E>> {
 public:
  WithHeads(M& model, H& heads, E expander, HeadTrees trees = {})
      : Speculated<M, DraftHeads<H, E>>(model, DraftHeads<H, E>(heads, std::move(expander), std::move(trees))) {}
};

/// Speculated{model, SuffixDecoding(cache, options)}. Include speculative/suffix_cache.hpp, too.
template <Model M, class P = SuffixDecoding>
class [[deprecated("write Speculated{model, SuffixDecoding(cache)}")]] WithSuffixCache : public Speculated<M, P> {
 public:
  WithSuffixCache(M& model, SuffixCache& cache, typename P::Options const& options = {})
      : Speculated<M, P>(model, P(cache, options)) {}
};
// clang-format on

/// Fused{model, language, {.weight = weight}, source_of}.
template <Model M, Model L, class F = detail::NoSource>
class [[deprecated("write Fused{model, language, {.weight = weight}}")]] Interpolate : public Fused<M, L, F>{
  public : Interpolate(M & model, L& language, double weight, F source_of = {}) :
      Fused<M, L, F>(model, language, {.weight = weight}, std::move(source_of)){}
};

/// NGramModel. Include ngram/ngram_model.hpp, too.
using TokenNGrams [[deprecated("write NGramModel<>")]] = NGramModel<std::monostate>;
/// WordModel. Include ngram/ngram_model.hpp, too.
using WordNGrams [[deprecated("write WordModel<>")]] = WordModel<std::monostate>;
/// FusionWeights, as the language model of a search whose model is a WithLanguageModel.
struct [[deprecated("write FusionWeights")]] TextModel : FusionWeights{};
/// WithLanguageModel. Include frames/language_model.hpp, too.
template <Model F, Model L>
using WithTextModel [[deprecated("write WithLanguageModel")]] = WithLanguageModel<F, L>;

/// Processed{search, processors}, or Request::processors.
template <Search S, LogitsProcessor R>
struct [[deprecated("write Request::processors, or Processed{search, {processor}}")]] Ruled : Processed<S> {
  Ruled() = default;
  Ruled(S plain, R rule) : Processed<S>(std::move(plain), LogitsProcessorList(std::move(rule))) {}
};

}  // namespace sluice::inline v0
