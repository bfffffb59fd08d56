// SPDX-License-Identifier: Apache-2.0
/// \file
/// The models that --proposer names.
#pragma once

#include <sluice/output/dense_projection.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/heads.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <transformer/heads.hpp>
#include <transformer/transformer.hpp>
#include <transformer/weights.hpp>
#include <translate/guess_output.hpp>
#include <translate/model.hpp>

#include <memory>
#include <utility>

namespace translate {

/// A Transformer with heads of its own: theirs is scratch memory that threads cannot share.
struct Heads {
  using Guessing =
      sluice::Speculated<sluice::example::Transformer, sluice::DraftHeads<sluice::ResidualHeads, GuessOutput>>;

  Heads(sluice::example::Transformer& model, sluice::ResidualHeads const& all, GuessOutput const& output)
      : heads(all), guessing(model, sluice::DraftHeads(heads, output)) {}
  Heads(Heads const&) = delete;
  Heads& operator=(Heads const&) = delete;

  sluice::ResidualHeads heads;
  Guessing guessing;
};

/// Any model, with a smaller one beside it.
struct Drafting {
  using Guessing = sluice::Speculated<Model, sluice::DraftModel<sluice::example::Transformer, sluice::DenseProjection>>;

  Drafting(Model whose, std::shared_ptr<sluice::example::Weights const> weights, sluice::DenseProjection const& output)
      : model(std::move(whose)), draft(std::move(weights)), guessing(model, sluice::DraftModel(draft, output)) {}
  Drafting(Drafting const&) = delete;
  Drafting& operator=(Drafting const&) = delete;

  Model model;
  sluice::example::Transformer draft;
  Guessing guessing;
};

/// Any model; it guesses itself where that did better in the sentence so far.
struct Remembering {
  using Guessing = sluice::Speculated<Model, sluice::SuffixDecoding>;

  Remembering(Model whose, sluice::SuffixCache& cache)
      : model(std::move(whose)), guessing(model, sluice::SuffixDecoding(cache)) {}
  Remembering(Remembering const&) = delete;
  Remembering& operator=(Remembering const&) = delete;

  Model model;
  Guessing guessing;
};

/// Any model; it guesses itself where there is nothing to look up.
struct LookingUp {
  using Guessing = sluice::Speculated<Model, sluice::PromptLookup>;

  explicit LookingUp(Model whose) : model(std::move(whose)), guessing(model, sluice::PromptLookup()) {}
  LookingUp(LookingUp const&) = delete;
  LookingUp& operator=(LookingUp const&) = delete;

  Model model;
  Guessing guessing;
};

}  // namespace translate
