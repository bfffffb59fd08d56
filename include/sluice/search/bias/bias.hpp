// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrase boosting (hotwords, contextual biasing) for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/bias/context_graph.hpp>
#include <sluice/search/rule/rule.hpp>
#include <sluice/search/rule/ruled.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Outputs that contain phrases of a ContextGraph score more: a Rule for any search, `Biased<S>`. What was given for a
/// beginning that does not go on is taken back, by the end of the output too. An output that is cut at the maximum
/// length keeps what its last beginning was given.
///
/// Where edits act after the softmax (beams, Greedy), the log-probability of an output is that of the model plus the
/// boosts of the phrases that occur in it, whatever the search. Where they act before it (sampling), every step is a
/// distribution of its own, and only ratios within a step change.
///
/// A phrase may begin in a forced prefix, but not in the prompt. Unlike other rules it changes probes too: constraints are
/// met at the same score. Searches that take for granted that log-probabilities only fall (ExactSearch, BestFirstBeam) do
/// not compile with it; stop rules of a beam that predict future scores may end it too early.
///
/// Costs one edit for every token that continues or begins a phrase, never more. Copies are cheap.
class Bias {
 public:
  using State = ContextGraph::State;

  /// Changes nothing.
  Bias() = default;
  explicit Bias(std::shared_ptr<ContextGraph const> graph) : graph_(std::move(graph)) {}
  explicit Bias(ContextGraph graph) : graph_(std::make_shared<ContextGraph const>(std::move(graph))) {}

  /// \throws std::invalid_argument  as ContextGraph::check()
  template <class = void>
  State initial(Sentence const& sentence) const {
    if (graph_ != nullptr) graph_->check(*sentence.vocabulary);
    return ContextGraph::root;
  }
  State next(State state, Token token) const { return graph_ == nullptr ? state : graph_->next(state, token); }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  /// What the step adds: appends it for the tokens that continue a phrase, and returns what it adds to every token.
  float bias(State state, std::vector<Edit>& edits) const {
    if (graph_ == nullptr || graph_->empty()) return 0;
    graph_->edit(state, edits);
    return -graph_->credit(state);
  }

 private:
  std::shared_ptr<ContextGraph const> graph_;
};

/// Any search with boosted phrases.
template <Search S>
using Biased = Ruled<S, Bias>;

}  // namespace sluice::inline v0
